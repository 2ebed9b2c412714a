"""Groups of a plan: the ranks that meet in the collectives of each purpose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import PlanError
from ropewalk.plans.plan import Plan
from ropewalk.strategy import Placement
from ropewalk.strategy.placement import DEFAULT_ORDER

PURPOSES: dict[str, Callable[[Placement], NDArray[np.int32]]] = {
    "data": lambda placed: placed.data_groups,
    "tensor": lambda placed: placed.tensor_groups,
    "expert": lambda placed: placed.expert_groups,
    "context": lambda placed: placed.context_groups,
    "pipeline": lambda placed: placed.pipeline_groups,
}
"""By the name people type: all groups of that purpose, one per row."""


def group_of(plan: Plan, purpose: str, number: int = 0) -> list[int]:
    """The ranks of one group of a plan.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans.plan import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> group_of(Plan(ModelUse("gpt2"), read_cluster("2x8"), Strategy(data=2, tensor=8)), "data", 3)
    [3, 11]
    """
    rows = PURPOSES[purpose](Placement(plan.strategy, plan.placement or DEFAULT_ORDER))
    if rows.shape[1] < 2:
        raise PlanError(f"the plan ({plan.strategy.said()}) has no {purpose} parallelism: name another group")
    if not 0 <= number < len(rows):
        raise PlanError(f"the plan has {len(rows)} {purpose} groups: give a number below, such as {purpose}:0")
    return [int(rank) for rank in rows[number]]
