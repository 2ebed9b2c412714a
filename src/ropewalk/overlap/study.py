"""Answers an `OverlapQuestion`, and the same question over many speeds of the network for a chart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ropewalk.overlap.answer import OverlapAnswer
from ropewalk.overlap.bounds import lower_bounds
from ropewalk.overlap.buckets import MIB, buckets, groups_with_barrier_s
from ropewalk.overlap.dear import THRESHOLDS_MIB
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.link import ExchangeKind, Link
from ropewalk.overlap.methods import METHODS, MOST_FREELY_GROUPED, WIDEST, scene_of
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.simulated import simulated
from ropewalk.overlap.tensors import Tensors
from ropewalk.overlap.tuner import CREDIT_PIECES, Trial, Tuned, TunerSpace, bayesian, cost_of, exhaustive, space_of
from ropewalk.progress import Progress, silent

SPEEDS_GBPS = (1.0, 3.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0)


@dataclass(frozen=True)
class SpeedRow:
    """One method at one speed of the network, as estimated."""

    method: str
    bandwidth: float
    """Bytes/s of a server."""
    step_s: float
    lower_bound_s: float


def answer(question: OverlapQuestion, progress: Progress = silent, *, simulate: bool = True) -> OverlapAnswer:
    """Every method for this kind of synchronisation, and the best of them.

    Each is estimated on a model of one link; those that a lowered step can run are simulated on the fabric, which is
    what they are compared by, unless `simulate` says that the estimate is enough.

    >>> from ropewalk.hardware import Given, read_cluster
    >>> slow = read_cluster("2x2", Given(device="a100", nics=1, nic_bandwidth=1.25e9))
    >>> found = answer(OverlapQuestion("vgg16", slow, batch=128))
    >>> found.bounds.step_s <= found.best.time_s <= found.method("buckets").time_s
    True
    """
    methods = METHODS.names_for(question.sync)
    total = 2 * len(methods) + 1
    progress(0, total, "pricing the model")
    tensors, link = question.tensors, question.link
    progress(0, total, "searching partition size and credit")
    tuned = settings(question, tensors, link)
    scene = scene_of(tensors, link, tuned.policy(), question.rounds_s)
    steps = []
    for number, name in enumerate(methods, 1):
        progress(number, total, name)
        steps.append(METHODS[name].make(scene))
    notes = _notes(question)
    for number, method in enumerate(steps if simulate else ()):
        progress(len(methods) + 1 + number, total, f"{method.name} on the network")
        if method.order is not None:
            found = simulated(question.training, method.order)
            steps[number] = replace(method, simulated_s=found.statistics.step_time_s)
            notes = tuple(dict.fromkeys([*notes, *(note for note in found.notes if "would not fit" in note)]))
    return OverlapAnswer(question, tensors, link, tuple(steps), lower_bounds(tensors, link), tuned, notes)


def settings(question: OverlapQuestion, tensors: Tensors, link: Link) -> Tuned:
    """Partition size and credit of priority scheduling: as given, or searched."""
    cost, space = cost_of(tensors, link), space_of(tensors)
    partition, credit = question.partition_bytes, question.credit_bytes
    if partition is not None and credit is not None:
        given = Trial(partition, credit, cost(partition, credit))
        return Tuned(given, "as given", (given,))
    if credit is not None:
        # The search counts credit in pieces; with the bytes given, only pieces are left to try.
        trials = tuple(Trial(size, credit, cost(size, credit)) for size in space.partition_sizes)
        best = min(trials, key=lambda trial: (trial.step_s, -trial.partition_bytes))
        return Tuned(best, f"exhaustive: {len(trials)} partition sizes, credit as given", trials)
    if partition is not None:
        space = TunerSpace(partition, partition, CREDIT_PIECES, 1)
    return bayesian(cost, space, seed=question.seed) if question.tune else exhaustive(cost, space)


def over_speeds(
    question: OverlapQuestion,
    gbps: Iterable[float] = SPEEDS_GBPS,
    progress: Progress = silent,
) -> list[SpeedRow]:
    """Every method on NICs of several speeds; settings are searched anew for each."""
    speeds = tuple(gbps)
    rows = []
    for number, speed in enumerate(speeds):
        progress(number, len(speeds), f"at {speed:g} Gbps")
        asked = question.at_bandwidth(speed * 1e9 / 8)
        tensors, link = question.tensors, asked.link
        scene = scene_of(tensors, link, settings(asked, tensors, link).policy(), asked.rounds_s)
        bound = lower_bounds(tensors, link).step_s
        steps = {name: METHODS[name].make(scene).step_s for name in METHODS.names_for(asked.sync)}
        rows += [SpeedRow(name, speed * 1e9 / 8, step_s, bound) for name, step_s in steps.items()]
    return rows


def best_behind_a_barrier(answer: OverlapAnswer) -> tuple[Groups, float]:
    """Groups for a framework that launches them as they are ready and waits for all: the best of those that are known.

    Of merged gradients, the groups of the fused plan, and buckets of many sizes; of equals the fewest.
    """
    tensors, link = answer.tensors, answer.link
    known = [answer.method("merged").groups, answer.method("fused").groups, buckets(tensors)]
    known += [buckets(tensors, (size * MIB,)) for size in THRESHOLDS_MIB]
    steps = [(groups_with_barrier_s(tensors, link, groups), len(groups), number) for number, groups in enumerate(known)]
    seconds, _, number = min(steps)
    return known[number], seconds


def _notes(question: OverlapQuestion) -> tuple[str, ...]:
    notes = []
    if question.sync is ExchangeKind.PARAMETER_SERVER:
        hosts = question.parameter_servers or question.servers
        notes.append(
            f"{hosts} parameter servers are on dedicated hosts; GPUs of a server reduce locally first, which is not "
            "counted; credit is returned when a push completes, unless a method differs; the lower bound counts "
            "pushes only"
        )
    if len(question.tensors) > MOST_FREELY_GROUPED:
        notes.append(
            f"{len(question.tensors)} tensors are many: fused and streamed plans consider groups of up to {WIDEST}"
        )
    return tuple(notes)
