"""DAPPLE's dynamic program over cuts and GPU sets, from the last stage to the first.

Fan et al. (PPoPP 2021) put stages one behind the other and keep, for every state and every set of occupied GPUs, the
plan with the least latency by their formula. Here stages are put in front of each other, for two reasons. The formula
then needs only two numbers of what lies behind (`_suffix_kernel.py`), so that several plans can be kept where none is
better in both. And a stage knows how many stages follow, which is how many micro-batches it keeps in flight. The three
placement policies see the machines in mirror image, so that the first stage still gets the first GPUs.

What comes out is ranked by a formula; the clock has the last word elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ropewalk.arrays import Ints32
from ropewalk.pipeline._suffix_kernel import Rest, Sending, StageSums, StepTerms, Suffixes, Summing, put_in_front
from ropewalk.pipeline.costs import Costs, LinearCost
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.masks import members
from ropewalk.pipeline.placement import candidates
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.state_groups import StateGroups
from ropewalk.pipeline.width import Width
from ropewalk.strategy.part import Part

PROPOSALS = 512
"""More are not worth writing down."""


@dataclass(frozen=True)
class StageOption:
    """A way to use some GPUs for a stage."""

    replicas: int
    tensor: int

    @property
    def gpus(self) -> int:
        return self.replicas * self.tensor


def _nothing_kept(states: int, slots: int) -> Suffixes:
    shape = (states + 1, slots)
    return Suffixes(
        np.full(shape, np.inf), np.full(shape, np.inf), np.full(shape, -1, np.int32), np.zeros(shape, np.int32),
        np.full(shape, np.inf), np.full((*shape, 3), -1, np.int32),
    )  # fmt: skip


def propose(
    costs: Costs, groups: StateGroups, micro_batch: int, recompute: bool, width: Width, *, shallow: bool = False
) -> list[tuple[float, PipelinePlan]]:
    """Plans for one size of micro-batches with the steps that the formula expects, best first.

    `shallow` counts one micro-batch in flight where memory is checked, for models that fit in no other way.
    """
    search = _Search(costs, groups, micro_batch, recompute, width, shallow)
    best = sorted(search.ends(), key=lambda end: end[0])[:PROPOSALS]
    return [(estimate, search.plan(number, slot)) for estimate, number, slot in best]


@dataclass(eq=False)
class _Search:
    costs: Costs
    groups: StateGroups
    micro_batch: int
    recompute: bool
    width: Width
    shallow: bool
    chosen: list[tuple[tuple[int, ...], StageOption]] = field(default_factory=list)
    numbers: dict[tuple[int, StageOption], int] = field(default_factory=dict)
    occupied: list[int] = field(default_factory=list)
    kept: dict[int, Suffixes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        machines = self.costs.machines
        sizes = np.diff([0, *machines.separators])[::-1]
        self.mirrored = Machines(machines.gpus, tuple(np.cumsum(sizes).tolist()))
        self.micro_batches = self.costs.terms.global_batch // self.micro_batch
        one = self._columns(StageOption(1, 1), LinearCost(0.0, 0.0))
        self.rest_own, self.rest_backward = one.forward + one.backward, one.backward
        scale = self.micro_batch / self.costs.profile.batch
        self.crossing = self.groups.at_ends(self.costs.profile.crossing_bytes) * scale
        self.priced: dict[tuple[StageOption, LinearCost], StageSums] = {}

    def ends(self) -> Iterator[tuple[float, int, int]]:
        """Estimate, number of the set of GPUs and slot of every suffix that is a whole pipeline."""
        gpus, states = self.costs.machines.gpus, self.groups.count
        root = _nothing_kept(states, 1)
        root.work[states, 0] = 0.0
        root.left[states, 0] = 0.0
        waiting: dict[int, dict[int, Suffixes]] = {0: {0: root}}
        for count in range(gpus + 1):
            level = waiting.pop(count, {})
            best = sorted(level, key=lambda mask: (float(level[mask].estimate.min()), mask))[: self.width.sets]
            for mask in best:
                number = len(self.occupied)
                self.occupied.append(mask)
                self.kept[number] = level[mask]
                self._extend(mask, number, waiting)
        for number in range(1, len(self.occupied)):
            suffixes = self.kept[number]
            for slot in np.flatnonzero(np.isfinite(suffixes.work[0])):
                yield float(suffixes.estimate[0, slot]), number, int(slot)

    def _extend(self, mask: int, number: int, waiting: dict[int, dict[int, Suffixes]]) -> None:
        free = self.costs.machines.gpus - mask.bit_count()
        here = self.kept[number]
        used = np.unique(here.gpus[here.gpus >= 0])
        for option in self._options(free):
            for taken in candidates(self.mirrored, mask, option.gpus):
                chosen = self._number(taken, option)
                level = waiting.setdefault(mask.bit_count() + option.gpus, {})
                target = level.get(mask | taken)
                if target is None:
                    target = level[mask | taken] = _nothing_kept(self.groups.count, self.width.slots)
                self._put(target, here, number, chosen, used, free - option.gpus)

    def _put(self, target: Suffixes, here: Suffixes, number: int, chosen: int, used: Ints32, free: int) -> None:
        costs, terms = self.costs, self.costs.terms
        gpus, option = self.chosen[chosen]
        rate = np.ones(len(self.chosen))
        for other in used:
            rate[other] = costs.handover_rate(gpus, self.chosen[other][0])
        stage = Part(0, 0, gpus, option.tensor)
        line = costs.summing_gradients(stage)
        group = costs.summing(gpus[: option.tensor]) if option.tensor > 1 else LinearCost(0.0, 0.0)
        if (option, group) not in self.priced:
            self.priced[option, group] = self._columns(option, group)
        memory = np.inf if terms.memory_bytes is None else float(terms.memory_bytes)
        put_in_front(
            target, here, number, chosen, self.priced[option, group],
            Sending(self.crossing, rate, costs.machines.start_up_s),
            Summing(line.start_up, line.per_byte, terms.overlap_sums),
            StepTerms(self.micro_batches, 1 if self.shallow else self.micro_batches, memory, self.recompute),
            Rest(self.rest_own, self.rest_backward, free),
        )  # fmt: skip

    def _options(self, free: int) -> Iterator[StageOption]:
        for tensor in self.costs.terms.tensor:
            for replicas in self.width.replicas or range(1, free + 1):
                if replicas * tensor <= free and self._worth(replicas):
                    yield StageOption(replicas, tensor)

    def _worth(self, replicas: int) -> bool:
        """One replica more than the last that lowered the share of the fullest only costs sums."""
        if not self.costs.terms.whole_samples or replicas == 1:
            return replicas <= self.micro_batch or not self.costs.terms.whole_samples
        return self.costs.share(self.micro_batch, replicas) < self.costs.share(self.micro_batch, replicas - 1)

    def _number(self, taken: int, option: StageOption) -> int:
        if (taken, option) not in self.numbers:
            last = self.costs.machines.gpus - 1
            self.numbers[taken, option] = len(self.chosen)
            self.chosen.append((tuple(sorted(last - gpu for gpu in members(taken))), option))
        return self.numbers[taken, option]

    def _columns(self, option: StageOption, group: LinearCost) -> StageSums:
        """Running sums over groups of states for one GPU."""
        costs = self.costs
        share = costs.share(self.micro_batch, option.replicas)
        prices = costs.prices.at(share, option.tensor)
        meet = group.start_up * prices.meetings
        forward = prices.forward_s + meet + prices.met_forward_bytes * group.per_byte
        backward = prices.backward_s + meet + prices.met_backward_bytes * group.per_byte
        if self.recompute:
            backward = backward + forward
        entering = np.append(0.0, costs.profile.crossing_bytes * (share / costs.profile.batch))
        held = prices.parameter_bytes * costs.terms.state_multiple
        columns = (forward, backward, prices.backward_s, prices.parameter_bytes, held, prices.kept_bytes, entering)
        return StageSums(*(self.groups.at_bounds(column) for column in columns))

    def plan(self, number: int, slot: int) -> PipelinePlan:
        stages = []
        first = 0
        while first < self.groups.count:
            suffixes = self.kept[number]
            gpus, option = self.chosen[int(suffixes.gpus[first, slot])]
            source, end, before = (int(value) for value in suffixes.came[first, slot])
            stages.append(Part(self.groups.bounds[first], self.groups.bounds[end] - 1, gpus, option.tensor))
            number, first, slot = source, end, before
        return PipelinePlan(tuple(stages), "1f1b", self.micro_batch, self.micro_batches, self.recompute)
