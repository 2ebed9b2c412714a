"""Gradients of a gang launched in an order of one's own: fused, cut, prioritised, streamed, across the end of the step.

A gang has one rank of every stage, so it is a small step by itself, with stages for ranks. The passes of `task.passes`
rewrite that one; copies for all ranks are made afterwards, as for any gang. So each group of data ranks launches its
own gradients in this order, and a million operations cost no more than the few thousand that they are copies of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.order import Order
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.moves import STREAM, STREAMS, Move, Scope
from ropewalk.task.passes import (
    Arrival,
    Gradients,
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
from ropewalk.task.passes.assembly import Indices
from ropewalk.task.step import Act, Step

ARRIVALS = {"whole": Arrival.TOGETHER, "streamed": Arrival.THROUGH, "gathered": Arrival.GATHERED}
Layers = Mapping[str, int]
"""Names of the layers in the order of the model, and the piece of the model that each is in."""
EXPERTS = " experts"
"""What the gradients of the experts of a layer are called, behind the name of the layer."""


def launched(gang: Gang, order: Order, layers: Layers, steps: int = 1) -> tuple[Gang, tuple[Indices, ...]]:
    """The gang with its gradients in this order, so many steps in a row, and the moves with which each step is over.

    The gang has one collective for the gradients of every layer.
    """
    stages = max(gang.stage, default=0) + 1
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
            f"it launches {name!r}, which is no layer of the model: use names such as {', '.join([*layers][:3])}"
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
    reduced = {
        at: (move.layer % len(layers), move.scope) for at, move in enumerate(gang.moves)
        if move.layer >= 0 and move.stream == STREAM["data"]
    }  # fmt: skip
    keys, names = sorted(set(reduced.values())), list(layers)
    number = {key: at for at, key in enumerate(keys)}
    tensor = np.full(small.operations, -1, np.int64)
    tensor[list(reduced)] = [number[key] for key in reduced.values()]
    begins: dict[tuple[int, int], int] = {}
    for at, move in enumerate(gang.moves):
        if move.layer >= 0 and at not in reduced:
            begins.setdefault((move.layer % len(layers), gang.stage[at]), at)
    rows = [(number[key], at) for key in keys for (layer, _), at in begins.items() if layer == key[0]]
    return gradients_in(
        # A launch is one collective however many layers it holds.
        replace(small, repeats=np.where(tensor >= 0, 1, small.repeats).astype(np.int32)),
        tensor,
        [names[layer] + (EXPERTS if scope is Scope.EXPERT_DATA else "") for layer, scope in keys],
        [names[layer] for layer, _ in keys],
        begins=rows,
    )


Lanes = list[tuple[Scope, int, int]]


def _as_step(gang: Gang, stages: int) -> tuple[Step, Lanes]:
    """A gang as a step whose ranks are stages; a group for every scope of every stage, and what each stands for."""
    act = np.array([move.act for move in gang.moves], np.int8)
    alone = act < Act.ALL_REDUCE
    keys = [(move.scope, stage, peer) for move, stage, peer in zip(gang.moves, gang.stage, gang.peer, strict=True)]
    lanes = sorted({key for key, single in zip(keys, alone.tolist(), strict=True) if not single})
    number = {key: at for at, key in enumerate(lanes)}
    labels = tuple(dict.fromkeys(move.label for move in gang.moves))
    known = {text: at for at, text in enumerate(labels)}
    step = Step(
        ranks=stages,
        act=act,
        rank=np.where(alone, gang.stage, -1).astype(np.int32),
        peer=np.where(act == Act.SEND, gang.peer, -1).astype(np.int32),
        group=np.array([number.get(key, -1) for key in keys], np.int32),
        amount=np.array([move.amount for move in gang.moves], np.float64),
        stream=np.array([move.stream for move in gang.moves], np.int16),
        priority=np.array([move.priority for move in gang.moves], np.int32),
        label=np.array([known[move.label] for move in gang.moves], np.int32),
        labels=labels,
        groups=tuple(np.array(sorted({stage, peer} - {-1}), np.int32) for _, stage, peer in lanes),
        dep_start=np.cumsum([0, *map(len, gang.after)]).astype(np.int64),
        dep=np.array([at for after in gang.after for at in after], np.int32),
        streams=STREAMS,
        repeats=np.array([move.repeats for move in gang.moves], np.int32),
    )
    return step, lanes


def _as_gang(step: Step, lanes: Lanes) -> Gang:
    """The gang of a step whose ranks are stages."""
    gang = Gang()
    columns = (step.act, step.rank, step.peer, step.group, step.amount, step.stream, step.label, step.repeats)
    for at, (act, rank, peer, group, amount, number, label, repeats) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        scope, stage, other = (Scope.RANK, rank, peer) if group < 0 else lanes[group]
        move = Move(
            Act(act), scope, amount, number, step.labels[label], repeats, -1, int(step.priority[at]),
            bool(step.goes_on[at]),
        )  # fmt: skip
        gang.add(move, stage, step.dep[step.dep_start[at] : step.dep_start[at + 1]].tolist(), other)
    return gang
