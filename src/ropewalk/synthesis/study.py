"""From a question to its answer: the optimum, the schedule that reaches it, and everything it is compared with."""

from __future__ import annotations

from functools import partial
from time import perf_counter

from ropewalk.collectives.optimum import OPTIMA, ROOTED_OPTIMA, Network, Optimum
from ropewalk.progress import Progress, silent
from ropewalk.synthesis.answer import Alternative, AtSize, CollectiveAnswer
from ropewalk.synthesis.compared import rivals, simulated, tree_of_switches
from ropewalk.synthesis.made import Made, made
from ropewalk.synthesis.question import ROOTED, CollectiveQuestion
from ropewalk.units import show_percent


def answer(question: CollectiveQuestion, progress: Progress | None = None) -> CollectiveAnswer:
    """The best schedule of a collective on a fabric, beside what others would run.

    >>> from ropewalk.fabric import Torus
    >>> found = answer(CollectiveQuestion("allgather", Torus((3, 3), bandwidth=1e9).build(), compare=False))
    >>> found.inverse_rate, found.made.depth
    (Fraction(2, 1), 2)
    """
    tell = partial(progress or silent, 0, None)
    network = question.network()
    started = perf_counter()
    tell("searching for the narrowest cut")
    optimum = optimum_of(question, network)
    tell("building the schedule")
    best = None if question.in_network else made(question, network)
    seconds = perf_counter() - started
    others: tuple[Alternative, ...] = ()
    by_size: tuple[AtSize, ...] = ()
    reached = None
    if question.compare:
        found = rivals(question, network, tell)
        others = found.rows(tell)
        by_size = found.by_size(best) if best is not None else ()
    if question.compare:
        tell("simulating the schedule")
        reached = tree_of_switches(question, network, optimum) if best is None else simulated(question, best)
    size = question.size_bytes
    return CollectiveAnswer(
        question=question,
        network=network,
        optimum=optimum,
        made=best,
        seconds=in_network_s(question, network, optimum) if best is None else best.seconds_for(size),
        simulated_algbw=reached,
        alternatives=others,
        by_size=by_size,
        seconds_to_synthesise=seconds,
        notes=_notes(question, optimum, best),
    )


def in_network_s(question: CollectiveQuestion, network: Network, optimum: Optimum) -> float:
    """Seconds that switches which copy and add up need at least: for what links carry, and for all that is added.

    Of n inputs, n-1 are added to others, wherever that happens; at best all switches share the work.
    """
    sent_s = question.size_bytes / float(optimum.algbw)
    switches = question.fabric.nodes - question.fabric.hosts
    if not question.reduces or question.mixer.free or not switches:
        return sent_s
    added = (len(network.members) - 1) * question.size_bytes
    return max(sent_s, question.mixer.seconds(added) / switches)


def optimum_of(question: CollectiveQuestion, network: Network) -> Optimum:
    """The best possible bandwidth."""
    if question.collective in ROOTED:
        return ROOTED_OPTIMA[question.collective](network, question.root_host)
    return OPTIMA[question.collective](network)


def _notes(question: CollectiveQuestion, optimum: Optimum, best: Made | None) -> tuple[str, ...]:
    notes = []
    if question.in_network:
        notes.append("with in-network reduction the bandwidth is a cut bound; one such tree is simulated")
    elif not optimum.exact:
        notes.append("the optimum is known in floating point only, not as a proven fraction")
    if best is not None and best.algbw < optimum.algbw:
        notes.append(f"the schedule reaches {show_percent(float(best.algbw / optimum.algbw), 2)} of the optimum")
    if question.host_limits is not None:
        notes.append("limits of hosts are counted, not simulated")
    if question.reduces and not question.mixer.free:
        others = "free in alternatives" if question.in_network else "in alternatives too"
        notes.append(f"reduction by {question.mixer}, {others}")
    return tuple(notes)
