"""Gradients of a gang launched in an order of one's own: fused, cut, prioritised, streamed, across the end of the step.

A gang has one rank of every stage, so it is a small step by itself, with stages for ranks. The passes of `task.passes`
rewrite that one; copies for all ranks are made afterwards, as for any gang. So each group of data ranks launches its
own gradients in this order, and a million operations cost no more than the few thousand that they are copies of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.order import Order
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.moves import STREAM, STREAMS, Move, Scope
from ropewalk.task.passes import (
    Gradients,
    TensorArrival,
    by_consumer,
    credit,
    cross_barrier,
    fuse,
    gradients_in,
    in_launch_order,
    pack,
    prioritise,
    split,
    stream,
    with_barrier,
    woven,
)
from ropewalk.task.step import Act, Step

ARRIVALS = {
    "whole": TensorArrival.TOGETHER,
    "streamed": TensorArrival.THROUGH,
    "gathered": TensorArrival.GATHERED,
    "released": TensorArrival.RELEASED,
}
Layers = Mapping[str, int]
"""Names of the layers in the order of the model, and the piece of the model that each is in."""
EXPERTS = " experts"
"""What the gradients of the experts of a layer are called, behind the name of the layer."""


def launched(gang: Gang, order: Order, layers: Layers, steps: int = 1) -> tuple[Gang, tuple[Ints, ...]]:
    """The gang with its gradients in this order, so many steps in a row, and the moves with which each step is over.

    The gang has one collective for the gradients of every layer.
    """
    stages = int(gang.stage.max(initial=0)) + 1
    small, lanes = _as_step(gang, stages)
    gradients = _ordered(_lifted(gang, small, layers), order, layers)
    if steps > 1:
        gradients = (cross_barrier if order.across_steps else with_barrier)(gradients, steps)
    whole = woven(gradients)
    return _as_gang(whole.step, lanes), tuple(whole.base_operation[ends] for ends in gradients.ends)


def _ordered(gradients: Gradients, order: Order, layers: Layers) -> Gradients:
    """One pass after the other, as the order says."""
    if isinstance(order.fusion, tuple):
        made = pack(gradients, _plan(gradients, order, layers))
    else:
        made = replace(fuse(gradients, _filled(gradients, order.fusion, layers)), bucket_bytes=order.fusion)
    if np.isfinite(order.partition_bytes):
        made = split(made, order.partition_bytes)
    if order.priority == "forward":
        made = prioritise(made, by_consumer)
    elif order.priority == "queued":
        made = in_launch_order(made)
    return stream(credit(made, order.credit_bytes), ARRIVALS[order.arrival])


def _filled(gradients: Gradients, bucket_bytes: float, layers: Layers) -> list[list[int]]:
    """Tensors collected as they are ready until a bucket is full, each piece of the model for itself.

    What is left when all are ready goes behind the last of it.
    """
    open_buckets: dict[tuple[int, int], list[int]] = {}
    groups: list[list[int]] = []
    for shard in gradients.shard.tolist():
        tensor = int(gradients.tensor[shard])
        key = int(gradients.lane[shard]), layers[gradients.layers[tensor]]
        bucket = open_buckets.setdefault(key, [])
        bucket.append(tensor)
        if gradients.tensor_bytes[bucket].sum() >= bucket_bytes:
            groups.append(open_buckets.pop(key))
    place = {int(gradients.tensor[shard]): at for at, shard in enumerate(gradients.shard.tolist())}
    return sorted([*groups, *open_buckets.values()], key=lambda group: place[group[-1]])


def _plan(gradients: Gradients, order: Order, layers: Layers) -> list[list[tuple[int, float]]]:
    """The launches of an order by the numbers of their tensors: a layer has one, and one more for its experts."""
    assert isinstance(order.fusion, tuple)
    tensors: dict[str, list[int]] = {}
    for number, name in enumerate(gradients.layers):
        tensors.setdefault(name, []).append(number)
    listed = {name for launch in order.fusion for name, _ in launch}
    findings = Findings(StrategyError, "order of gradients")
    for name in sorted(listed - set(layers)):
        findings.add(
            f"it launches {name!r}, which is not a layer of the model: use names such as {', '.join([*layers][:3])}"
        )
    for name in tensors:
        if name not in listed:
            findings.add(f"{name} has gradients that no launch has: add it to one")
    findings.raise_if_any()
    plan = [
        [(tensor, part) for name, part in launch for tensor in tensors.get(name, ())] for launch in order.fusion
    ]  # layers without parameters have nothing to launch
    return [launch for launch in plan if launch]


def _lifted(gang: Gang, small: Step, layers: Layers) -> Gradients:
    """The gradients of a gang: a tensor for every layer, and one for its experts."""
    ours = gang.layer % len(layers)
    reduces = (gang.layer >= 0) & (gang.stream == STREAM["data"])
    keys = sorted({(layer, scope) for layer, scope in zip(*_lists(reduces, ours, gang.scope), strict=True)})
    names = list(layers)
    number = {key: at for at, key in enumerate(keys)}
    tensor = np.full(small.operations, -1, np.int64)
    tensor[reduces] = [number[key] for key in zip(*_lists(reduces, ours, gang.scope), strict=True)]
    begins: dict[tuple[int, int], int] = {}
    runs = (gang.layer >= 0) & ~reduces
    for at, layer, stage in zip(np.flatnonzero(runs).tolist(), *_lists(runs, ours, gang.stage), strict=True):
        begins.setdefault((layer, stage), at)
    rows = [(number[key], at) for key in keys for (layer, _), at in begins.items() if layer == key[0]]
    return gradients_in(
        # A launch is one collective however many layers it holds.
        replace(small, repeats=np.where(tensor >= 0, 1, small.repeats).astype(np.int32)),
        tensor,
        [names[layer] + (EXPERTS if scope == Scope.EXPERT_DATA else "") for layer, scope in keys],
        [names[layer] for layer, _ in keys],
        begins=rows,
    )


def _lists(which: NDArray[np.bool_], *columns: NDArray[Any]) -> Iterator[list[int]]:
    """These entries of each column."""
    return (column[which].tolist() for column in columns)


Lanes = list[tuple[Scope, int, int]]


def _as_step(gang: Gang, stages: int) -> tuple[Step, Lanes]:
    """A gang as a step whose ranks are stages; a group for every scope of every stage, and what each stands for."""
    act, (meetings, meeting) = gang.act, gang.meetings
    alone = act < Act.ALL_REDUCE
    used = np.unique(meeting[~alone])
    lanes = [meetings[at] for at in used.tolist()]
    labels, label = gang.labelled()
    step = Step(
        ranks=stages,
        act=act,
        rank=np.where(alone, gang.stage, -1).astype(np.int32),
        peer=np.where(act == Act.SEND, gang.peer, -1).astype(np.int32),
        group=np.where(alone, -1, np.searchsorted(used, meeting)).astype(np.int32),
        amount=gang.amount,
        stream=gang.stream,
        priority=gang.priority,
        label=label,
        labels=labels,
        groups=tuple(np.array(sorted({stage, peer} - {-1}), np.int32) for _, stage, peer in lanes),
        dep_start=gang.dep_start,
        dep=gang.dep.astype(np.int32),
        streams=STREAMS,
        repeats=gang.repeats,
    )
    return step, lanes


def _as_gang(step: Step, lanes: Lanes) -> Gang:
    """The gang of a step whose ranks are stages."""
    columns = (
        step.act, step.rank, step.peer, step.group, step.amount, step.stream, step.label, step.repeats, step.priority,
        step.goes_on,
    )  # fmt: skip
    moves, ends = [], []
    for act, rank, peer, group, amount, number, label, repeats, priority, goes_on in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        scope, *own = (Scope.RANK, rank, peer) if group < 0 else lanes[group]
        moves.append(Move(Act(act), scope, amount, number, step.labels[label], repeats, -1, priority, goes_on))
        ends.append(own)
    stage, other = np.array(ends, np.int64).reshape(-1, 2).T.copy()
    dep, pace = step.dep.astype(np.int64), np.ones(step.ranks)
    return Gang(tuple(moves), np.arange(len(moves)), stage, other, step.dep_start, dep, pace)
