"""What is left to choose once degrees are settled: collectives, placement, buckets and cuts, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from ropewalk.collectives.choice import collective_choice
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import InputError
from ropewalk.planner.answer import Option
from ropewalk.planner.channels import Channel
from ropewalk.planner.layout import Layout, layout_costs
from ropewalk.planner.pricing import Prices
from ropewalk.planner.simulated import Simulator
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.memory import memory
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.shares import shares_of
from ropewalk.strategy.stages import cut

FASTER = 1 - 1e-6
"""What is faster by less is not worth another choice."""
MIB = 2**20
BUCKETS = (0.0, 5.0 * MIB, 25.0 * MIB, 100.0 * MIB, 400.0 * MIB, 1600.0 * MIB)
"""Bytes of gradients that are collected before they are reduced."""
PLACEMENTS = (DEFAULT_ORDER, "tp-cp-pp-ep-dp")
"""Orders of ranks that frameworks have: Megatron-LM's, and the one of `--use-tp-pp-dp-mapping`."""
ALL_PLACEMENTS = (*PLACEMENTS, "cp-tp-ep-dp-pp", "ep-dp-tp-cp-pp", "pp-tp-cp-ep-dp")
MOST_SYNTHESISED = 32
"""Ranks of a group up to which collectives are made for the network while a search waits."""
MOST_TRIED = 3
"""Algorithms of a purpose that are simulated, cheapest per byte first."""
MOST_CUTS = 16
"""Pieces up to which every border between them is tried one layer earlier and later."""
PURPOSES: dict[str, tuple[Channel, ...]] = {
    "data": (Channel.DATA_REDUCE, Channel.DATA_SCATTER, Channel.EXPERT_REDUCE, Channel.EXPERT_SCATTER),
    "zero": (Channel.DATA_GATHER, Channel.EXPERT_GATHER),
    "tensor": (Channel.TENSOR_REDUCE, Channel.TENSOR_GATHER, Channel.TENSOR_SCATTER),
    "context": (Channel.CONTEXT_GATHER, Channel.CONTEXT_SCATTER),
    "expert": (Channel.EXPERT,),
    "tables": (Channel.TABLES,),
}


@dataclass(frozen=True, eq=False)
class Refinement:
    """Tries what is left open of an option; what it finds is simulated, fits and, unless allowed, can be run."""

    prices: Prices
    simulator: Simulator
    unrunnable: bool = False
    _known: dict[tuple[Layout, tuple[Channel, ...], str], list[float] | None] = field(default_factory=dict)
    """Costs of channels by layout and algorithm."""

    def strands(self) -> dict[str, tuple[str, Callable[[Option], Iterator[Option]]]]:
        """Every strand by name: what it is, and the other options that it makes of one."""
        return {
            "collectives": ("which algorithm every group runs", self.collectives),
            "placement": ("which rank is on which GPU", self.placements),
            "buckets": ("gradients that are reduced together", self.buckets),
            "cuts": ("where stages begin", self.cuts),
        }

    def best(self, start: Option, others: Callable[[Option], Iterator[Option]]) -> Option:
        """The fastest of the options that a strand makes; the one it started from stays unless one is faster."""
        best = start
        for other in others(start):
            seconds = self._seconds(other)
            if seconds < best.seconds * FASTER:
                best = replace(other, seconds=seconds)
        return best

    def fastest(self, options: Iterable[Option]) -> Option | None:
        """The fastest of some options, simulated; None where none fits and can be run."""
        timed = [replace(option, seconds=self._seconds(option)) for option in options]
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

    def collectives(self, option: Option) -> Iterator[Option]:
        """Other algorithms for one purpose at a time, where they cost less when nothing else is on the network."""
        strategy, chosen = option.strategy, collective_choice(option.algorithm)
        if strategy.parts:
            yield from self._collectives_of_parts(option)
            return
        layout = Layout(
            strategy.pipeline, strategy.data, strategy.expert, strategy.context, strategy.tensor, option.placement
        )
        used = self.prices.channels(layout)
        for purpose, channels in PURPOSES.items():
            mine = [channel for channel in channels if channel in used]
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
                    promising.append((sum(found[1::2]), sum(found[::2]), tried))
            yield from (replace(option, algorithm=tried) for _, _, tried in sorted(promising)[:MOST_TRIED])

    def _collectives_of_parts(self, option: Option) -> Iterator[Option]:
        """Other algorithms for gradients of stages with replicas of their own: those that need no synthesis."""
        for name, record in COLLECTIVES.items():
            if record.auto_up_to != 0 and not record.own_paths:
                yield replace(option, algorithm=str(collective_choice(option.algorithm).having("data", name)))

    def placements(self, option: Option) -> Iterator[Option]:
        if option.strategy.parts:
            return
        for order in ALL_PLACEMENTS if self.unrunnable else PLACEMENTS:
            if order != option.placement:
                yield replace(option, placement=order)

    def buckets(self, option: Option) -> Iterator[Option]:
        strategy = option.strategy
        alone = strategy.replicas == 1 and all(one.replicas == 1 for one in strategy.parts)
        if alone or strategy.zero >= 3 or not strategy.order.is_plain:
            return
        for size in BUCKETS:
            if size != strategy.order.fusion:
                yield replace(option, strategy=replace(strategy, order=replace(strategy.order, fusion=size)))

    def cuts(self, option: Option) -> Iterator[Option]:
        """Every border between pieces one layer earlier and one later."""
        strategy, layers = option.strategy, len(self.prices.workload.layers)
        if strategy.pipeline == 1 or strategy.pieces > MOST_CUTS or strategy.choices or strategy.parts:
            return
        workload = self.prices.workload.at_batch(strategy.micro_batch)
        shares = shares_of(workload, strategy)
        firsts = cut(workload, strategy, shares, self.prices.listed).firsts
        for border in range(1, len(firsts)):
            for first in (firsts[border] - 1, firsts[border] + 1):
                moved = (*firsts[:border], first, *firsts[border + 1 :])
                if all(one < after for one, after in zip(moved, (*moved[1:], layers), strict=True)):
                    plan = replace(strategy, stages=moved)
                    held = memory(plan, shares, cut(workload, plan, shares, self.prices.listed), self._element_bytes)
                    yield replace(option, strategy=plan, memory_bytes=held.most)

    @property
    def _element_bytes(self) -> float:
        return self.prices.listed.element_bytes

    def _costs(self, layout: Layout, channels: list[Channel], algorithm: str) -> list[float] | None:
        """Seconds per launch and per byte of some channels; None where the algorithm does not apply."""
        key = layout, tuple(channels), algorithm
        if key not in self._known:
            use = replace(self.prices.use, algorithm=algorithm)
            try:
                found = layout_costs(layout, channels, self.prices.fabric, use).seconds[:, channels][:, :, [0, 2]]
                self._known[key] = [float(one) for one in found.max(0).ravel()]
            except InputError:
                self._known[key] = None
        return self._known[key]

    def _seconds(self, option: Option) -> float:
        """The simulated step time, infinite for what does not fit or cannot be run."""
        room = self.prices.pricer.device.memory_bytes
        if option.memory_bytes > room or not (self.unrunnable or self._can_run(option)):
            return float("inf")
        try:
            return self.simulator.seconds(option.strategy, option.placement, option.algorithm)
        except InputError:
            return float("inf")  # an algorithm that has nothing for some group

    def _can_run(self, option: Option) -> bool:
        answers = runnable(option.strategy, self.prices.workload, algorithm=option.algorithm)
        return any(why is None for why in answers.values())
