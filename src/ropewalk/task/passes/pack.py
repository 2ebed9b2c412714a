"""Any plan of launches: which parts of which tensors go together, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ropewalk.errors import Findings, GraphError
from ropewalk.task.passes.gradients import CONSERVED, Gradients

Plan = Sequence[Sequence[tuple[int, float]]]
"""Launches in order; each lists tensors and the part of each, from 0 to 1, that it sums."""


def pack(gradients: Gradients, plan: Plan) -> Gradients:
    """The same gradients in the launches of a plan, on every lane and in every step alike.

    A launch becomes one on every lane that sums one of its tensors. What was launched before is forgotten, priorities
    included: a launch is as urgent as its most urgent tensor was.
    """
    _check(gradients, plan)
    urgency = _priority_of_shards(gradients)
    by_tensor: dict[tuple[int, int], list[int]] = {}
    for at, (step, tensor) in enumerate(zip(gradients.step_of.tolist(), gradients.tensor.tolist(), strict=True)):
        by_tensor.setdefault((step, tensor), []).append(at)
    shard: list[int] = []
    size: list[float] = []
    launch: list[int] = []
    lot: list[int] = []
    priority: list[int] = []
    for step in range(gradients.steps):
        for number, parts in enumerate(plan):
            lanes: dict[int, list[tuple[int, float]]] = {}
            for tensor, part in parts:
                for at in by_tensor[step, tensor]:
                    lanes.setdefault(int(gradients.lane[at]), []).append((at, part))
            for _, listed in sorted(lanes.items()):
                shard += [at for at, _ in listed]
                size += [float(gradients.size_bytes[at]) * part for at, part in listed]
                launch += [len(lot)] * len(listed)
                lot.append(step * len(plan) + number)
                priority.append(min(urgency[at] for at, _ in listed))
    packed = replace(
        gradients,
        shard=np.array(shard, np.int64),
        piece_bytes=np.array(size, np.float64),
        launch=np.array(launch, np.int64),
        lot=np.array(lot, np.int64),
        priority=np.array(priority, np.int64),
    )
    packed.check()
    return packed


def _check(gradients: Gradients, plan: Plan) -> None:
    findings = Findings(GraphError, "plan of launches")
    total = np.zeros(len(gradients.names))
    for number, parts in enumerate(plan):
        strangers = [tensor for tensor, _ in parts if not 0 <= tensor < len(gradients.names)]
        if strangers:
            findings.add(f"launch {number} names tensor {strangers[0]}: tensors are 0…{len(gradients.names) - 1}")
        if not parts:
            findings.add(f"launch {number} is empty: leave it out")
        if any(not 0 <= part <= 1 + CONSERVED for _, part in parts):
            findings.add(f"launch {number} reduces a part of a tensor outside 0 to 1: give a part from 0 to 1")
    findings.raise_if_any()
    for parts in plan:
        for tensor, part in parts:
            total[tensor] += part
    for tensor in np.flatnonzero(np.abs(total - 1) > CONSERVED)[:1]:
        findings.add(
            f"{gradients.names[tensor]} (tensor {tensor}) is launched {total[tensor]:g} times: launch every byte "
            "exactly once"
        )
    findings.raise_if_any()


def _priority_of_shards(gradients: Gradients) -> list[int]:
    """The most urgent launch that sums a piece of each shard."""
    urgency = np.full(len(gradients.size_bytes), np.iinfo(np.int32).max, np.int64)
    np.minimum.at(urgency, gradients.shard, gradients.priority[gradients.launch])
    return [int(value) for value in urgency]
