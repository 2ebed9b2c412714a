"""Which GPU does which part: ranks by their coordinates, and the groups in which they meet.

Order matters: the ranks of the first name in the order are neighbours, so tensor parallelism comes first and stays
inside a server. `tp-cp-ep-dp-pp` is Megatron-LM's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import StrategyError
from ropewalk.strategy.strategy import Strategy

AXES = ("pp", "dp", "ep", "cp", "tp")
"""Coordinates of a rank, in the order of the dimensions of `Placement.grid`: `dp` counts the copies of the experts.
Where experts are folded, `ep` is 1 and `dp` counts data ranks: groups of experts are neighbours in `dp`, `cp` and `tp`,
`tp` first."""
DEFAULT_ORDER = "tp-cp-ep-dp-pp"
IDLE = -1
"""The stage of a rank that no part names."""


def stage_name(stage: int) -> str:
    """What charts and traces call a stage.

    >>> stage_name(2), stage_name(IDLE)
    ('stage 2', 'idle')
    """
    return "idle" if stage == IDLE else f"stage {stage}"


@dataclass(frozen=True)
class Placement:
    """Ranks laid out over GPUs: rank r is on GPU r.

    >>> Placement(Strategy(data=2, tensor=2)).groups("dp").tolist()
    [[0, 2], [1, 3]]
    """

    strategy: Strategy
    order: str = DEFAULT_ORDER
    """Names from the fastest-changing coordinate to the slowest; `cp` and `ep` may be left out."""

    def __post_init__(self) -> None:
        names = self.order.split("-")
        strangers = [name for name in names if name not in AXES]
        if strangers or len(set(names)) < len(names) or not {"tp", "dp", "pp"} <= set(names):
            raise StrategyError(
                f"placement order {self.order!r} cannot be read: write tp, dp and pp, optionally cp and ep, each once, "
                f"such as {DEFAULT_ORDER}, tp-dp-pp or tp-pp-dp"
            )
        over = self.strategy.expert_ranks
        if over % self.strategy.expert:
            raise StrategyError(
                f"expert degree {self.strategy.expert} does not divide the {over} ranks that experts are spread over: "
                "give a divisor"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All five coordinates from the fastest to the slowest: cp next to tp, ep before dp, unless said otherwise."""
        names = self.order.split("-")
        if "cp" not in names:
            names.insert(names.index("tp") + 1, "cp")
        if "ep" not in names:
            names.insert(names.index("dp"), "ep")
        return tuple(names)

    @property
    def sizes(self) -> dict[str, int]:
        plan = self.strategy
        expert = 1 if plan.fold_experts else plan.expert
        return {
            "pp": plan.pipeline, "dp": plan.data // expert, "ep": expert, "cp": plan.context, "tp": plan.tensor
        }  # fmt: skip

    @property
    def ranks(self) -> int:
        return self.strategy.ranks if self.strategy.parts else math.prod(self.sizes.values())

    @cached_property
    def stage_grids(self) -> tuple[NDArray[np.int32], ...]:
        """By stage, its ranks by the coordinates dp, ep, cp and tp.

        >>> from ropewalk.strategy.part import Part
        >>> parts = Part(0, 1, (0, 1, 2, 3), tensor=2), Part(2, 3, (4,))
        >>> [grid.shape for grid in Placement(Strategy(pipeline=2, parts=parts)).stage_grids]
        [(2, 1, 1, 2), (1, 1, 1, 1)]
        """
        if not self.strategy.parts:
            return tuple(self.grid)
        return tuple(
            np.array(one.workers, np.int32).reshape(one.replicas // one.experts, one.experts, 1, one.together)
            for one in self.strategy.stage_parts
        )

    @cached_property
    def grid(self) -> NDArray[np.int32]:
        """The rank at every coordinate, dimensions as in `AXES`; for strategies whose stages are all alike."""
        slowest_first = self.names[::-1]
        ranks = np.arange(self.ranks, dtype=np.int32).reshape([self.sizes[name] for name in slowest_first])
        return np.ascontiguousarray(ranks.transpose([slowest_first.index(name) for name in AXES]))

    def groups(self, *along: str) -> NDArray[np.int32]:
        """Groups of ranks that differ only in the named coordinates, a row each; ranks of a row ascend."""
        moved = [AXES.index(name) for name in along]
        kept = [axis for axis in range(len(AXES)) if axis not in moved]
        rows = self.grid.transpose([*kept, *moved]).reshape(-1, math.prod(self.sizes[name] for name in along))
        return np.sort(rows, axis=1)

    @property
    def tensor_groups(self) -> NDArray[np.int32]:
        return self.groups("tp")

    @property
    def context_groups(self) -> NDArray[np.int32]:
        return self.groups("cp")

    @property
    def expert_groups(self) -> NDArray[np.int32]:
        """Ranks over which the experts of a layer are spread.

        >>> Placement(Strategy(data=2, tensor=2, expert=4, fold_experts=True)).expert_groups.tolist()
        [[0, 1, 2, 3]]
        """
        if self.strategy.fold_experts:
            return np.sort(self.grid.reshape(-1, self.strategy.expert), axis=1)
        return self.groups("ep")

    @property
    def data_groups(self) -> NDArray[np.int32]:
        """Ranks that hold the same weights, experts aside."""
        return self.groups("dp", "ep", "cp")

    @property
    def expert_data_groups(self) -> NDArray[np.int32]:
        """Ranks that hold the same experts."""
        if self.strategy.fold_experts:
            grid = self.grid.reshape(self.sizes["pp"], -1, self.strategy.expert)
            return np.sort(grid.transpose(0, 2, 1).reshape(-1, grid.shape[1]), axis=1)
        return self.groups("dp", "cp")

    @property
    def pipeline_groups(self) -> NDArray[np.int32]:
        """Ranks that hold the stages of one pipeline, the first stage first."""
        rows = self.grid.reshape(self.sizes["pp"], -1).T
        return np.ascontiguousarray(rows)

    def stage_of(self) -> NDArray[np.int32]:
        """The pipeline stage of every rank, `IDLE` for those that no part names."""
        stage = np.full(self.ranks, IDLE, np.int32)
        for number, grid in enumerate(self.stage_grids):
            stage[grid] = number
        return stage
