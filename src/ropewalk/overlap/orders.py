"""Plans of communication as orders of a lowered step: what `ropewalk simulate` runs and a plan file keeps.

A plan numbers tensors; an `Order` names layers, so tensors must be those of whole layers. What a library decides as it
goes (priorities within a credit) becomes the order in which the model saw the pieces carried: fixed beforehand, it is
the same on all ranks.
"""

from __future__ import annotations

import numpy as np

from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.launches import Launches
from ropewalk.overlap.scheduler import OverlapRun
from ropewalk.overlap.tensors import Tensors
from ropewalk.strategy.order import Order, Piece, launches_of

ARRIVALS = {Arrival.TOGETHER: "whole", Arrival.THROUGH: "streamed", Arrival.GATHERED: "gathered"}


def order_of_groups(tensors: Tensors, groups: Groups) -> Order:
    """Groups as they are ready, one after the other, all of them before the next step."""
    return Order(fusion=launches_of([[tensors.names[member] for member in group] for group in groups.members]))


def order_of_launches(tensors: Tensors, launches: Launches) -> Order:
    """A plan for a library that works in order, across the end of the step.

    Where all tensors of a group arrive together, a launch that moves a part of the group moves that part of each of its
    tensors: none is there before the last launch of the group is over.
    """
    numbers = np.cumsum(launches.begins) - 1
    totals = [float(tensors.size_bytes[list(group)].sum()) for group in launches.groups.members]
    left = np.ones(len(tensors))
    plan = []
    for number in range(launches.count):
        own = np.flatnonzero(numbers == number)
        group = int(launches.group[own[0]])
        if launches.arrival is Arrival.THROUGH:
            sizes = [(int(launches.tensor[at]), float(launches.size_bytes[at])) for at in own]
            parts = [(tensor, _part(size, float(tensors.size_bytes[tensor]))) for tensor, size in sizes]
        elif launches.arrival is Arrival.TOGETHER:
            part = _part(float(launches.size_bytes[own].sum()), totals[group])
            parts = [(tensor, part) for tensor in launches.groups.members[group]]
        else:
            parts = [(tensor, 1.0) for tensor in launches.groups.members[group]]
        plan.append([_piece(tensors, left, tensor, part) for tensor, part in parts])
    return Order(fusion=tuple(map(tuple, plan)), arrival=ARRIVALS[launches.arrival], across_steps=True)


def order_of_run(run: OverlapRun) -> Order:
    """The pieces of a scheduled step in the order in which the network carried them, one at a time."""
    tensors, pieces = run.tensors, run.pieces
    left = np.ones(len(tensors))
    plan = [
        (_piece(tensors, left, tensor, _part(size, float(tensors.size_bytes[tensor]))),)
        for tensor, size in zip(pieces.tensor[run.order].tolist(), pieces.size_bytes[run.order].tolist(), strict=True)
    ]
    return Order(fusion=tuple(plan), across_steps=not run.policy.barrier)


def _part(size: float, whole: float) -> float:
    return size / whole if whole > 0 else 1.0


def _piece(tensors: Tensors, left: np.ndarray[tuple[int], np.dtype[np.float64]], tensor: int, part: float) -> Piece:
    """A part of a layer, cut so that parts never sum to more than the whole."""
    part = min(part, float(left[tensor]))
    left[tensor] -= part
    return tensors.names[tensor], part
