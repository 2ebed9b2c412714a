"""What is left to choose once degrees are settled: cuts, collectives, placement, buckets, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np

from ropewalk.collectives.choice import collective_choice
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import InputError
from ropewalk.planner.answer import Option
from ropewalk.planner.channels import Channel
from ropewalk.planner.cuts import best_cuts
from ropewalk.planner.layout import Layout
from ropewalk.planner.orders import orders
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import recomputed_in
from ropewalk.planner.tailored import Tailor
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.placement import AXES, Placement
from ropewalk.strategy.strategy import Strategy

FASTER = 1 - 1e-6
"""What is faster by less is not worth another choice."""
MIB = 2**20
BUCKETS = (0.0, 5.0 * MIB, 25.0 * MIB, 100.0 * MIB, 400.0 * MIB, 1600.0 * MIB)
"""Bytes of gradients that are collected before they are reduced."""
MOST_SYNTHESISED = 32
"""Ranks of a group up to which collectives are made for the network while a search waits."""
FEW_GPUS = 16
"""Up to so many, every strategy and every placement that could still win has the collectives that suit it best."""
MOST_CUTS = 32
"""Cuts that are tried there."""
MOST_TRIED = 3
"""Algorithms of a purpose that are simulated, cheapest per byte first, and placements, shortest replay first."""
WORTH_A_WORD = 0.995
NOT_WORSE = 1.01
"""Placements whose replay is longer by more than this factor are not simulated."""
PURPOSES: dict[str, tuple[Channel, ...]] = {
    "data": (Channel.DATA_REDUCE, Channel.DATA_SCATTER, Channel.EXPERT_REDUCE, Channel.EXPERT_SCATTER),
    "zero": (Channel.DATA_GATHER, Channel.EXPERT_GATHER),
    "tensor": (Channel.TENSOR_REDUCE, Channel.TENSOR_GATHER, Channel.TENSOR_SCATTER),
    "context": (Channel.CONTEXT_GATHER, Channel.CONTEXT_SCATTER, Channel.HEADS),
    "expert": (Channel.EXPERT,),
    "tables": (Channel.TABLES,),
}


@dataclass(frozen=True, eq=False)
class Refinement:
    """Tries what is left open of an option; what it finds is simulated, fits and, unless allowed, can be run."""

    prices: StrategyPrices
    priced: Priced
    simulator: Simulator
    unrunnable: bool = False
    _known: dict[tuple[Layout, tuple[Channel, ...], str], list[float] | None] = field(default_factory=dict)
    """Costs of channels by layout and algorithm."""

    def strands(self) -> dict[str, tuple[str, Callable[[Option], Iterator[Option]]]]:
        """Every strand by name: what it is, and the other options that it makes of one."""
        return {
            "collectives": ("the algorithm of every group", self.collectives),
            "placement": ("the assignment of ranks to GPUs", self.placements),
            "buckets": ("gradient buckets and their order", self.buckets),
            "cuts": ("stage boundaries, and recomputed layers per stage", self.cuts),
        }

    def best(self, start: Option, others: Callable[[Option], Iterator[Option]]) -> Option:
        """The fastest of the options that a strand makes; the one it started from stays unless one is faster.

        What cannot be faster by its replay is not simulated. Communication that has not been priced takes as long to
        price as to simulate, so options with other collectives or placements are not replayed.
        """
        best, priced, tried = start, (start.algorithm, start.placement), list(others(start))
        self.simulator.prepare(
            (one.strategy, one.placement, one.algorithm) for one in tried if self._may_be_simulated(one)
        )
        for other in tried:
            if (other.algorithm, other.placement) == priced and self.bound(other) >= best.seconds * FASTER:
                continue
            seconds = self.seconds(other)
            if seconds < best.seconds * FASTER:
                best = replace(other, seconds=seconds)
        return best

    def fastest(self, options: Iterable[Option]) -> Option | None:
        """The fastest of some options, simulated; None where none fits and can be run."""
        timed = [replace(option, seconds=self.seconds(option)) for option in options]
        return min((one for one in timed if one.seconds < float("inf")), key=lambda one: one.seconds, default=None)

    def refined(self, start: Option, say: Callable[[str], None] = lambda now: None) -> Option:
        """Strand after strand, until none finds anything faster."""
        best, before = start, None
        while before is not best:
            before = best
            for name, (_, others) in self.strands().items():
                say(f"trying other {name}")
                best = self.best(best, others)
        return best

    def unrunnable_order(self, best: Option) -> Option | None:
        """A faster order of gradients that no framework runs; None if none is, or if it may be the answer.

        What is less than half a percent faster is not worth a word.
        """
        if self.unrunnable:
            return None
        freely, usual = replace(self, unrunnable=True), self.priced.candidates.space.usual.order
        found = freely.best(replace(best, strategy=replace(best.strategy, order=usual)), freely.buckets)
        return found if found.seconds < best.seconds * WORTH_A_WORD else None

    def bound(self, option: Option) -> float:
        """A lower bound on the step of an option in seconds: its replay, or 0."""
        strategy = option.strategy
        tailor = self._tailor(option)
        if tailor is None or not strategy.order.is_plain or not strategy.order.overlap:
            return 0.0
        firsts = strategy.stages or tailor.even
        again = recomputed_in(strategy, firsts, self.prices.workload)
        try:
            return float(tailor.cut_as(np.array([firsts]), np.array([again])).replay_s[0])
        except InputError:
            return float("inf")  # an algorithm that has nothing for some group

    def _tailor(self, option: Option) -> Tailor | None:
        at = self.priced.candidates.place(option.strategy)
        bucket = option.strategy.order.bucket_bytes
        return None if at is None else Tailor(self.prices, self.priced, at, option.placement, option.algorithm, bucket)

    def collectives(self, option: Option) -> Iterator[Option]:
        """Other algorithms for one purpose at a time, where they cost less when nothing else is on the network."""
        if option.strategy.parts:
            yield from self._collectives_of_parts(option)
            return
        chosen = collective_choice(option.algorithm)
        for purpose, names in self._promising(option):
            yield from (replace(option, algorithm=str(chosen.having(purpose, name))) for name in names[:MOST_TRIED])

    def cheapest(self, option: Option) -> Option:
        """The option with the algorithm for every purpose that costs least when nothing else is on the network."""
        chosen = collective_choice(option.algorithm)
        for purpose, names in self._promising(option):
            chosen = chosen.having(purpose, names[0]) if names else chosen
        return replace(option, algorithm=str(chosen))

    def _promising(self, option: Option) -> Iterator[tuple[str, list[str]]]:
        """By purpose, algorithms that cost less than the one it has, cheapest per byte first."""
        strategy, chosen = option.strategy, collective_choice(option.algorithm)
        layout = Layout(
            strategy.pipeline, strategy.data, strategy.expert, strategy.context, strategy.tensor, option.placement,
            strategy.fold_experts,
        )  # fmt: skip
        used = self.prices.channels(layout)
        for purpose, channels in PURPOSES.items():
            idle = purpose == "zero" and strategy.zero == 0
            mine = [channel for channel in channels if channel in used and not idle]
            usual = self._costs(layout, mine, option.algorithm) if mine else None
            if usual is None:
                continue
            size = {"tensor": strategy.tensor, "context": strategy.context, "expert": strategy.expert}
            ranks = size.get(purpose, strategy.replicas)
            promising = []
            for name, record in COLLECTIVES.items():
                tried = str(chosen.having(purpose, name))
                most = min(record.auto_up_to or ranks, MOST_SYNTHESISED if record.own_paths else ranks)
                if record.auto_up_to == 0 or ranks > most or tried == option.algorithm:
                    continue
                found = self._costs(layout, mine, tried)
                if found is not None and any(new < old * FASTER for new, old in zip(found, usual, strict=True)):
                    promising.append((sum(found[1::2]), sum(found[::2]), name))
            yield purpose, [name for _, _, name in sorted(promising)]

    def _collectives_of_parts(self, option: Option) -> Iterator[Option]:
        """Other algorithms for gradients of stages with replicas of their own: those that need no synthesis."""
        for name, record in COLLECTIVES.items():
            if record.auto_up_to != 0 and not record.own_paths:
                yield replace(option, algorithm=str(collective_choice(option.algorithm).having("data", name)))

    def placements(self, option: Option) -> Iterator[Option]:
        """Other orders of ranks that put some rank elsewhere, those with the shortest replays as usual."""
        if option.strategy.parts:
            return
        usual = replace(option, algorithm=self.prices.use.algorithm)
        longest = self.bound(usual) * NOT_WORSE
        seen = {Placement(option.strategy, option.placement).grid.tobytes()}
        found: list[tuple[float, str]] = []
        for names in permutations(AXES):
            order = "-".join(names)
            where = Placement(option.strategy, order).grid.tobytes()
            if where not in seen:
                seen.add(where)
                found.append((self.bound(replace(usual, placement=order)), order))
        for seconds, order in sorted(found)[:MOST_TRIED]:
            if seconds <= longest:
                yield replace(option, placement=order)
                if self.simulator.question.cluster.gpus <= FEW_GPUS:
                    yield self.cheapest(replace(usual, placement=order))

    def sizes(self, option: Option) -> Iterator[Option]:
        """Other sizes of buckets, where gradients fill any."""
        strategy = option.strategy
        alone = strategy.replicas == 1 and all(one.replicas == 1 for one in strategy.parts)
        if alone or strategy.zero >= 3 or not strategy.order.is_plain:
            return
        for size in BUCKETS:
            if size != strategy.order.fusion:
                yield replace(option, strategy=replace(strategy, order=replace(strategy.order, fusion=size)))

    def buckets(self, option: Option) -> Iterator[Option]:
        sizes = list(self.sizes(option))
        yield from sizes
        for other in orders(self.simulator.question, option) if sizes else ():
            if self.unrunnable or self._runs(other, option.algorithm):
                yield self._sized(option, other)

    def cuts(self, option: Option) -> Iterator[Option]:
        """The cut with the shortest replay: stages with recomputed blocks of their own, or as many in all of them.

        On few GPUs all cuts that could be faster by their replay: which of them is, simulation says.
        """
        tailor = self._tailor(option)
        if option.strategy.pipeline == 1 or tailor is None:
            return
        many = MOST_CUTS if self.simulator.question.cluster.gpus <= FEW_GPUS else 1
        for alike in (False, True):
            found = best_cuts(tailor, alike=alike, many=many)
            for at in np.flatnonzero(np.isfinite(found.replay_s)).tolist():
                if at == 0 or found.replay_s[at] < option.seconds * FASTER:
                    made = tailor.strategy(found, at)
                    plan = replace(option.strategy, stages=made.stages, choices=made.choices)
                    yield replace(option, strategy=plan, memory_bytes=float(found.memory_bytes[at]))
            if (found.again == found.again[:, :1]).all():
                break  # as many in all pieces already

    def _sized(self, option: Option, strategy: Strategy) -> Option:
        """The option with another strategy, and what that holds."""
        return replace(option, strategy=strategy, memory_bytes=self.prices.memory_of(strategy))

    def _costs(self, layout: Layout, channels: list[Channel], algorithm: str) -> list[float] | None:
        """Seconds per launch and per byte of some channels; None where the algorithm does not apply."""
        key = layout, tuple(channels), algorithm
        if key not in self._known:
            try:
                found = self.prices.layout(layout, algorithm, channels).seconds[:, channels][:, :, [0, 2]]
                self._known[key] = [float(one) for one in found.max(0).ravel()]
            except InputError:
                self._known[key] = None
        return self._known[key]

    def seconds(self, option: Option) -> float:
        """The simulated step time, infinite for what does not fit or cannot be run."""
        if not self._may_be_simulated(option):
            return float("inf")
        try:
            return self.simulator.seconds(option.strategy, option.placement, option.algorithm)
        except InputError:
            return float("inf")  # an algorithm that has nothing for some group

    def _may_be_simulated(self, option: Option) -> bool:
        return option.memory_bytes <= self.prices.room and (self.unrunnable or self._can_run(option))

    def _can_run(self, option: Option) -> bool:
        return self._runs(option.strategy, option.algorithm)

    def _runs(self, strategy: Strategy, algorithm: str) -> bool:
        answers = runnable(strategy, self.prices.workload, algorithm=algorithm)
        return any(why is None for why in answers.values())
