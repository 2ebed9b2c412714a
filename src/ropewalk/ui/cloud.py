"""The candidates of an estimate as the picture that pages of searches have: the same component, filled from JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from ropewalk.planner.described import Described
from ropewalk.report import quantity
from ropewalk.report.page import piece
from ropewalk.report.planner_points import CONTROLS, Named, Points, cloud_of, coloured

WHY = "Why not?"
LISTED = 12
"""Strategies in the table."""


def cloud(estimate: dict[str, Any]) -> str:
    """The figure with its filters and its table, as HTML."""
    field, fit = estimate["candidates"], int(estimate["counts"]["fit"])
    points = Points(
        tuple(
            coloured(
                Described(one["title"], tuple(one["labels"]), tuple(one["words"]), np.asarray(one["at"], np.int64))
            )
            for one in field["columns"]
        ),
        np.asarray(field["step_time_s"], np.float64),
        np.asarray(field["memory_bytes"], np.float64),
        np.asarray(field["simulated"], np.bool_),
        fit - len(field["step_time_s"]),
    )
    best = estimate["best"]
    named = [Named("best", best["memory_bytes"], best["step_time_s"])]
    made = cloud_of(points, named, {}, estimate["memory_capacity_bytes"], _caption(points), LISTED)
    return piece("points", made, choose=WHY)


def _caption(points: Points) -> str:
    left_out = f" {quantity.count(points.left_out)} slower ones are not drawn." if points.left_out > 0 else ""
    return (
        "Filled: simulated. Hollow: a lower bound on what simulation would give. Click a point to compare it with "
        f"the best.{left_out} {CONTROLS}"
    )
