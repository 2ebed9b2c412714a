"""Gradients woven into their step again: launches become collectives, their order becomes dependencies.

A rank hands launches over in their order. With no credit each waits until the one before is summed: one stream of
communication, on which collectives run one at a time. With credit a launch is handed over while fewer bytes than that
are under way, and what is under way shares the network: as with several channels or connections. A *hand-over* is then
an operation of its own, which takes no time: it waits for the gradient, for the hand-over before it, and for room.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.task.passes.assembly import AddedOperation, StepDraft
from ropewalk.task.passes.gradients import Gradients, TensorArrival
from ropewalk.task.step import Act, Step

HAND_OVER = "hand-over"
"""What operations are labelled that hand a launch over."""


def hands_over(step: Step) -> bool:
    """May several launches of gradients be under way at once?"""
    return HAND_OVER in step.labels


@dataclass(frozen=True, eq=False)
class Woven:
    """A step with its gradients in it, and where to find them."""

    step: Step
    gradients: Gradients
    base_operation: Ints
    """By operation of the base: its number in the step."""
    sums: tuple[Ints, ...]
    """By shard: the operations after which all of it is known."""


@dataclass(frozen=True)
class _Part:
    """One collective of a launch: what it moves, and the shards of which it makes a piece known."""

    act: Act
    size_bytes: float
    shards: tuple[int, ...]


def woven(gradients: Gradients) -> Woven:
    """The whole step."""
    draft = StepDraft.of(gradients.base)
    parts = [_parts(gradients, pieces) for pieces in _pieces_of_launches(gradients)]
    launch = [number for number, listed in enumerate(parts) for _ in listed]
    flat = [part for listed in parts for part in listed]
    lanes = gradients.lane_of_launch
    inner = np.flatnonzero(np.diff(launch) == 0) + 1
    opened = gradients.arrival is TensorArrival.RELEASED
    goes_on = set(range(len(flat)) if opened else inner.tolist())
    operation = draft.add(
        [
            AddedOperation(
                part.act, part.size_bytes, gradients.stream, _label(gradients, part), group=int(lanes[number]),
                priority=int(gradients.priority[number]), repeats=_repeats(gradients, part), goes_on=at in goes_on,
            )
            for at, (number, part) in enumerate(zip(launch, flat, strict=True))
        ]
    )  # fmt: skip
    first = np.searchsorted(launch, np.arange(len(parts)))
    last = np.searchsorted(launch, np.arange(len(parts)), side="right") - 1
    draft.wait(operation[inner], operation[inner - 1])

    sums: list[list[int]] = [[] for _ in gradients.size_bytes]
    for at, part in zip(operation.tolist(), flat, strict=True):
        for shard in part.shards:
            sums[shard].append(at)
    for shard, reader in gradients.read_by.tolist():
        draft.wait([reader] * len(sums[shard]), sums[shard])

    gates = operation[first]
    if gradients.credit_bytes > 0:
        gates = draft.add(
            [AddedOperation(Act.BARRIER, 0.0, gradients.stream, HAND_OVER, group=int(lane)) for lane in lanes]
        )
        draft.wait(operation[first], gates)
    _wait_for_gradients(gradients, draft, gates)
    _wait_in_order(gradients, draft, gates, operation[last])
    step, number = draft.step()
    return Woven(
        step,
        gradients,
        number[: gradients.base.operations],
        tuple(number[np.array(at, np.int64)] for at in sums),
    )


def _pieces_of_launches(gradients: Gradients) -> list[Ints]:
    edges = np.searchsorted(gradients.launch, np.arange(gradients.launches + 1))
    return [np.arange(begin, end) for begin, end in pairwise(edges.tolist())]


def _parts(gradients: Gradients, pieces: Ints) -> list[_Part]:
    """The collectives that a launch consists of; tensors that arrive one by one do so as they are needed."""
    total = float(gradients.piece_bytes[pieces].sum())
    sizes: dict[int, float] = {}
    for shard, size in zip(gradients.shard[pieces].tolist(), gradients.piece_bytes[pieces].tolist(), strict=True):
        sizes[shard] = sizes.get(shard, 0.0) + size
    urgent = sorted(sizes, key=lambda shard: (int(gradients.tensor[shard]), shard))
    match gradients.arrival:
        case TensorArrival.TOGETHER | TensorArrival.RELEASED:
            return [_Part(gradients.act, total, tuple(urgent))]
        case TensorArrival.THROUGH:
            return [_Part(gradients.act, sizes[shard], (shard,)) for shard in urgent]
        case TensorArrival.GATHERED:
            gathers = [_Part(Act.ALL_GATHER, sizes[shard], (shard,)) for shard in urgent]
            return [_Part(Act.REDUCE_SCATTER, total, ()), *gathers]


def _repeats(gradients: Gradients, part: _Part) -> int:
    """Collectives that a part stands for: one, or as many as buckets that it fills."""
    whole = gradients.bucket_bytes > 0 and gradients.arrival is TensorArrival.TOGETHER
    return max(1, round(part.size_bytes / gradients.bucket_bytes)) if whole else 1


def _label(gradients: Gradients, part: _Part) -> str:
    names = [gradients.names[gradients.tensor[shard]] for shard in part.shards]
    if not names:
        return "gradients"
    return f"{names[0]} gradients" if len(names) == 1 else f"{names[0]} … {names[-1]} gradients"


def _wait_for_gradients(gradients: Gradients, draft: StepDraft, gates: Ints) -> None:
    made_by: dict[int, list[int]] = {}
    for shard, maker in gradients.made_by.tolist():
        made_by.setdefault(shard, []).append(maker)
    for shard, launch in zip(gradients.shard.tolist(), gradients.launch.tolist(), strict=True):
        makers = made_by.get(shard, [])
        draft.wait([int(gates[launch])] * len(makers), makers)


def _wait_in_order(gradients: Gradients, draft: StepDraft, gates: Ints, done: Ints) -> None:
    """A launch waits for what each of its ranks has handed over before and does not leave room for it."""
    sizes, credit = gradients.launch_bytes, gradients.credit_bytes
    under_way: dict[int, deque[int]] = {}
    carried: dict[int, float] = {}
    newest: dict[int, int] = {}
    waiter: list[int] = []
    awaited: list[int] = []
    for launch, lane in enumerate(gradients.lane_of_launch.tolist()):
        needed = set()
        for rank in gradients.base.groups[lane].tolist():
            queue = under_way.setdefault(rank, deque())
            # Credit may be overdrawn by one launch: it is enough that some is left, or that nothing is under way.
            while queue and carried[rank] >= credit:
                oldest = queue.popleft()
                needed.add(int(done[oldest]))
                # Exactly nothing where nothing is left, whatever sums have lost to rounding.
                carried[rank] = carried[rank] - float(sizes[oldest]) if queue else 0.0
            if credit > 0 and rank in newest:
                needed.add(int(gates[newest[rank]]))
            queue.append(launch)
            carried[rank] = carried.get(rank, 0.0) + float(sizes[launch])
            newest[rank] = launch
        waiter += [int(gates[launch])] * len(needed)
        awaited += sorted(needed)
    draft.wait(waiter, awaited)
