"""Seconds and bytes of the stages of a plan: a model's states, on machines, under terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.profile import Profile
from ropewalk.pipeline.schedules import splits_backward
from ropewalk.pipeline.state_prices import MeasuredPrices, PricedStates, StatePrices
from ropewalk.pipeline.terms import Terms
from ropewalk.strategy.part import Part
from ropewalk.timetable.stage_times import StageTimes

PROBE_BYTES = 1e9


@dataclass(frozen=True)
class LinearCost:
    """Seconds that grow with bytes: `start_up + bytes * per_byte`."""

    start_up: float
    per_byte: float

    def seconds(self, size_bytes: float, times: float = 1.0) -> float:
        return self.start_up * times + size_bytes * self.per_byte


class Costs:
    """Answers what a stage costs; remembers what it was asked about GPU sets."""

    def __init__(self, model: Profile | PricedStates, machines: Machines, terms: Terms) -> None:
        self.prices: PricedStates = MeasuredPrices(model, terms.weight_share) if isinstance(model, Profile) else model
        self.machines = machines
        self.terms = terms
        self.profile = self.prices.profile
        self.states = self.profile.states
        self._sums: dict[tuple[int, ...], LinearCost] = {}
        self._handovers: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}

    def share(self, micro_batch: int, replicas: int) -> float:
        """Samples of the fullest replica of a stage."""
        return float(ceil(micro_batch / replicas)) if self.terms.whole_samples else micro_batch / replicas

    def of_share(self, micro_batch: int, stage: Part) -> StatePrices:
        return self.prices.at(self.share(micro_batch, stage.replicas), stage.tensor)

    def summing(self, gpus: tuple[int, ...]) -> LinearCost:
        """What it takes these GPUs to add up bytes that each of them has."""
        if gpus not in self._sums:
            start_up = self.machines.all_reduce(gpus, 0.0)
            per_byte = (self.machines.all_reduce(gpus, PROBE_BYTES) - start_up) / PROBE_BYTES
            self._sums[gpus] = LinearCost(start_up, per_byte)
        return self._sums[gpus]

    def summing_gradients(self, stage: Part) -> LinearCost:
        """What it takes the replicas of a stage to add up the gradients that one GPU holds.

        The GPUs of a replica hold different parts; between machines their sums share the NICs.
        """
        if stage.replicas == 1:
            return LinearCost(0.0, 0.0)
        line = self.summing(stage.sharers)
        across = len({self.machines.machine_of(gpu) for gpu in stage.sharers}) > 1
        return LinearCost(line.start_up, line.per_byte * (ceil(stage.tensor / self.machines.nics) if across else 1))

    def handover(self, source: Part, target: Part, micro_batch: int) -> float:
        """Seconds in which a micro-batch crosses from one stage to the next, or its gradients back."""
        rate = self.handover_rate(source.workers, target.workers)
        return self.machines.start_up_s + self.crossing(source.last, micro_batch) / rate

    def handover_rate(self, sources: tuple[int, ...], targets: tuple[int, ...]) -> float:
        """Bytes/s of whole activations between two sets of GPUs."""
        if (sources, targets) not in self._handovers:
            self._handovers[sources, targets] = self.machines.handover_rate(sources, targets)
        return self._handovers[sources, targets]

    def entering(self, sets: Sequence[tuple[int, ...]], micro_batch: int) -> Floats:
        """By piece on these sets of GPUs and by the state it begins with: seconds in which a micro-batch reaches it.

        Nothing is handed over to the first piece, nor between pieces on the same GPUs.
        """
        crossing = np.append(0.0, self.profile.crossing_bytes) * (micro_batch / self.profile.batch)
        found = np.zeros((len(sets), self.states + 1))
        for at, (source, target) in enumerate(pairwise(sets), start=1):
            if source != target:
                found[at] = self.machines.start_up_s + crossing / self.handover_rate(source, target)
        return found

    def crossing(self, last: int, micro_batch: int) -> float:
        """Bytes of a micro-batch that cross the cut behind a state."""
        return self.profile.handed_on(last) * micro_batch / self.profile.batch

    def passes(self, stage: Part, micro_batch: int) -> tuple[float, float]:
        """Seconds of the forward and of the backward pass of a micro-batch."""
        prices = self.of_share(micro_batch, stage)
        first, end = stage.first, stage.last + 1
        forward = float(prices.forward_s[end] - prices.forward_s[first])
        backward = float(prices.backward_s[end] - prices.backward_s[first])
        if stage.tensor > 1:
            group = self.summing(stage.workers[: stage.tensor])
            meetings = float(prices.meetings[end] - prices.meetings[first])
            forward += group.seconds(float(prices.met_forward_bytes[end] - prices.met_forward_bytes[first]), meetings)
            backward += group.seconds(
                float(prices.met_backward_bytes[end] - prices.met_backward_bytes[first]), meetings
            )
        return forward, backward

    def weight_pass(self, stage: Part, micro_batch: int) -> float:
        """Seconds of the backward pass of a micro-batch for gradients of weights alone."""
        prices = self.of_share(micro_batch, stage)
        return float(prices.weight_s[stage.last + 1] - prices.weight_s[stage.first])

    def all_reduce(self, stage: Part, micro_batch: int, schedule: str, twin: Part | None = None) -> float:
        """Seconds for which gradients of a stage are still being added up when its last backward pass is done.

        `twin` is the same stage in a second copy of the model, if there is one: both add up theirs together, and what
        the quicker one of the two hides is hidden.
        """
        holders = stage if twin is None else replace(stage, workers=stage.workers + twin.workers)
        if holders.replicas == 1:
            return 0.0
        line = self.summing_gradients(holders)
        part = slice(stage.first, stage.last + 2)
        held = self.of_share(micro_batch, stage).parameter_bytes
        weights = held[part] - held[stage.first]
        if not self.terms.overlap_sums:
            return line.seconds(float(weights[-1]))
        backward = self._hiding(stage, micro_batch, schedule)
        if twin is not None:
            backward = np.minimum(backward, self._hiding(twin, micro_batch, schedule))
        # State k's gradients are there when all but states before k are done; from then on theirs and those of the
        # states before k are left to add up.
        return line.start_up + float((weights[1:] * line.per_byte - backward[:-1]).max(initial=0.0))

    def _hiding(self, stage: Part, micro_batch: int, schedule: str) -> Floats:
        """Running sums over the states of a stage of the backward passes behind which gradients may be added up."""
        prices = self.of_share(micro_batch, stage)
        seconds = prices.weight_s if splits_backward(schedule) else prices.backward_s
        return np.asarray(seconds[stage.first : stage.last + 2] - seconds[stage.first])

    def times(self, plan: PipelinePlan) -> StageTimes:
        """Seconds of every piece of a plan, those of a second copy of the model behind the first."""
        pieces, size, count = plan.pieces, plan.micro_batch, len(plan.stages)
        passes = np.array([self.passes(piece, size) for piece in pieces])
        forward, backward = passes[:, 0].copy(), passes[:, 1].copy()
        weight = np.zeros(len(pieces))
        if splits_backward(plan.schedule):
            weight[:] = [self.weight_pass(piece, size) for piece in pieces]
        backward -= weight
        if plan.recompute:
            backward += forward
        sends = np.array([self.handover(a, b, size) if a.last < b.first else 0.0 for a, b in pairwise(pieces)])
        twins = zip(plan.stages, pieces[count:] or (None,) * count, strict=True)
        sums = [self.all_reduce(stage, size, plan.schedule, twin) for stage, twin in twins]
        return StageTimes(forward, backward, weight, sends, sends, np.tile(sums, len(pieces) // count))

    def state_bytes(self, stage: Part, micro_batch: int) -> float:
        """Weights, gradients and optimiser of a stage on one GPU."""
        weights = self.of_share(micro_batch, stage).parameter_bytes
        return self.terms.state_multiple * float(weights[stage.last + 1] - weights[stage.first])

    def kept_bytes(self, stage: Part, micro_batch: int) -> float:
        """What a GPU keeps of a micro-batch from its forward to its backward pass."""
        kept = self.of_share(micro_batch, stage).kept_bytes
        return float(kept[stage.last + 1] - kept[stage.first])

    def input_bytes(self, stage: Part, micro_batch: int) -> float:
        """What a GPU keeps of a micro-batch when it computes everything else again: the input of its stage."""
        if stage.first == 0:
            return 0.0
        return self.crossing(stage.first - 1, micro_batch) * self.share(micro_batch, stage.replicas) / micro_batch
