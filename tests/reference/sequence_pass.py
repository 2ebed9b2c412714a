"""Sequence: the order in which every rank hands its launches over, said once and for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ropewalk.errors import GraphError
from ropewalk.task.passes.gradients import Gradients


def sequence(gradients: Gradients, order: Sequence[int]) -> Gradients:
    """Hand the lots of every step over in this order: `order[0]` is the lot that now goes first."""
    if sorted(order) != list(range(gradients.lots)):
        raise GraphError(
            f"an order of {len(order)} launches, where a step has {gradients.lots}: list each of "
            f"0…{gradients.lots - 1} exactly once"
        )
    place = np.argsort(np.asarray(order, np.int64), kind="stable")
    step, lot = np.divmod(gradients.lot, max(1, gradients.lots))
    new_lot = step * gradients.lots + place[lot]
    launches = np.argsort(new_lot, kind="stable")
    number = np.argsort(launches, kind="stable")[gradients.launch]
    pieces = np.argsort(number, kind="stable")
    return replace(
        gradients,
        shard=gradients.shard[pieces],
        piece_bytes=gradients.piece_bytes[pieces],
        launch=number[pieces],
        lot=new_lot[launches],
        priority=gradients.priority[launches],
    )
