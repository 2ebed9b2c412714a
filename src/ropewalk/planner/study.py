"""From a model and a cluster to the best strategy, with what it beat and a bound on what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.device.device import unlimited
from ropewalk.device.pricer import pricer
from ropewalk.engines import Engine
from ropewalk.errors import MemoryShortage
from ropewalk.fabric.interconnect import gpu_in
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.planner.answer import Counts, NearestFit, Option, PlannerAnswer, Strand
from ropewalk.planner.anywhere import floors_anywhere, least_anywhere
from ropewalk.planner.best_first import PlannerSearch, best_first
from ropewalk.planner.bounds import bound_of, kernels_alone
from ropewalk.planner.enumerated import check_space, enumerate_space
from ropewalk.planner.finalists import Finalist, finalists
from ropewalk.planner.pipelines import pipelines, proposes
from ropewalk.planner.plain import plain_choice
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.refine import FASTER, FEW_GPUS, Refinement
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Candidates
from ropewalk.planner.strands import STRANDS, alone, best_alone
from ropewalk.planner.usual import check_usual
from ropewalk.progress import Progress, silent
from ropewalk.strategy.asked import asked_of
from ropewalk.strategy.frameworks import is_runnable, runnable
from ropewalk.strategy.memory import usable_bytes
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.prices import Inside
from ropewalk.training.inside import inside_of
from ropewalk.units import show_percent, show_seconds, show_size
from ropewalk.workload.source import open_workload
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo.stacks import stack_of

MOST_NEAREST = 5
CLOSE = 1.03
"""Strategies whose step with the collectives of the best is within this factor of it are refined, too."""
MOST_FINALISTS = 12
"""Strategies with cuts of their own that are simulated to see whether they are as close."""
MOST_REFINED = 2
"""Of those that are, how many are refined."""


def answer(question: PlannerQuestion, progress: Progress | None = None, engine: Engine | None = None) -> PlannerAnswer:
    """The best strategy for a model on a cluster; where it is searched changes nothing.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.planner.space import Space
    >>> small = Space(tensor=(1,), context=(1,), micro_batch=(1, 2), zero=(0, 1))
    >>> found = answer(PlannerQuestion("gpt2", read_cluster("1x2"), batch=4, sequence=64, space=small))
    >>> found.bound.complete, found.best.seconds <= found.plain.seconds
    (True, True)
    """
    question.check()
    return Study(question, progress or silent, engine=engine or Engine()).answer()


def alike(one: Inside | None, other: Inside | None) -> bool:
    """Do layers cost the same beside these exchanges? The speed of NICs counts where collectives take multiprocessors.

    >>> alike(Inside(8, 4e11, 0.0, across_bytes_s=5e10), Inside(8, 4e11, 0.0, across_bytes_s=1e10))
    True
    """
    if one is None or other is None:
        return one is other
    return one == (other if one.taken else replace(other, across_bytes_s=one.across_bytes_s))


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """A search that has ended."""

    priced: Priced
    found: PlannerSearch
    best: Option
    """With everything settled that degrees leave open."""
    refinement: Refinement


@dataclass(eq=False)
class Study:
    """The search for one question; `known` prices of the model are used again on another network."""

    question: PlannerQuestion
    say: Progress
    known: StrategyPrices | None = None
    engine: Engine = field(default_factory=Engine)

    def __post_init__(self) -> None:
        question = self.question
        self.say(0, None, "reading the model")
        opened = open_workload(question.model, None, question.sequence)
        self.workload = opened if opened.resize is None else opened.at_batch(1)
        prices = pricer(question.cluster.device, question.precision).sustained(self.workload)
        check_usual(question.space, self.workload, prices)
        gpu = gpu_in(prices.device.title) or prices.device.name
        use = question.use().settled(gpu, question.cluster).run_by(stack_of(self.workload))
        fabric = question.fabric()
        inside = inside_of(question.cluster, use, DEFAULT_ORDER, prices.device, stack_of(self.workload))
        self.prices = (
            StrategyPrices(self.workload, prices, fabric, use, engine=self.engine, inside=inside)
            if self.known is None or not alike(self.known.inside, inside)
            else self.known.on(fabric, use)
        )
        self.simulator = Simulator(question, engine=self.engine)
        self.prices.made = self.simulator.quick.made
        self.seconds: dict[int, float] = {}
        self.interrupted = self.unbounded = False

    @cached_property
    def possible(self) -> Candidates:
        """Every strategy that the model, the GPUs and the batch allow."""
        question, gpus = self.question, self.question.cluster.gpus
        found = enumerate_space(question.space, self.workload, gpus, question.batch)
        check_space(found, self.workload, gpus, question.batch)
        return found

    @cached_property
    def wanted(self) -> Candidates:
        """Of these, what may be the answer."""
        return self.possible if self.free else self.runnable

    @cached_property
    def runnable(self) -> Candidates:
        """Of these, what some framework can run."""
        return self.possible.only(runnable_ones(self.possible, self.workload))

    @property
    def free(self) -> bool:
        """May the answer be something that no framework runs?"""
        return "unrunnable" in self.question.allow

    def price(self, candidates: Candidates) -> Priced:
        """Bytes and bounds of candidates, some of which fit."""
        priced = self.prices.price(candidates, lambda now: self.say(0, None, now))
        if not priced.fits.any():
            raise self._shortage(priced)
        return priced

    def search(
        self, candidates: Candidates, *, others: bool = True, below: float = np.inf, free: bool | None = None
    ) -> SearchOutcome:
        """The best of some candidates; where it takes less than `below`, settled in all that degrees leave open.

        `others` that could win once they are settled are settled, too. `free`: by what no framework runs, too; as the
        question says unless given.
        """
        priced, most = self.price(candidates), self.question.most_simulated
        self.seconds = {}
        found = best_first(
            priced.floor_s, priced.replay, lambda at: self._seconds(priced, at), most, self._tell,
            lambda next_ones: self._prepare(priced, next_ones), self.engine.workers,
        )  # fmt: skip
        self.interrupted |= not found.complete and len(found.order) < most
        refinement = Refinement(self.prices, priced, self.simulator, self.free if free is None else free)
        if found.seconds[found.best] >= below:
            return SearchOutcome(priced, found, self._option(priced, found.best), refinement)
        return SearchOutcome(priced, found, self._refined(priced, found, refinement, others), refinement)

    def answer(self, best: Option | None = None) -> PlannerAnswer:
        """The best of all candidates, or the best that is known where that is faster, and what it beat."""
        question, workload, possible, wanted = self.question, self.workload, self.possible, self.wanted
        outcome = self._searched()
        priced, found = outcome.priced, outcome.found
        best = outcome.best if best is None or outcome.best.seconds < best.seconds * FASTER else best
        plain_at = plain_choice(priced)
        plain = self._option(priced, plain_at)
        strands = self._strands(priced, plain_at, plain, outcome.refinement)
        all_of_them = Strand("all together", "the best of everything", best, plain.seconds / best.seconds)
        counts = Counts(
            len(possible), len(wanted), int(priced.fits.sum()), int(priced.fits.sum()),
            int(np.isfinite(found.replay_s).sum()), len(self.simulator.known),
        )  # fmt: skip
        self.say(0, None, "reading where the time of the best strategy goes")
        training = self.simulator.training(best, question.level)
        plain_training = self.simulator.training(plain, question.level)
        anything = self._least(priced, best)
        return PlannerAnswer(
            question, best, training, plain, plain_training,
            bound_of(priced, found, anything, training, self.prices, free=self.free),
            counts, (*strands, all_of_them), self._nearest(priced), priced,
            np.fmax(priced.floor_s, found.replay_s), self._known(priced),
            runnable(best.strategy, workload, algorithm=best.algorithm),
            tuple(self._remarks(best, outcome.refinement)),
        )  # fmt: skip

    def _least(self, priced: Priced, best: Option) -> float:
        """The bound for any choice; whoever does not wait for it gets one that counts kernels alone."""
        try:
            with unwrapped_interrupts():
                return least_anywhere(self.prices, priced, best.seconds)
        except KeyboardInterrupt:
            self.unbounded = True
            return kernels_alone(priced)

    def _searched(self) -> SearchOutcome:
        """The best of what may be the answer. What can be run is searched by itself before what cannot be run is, too:
        more choices lead a search elsewhere, and may not make its answer slower."""
        if not self.free or not len(self.runnable):
            return self.search(self.wanted)
        try:
            before = self.search(self.runnable, free=False)
        except MemoryShortage:
            return self.search(self.wanted)
        if self.interrupted:
            return before
        after = self.search(self.wanted)
        return after if after.best.seconds < before.best.seconds * FASTER else replace(after, best=before.best)

    def _remarks(self, best: Option, refinement: Refinement) -> Iterator[str]:
        if self.interrupted:
            yield "Interrupted: what is shown is the best so far."
            return
        if self.unbounded:
            yield "Interrupted: the bound for any choice counts kernels only."
            return
        self.say(0, None, "trying orders of gradients that no framework runs")
        try:
            with unwrapped_interrupts():
                other = refinement.unrunnable_order(best)
        except KeyboardInterrupt:
            yield "Interrupted: orders of gradients that no framework runs were not tried."
            return
        if other is not None:
            yield (
                "No framework supports this order of gradients, which would take "
                f"{show_percent(1 - other.seconds / best.seconds)} "
                f"less: {other.strategy.order.said()} ({show_seconds(other.seconds)})."
            )

    def _refined(self, priced: Priced, found: PlannerSearch, refinement: Refinement, others: bool) -> Option:
        """The best of everything: what is left open is settled for the best, and for others that could win."""
        best = self._option(priced, found.best)
        if self.interrupted:
            return best
        try:
            with unwrapped_interrupts():
                best = refinement.refined(best, self._trying)
                for better in self._others(priced, best, refinement) if others else ():
                    best = better
        except KeyboardInterrupt:
            self.interrupted = True
        return best

    def _others(self, priced: Priced, best: Option, refinement: Refinement) -> Iterator[Option]:
        """Ever better options: what the pipeline planner proposes, and other candidates that come close, refined."""
        if proposes(self.question, self.workload):
            start = refinement.fastest(self._pipelines)
            refined = best if start is None else refinement.refined(start, self._trying)
            if refined.seconds < best.seconds * FASTER:
                best = refined
                yield best
        self.say(0, None, "cutting pipelines that could still win")
        close, floors = 0, floors_anywhere(self.prices, priced, best.seconds)
        few = self.question.cluster.gpus <= FEW_GPUS
        for other in finalists(self.prices, priced, floors, best.seconds)[: None if few else MOST_FINALISTS]:
            start = self._start(best, other, refinement, few)
            if start.seconds <= best.seconds * CLOSE:
                close += 1
                refined = refinement.refined(start, self._trying) if few or close <= MOST_REFINED else start
                if refined.seconds < best.seconds * FASTER:
                    best = refined
                    yield best

    @cached_property
    def _pipelines(self) -> tuple[Option, ...]:
        return tuple(pipelines(self.question, self.prices, self._trying))

    def _start(self, best: Option, other: Finalist, refinement: Refinement, few: bool) -> Option:
        """Another strategy with the usual collectives or those of the best; on few GPUs also with collectives and
        buckets of its own."""
        start = Option(other.strategy, DEFAULT_ORDER, self.prices.use.algorithm, np.inf, other.memory_bytes)
        if other.floor_s >= best.seconds * FASTER:
            return start
        others = [start, replace(start, algorithm=best.algorithm)]
        if few:
            others.append(refinement.cheapest(start))
            sized = (one for option in others for one in (option, *refinement.sizes(option)))
            if all(refinement.bound(one) >= best.seconds * FASTER for one in sized):
                return start
        start = refinement.best(start, lambda _: iter(others))
        return refinement.best(start, refinement.sizes) if few else start

    def _trying(self, now: str) -> None:
        self.say(len(self.simulator.known), None, now)

    def _option(self, priced: Priced, at: int) -> Option:
        seconds, strategy = self._seconds(priced, at), priced.strategy(at, self.workload)
        return Option(strategy, DEFAULT_ORDER, self.prices.use.algorithm, seconds, float(priced.memory_bytes[at]))

    def _seconds(self, priced: Priced, at: int) -> float:
        self.seconds[at] = self.simulator.seconds(
            priced.strategy(at, self.workload), algorithm=self.prices.use.algorithm
        )
        return self.seconds[at]

    def _prepare(self, priced: Priced, some: list[int]) -> None:
        strategies = (priced.strategy(at, self.workload) for at in some)
        self.simulator.prepare((strategy, DEFAULT_ORDER, self.prices.use.algorithm) for strategy in strategies)

    def _known(self, priced: Priced) -> NDArray[np.float64]:
        """Simulated step times by candidate; NaN if not simulated."""
        known = np.full(len(priced.candidates), np.nan)
        known[list(self.seconds)] = list(self.seconds.values())
        return known

    def _tell(self, found: PlannerSearch) -> None:
        best = show_seconds(float(found.seconds[found.best]))
        self.say(len(found.order), None, f"simulated; best {best}, nothing below {show_seconds(found.bound_s)}")

    def _strands(self, priced: Priced, plain_at: int, plain: Option, refinement: Refinement) -> Iterator[Strand]:
        """What each strand makes of the baseline alone; whoever is in a hurry is not kept."""
        try:
            with unwrapped_interrupts():
                yield from self._strands_alone(priced, plain_at, plain, refinement)
        except KeyboardInterrupt:
            self.interrupted = True

    def _strands_alone(self, priced: Priced, plain_at: int, plain: Option, refinement: Refinement) -> Iterator[Strand]:
        for strand in STRANDS if not self.interrupted else ():
            self.say(0, None, f"gain of {strand.name} alone")
            at, _ = best_alone(priced, alone(priced, plain_at, strand), lambda at: self._seconds(priced, at))
            option = self._option(priced, at)
            yield Strand(strand.name, strand.about, option, plain.seconds / option.seconds)
        for name, (about, others) in refinement.strands().items() if not self.interrupted else ():
            self.say(0, None, f"gain of {name} alone")
            option = refinement.best(plain, others)
            yield Strand(name, about, option, plain.seconds / option.seconds)

    def _nearest(self, priced: Priced) -> tuple[NearestFit, ...]:
        """What does not fit and is nearest to it."""
        short = np.flatnonzero(~priced.fits & np.isfinite(priced.memory_bytes))
        order = short[np.argsort(priced.memory_bytes[short], kind="stable")[:MOST_NEAREST]]
        return tuple(
            NearestFit(priced.strategy(at, self.workload), float(priced.memory_bytes[at])) for at in order.tolist()
        )

    def _shortage(self, priced: Priced) -> MemoryShortage:
        """Nothing fits: what comes nearest, and how many GPUs would hold it."""
        nearest = self._nearest(priced)[0]
        device = self.prices.pricer.device
        gpus = f"{self.question.cluster.gpus} {unlimited(device.name)}"
        room = usable_bytes(device.memory_bytes)
        needed = int(np.ceil(self.question.cluster.gpus * nearest.memory_bytes / room))
        return MemoryShortage(
            f"{self.workload.name} does not fit on {gpus} in any split of the "
            f"space: {nearest.strategy.said()} is closest and needs {show_size(nearest.memory_bytes)} of "
            f"{show_size(device.memory_bytes)} on each: give about {needed} GPUs, larger ones, or a smaller batch or "
            "sequence",
            nearest.memory_bytes,
        )


def runnable_ones(candidates: Candidates, workload: Workload) -> NDArray[np.int64]:
    """Candidates that some framework can run as they stand; those that ask the same of it are looked at once."""
    column = candidates.column
    facts = [
        column("tensor") > 1, column("sequence"), column("context"), column("expert") > 1, column("pipeline") > 1,
        column("schedule"), column("micro_batches") % column("pipeline") == 0, column("micro_batches") > 1,
        column("zero"), column("recompute"), column("data") * column("context") > 1, column("interleave"),
        column("exchange"), column("folded"),
    ]  # fmt: skip
    _, first, which = np.unique(np.column_stack(facts), axis=0, return_index=True, return_inverse=True)
    can = [is_runnable(asked_of(candidates.strategy(at), workload)) for at in first.tolist()]
    return np.flatnonzero(np.array(can, np.bool_)[which.ravel()])
