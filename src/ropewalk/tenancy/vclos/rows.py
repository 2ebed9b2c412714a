"""The rows that searches choose from: leafs, or on rails units of leafs, with the spines they reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.occupancy import Occupancy


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Columns over leafs or units, pod by pod; what a unit has on its rails stands side by side."""

    rails: int
    words: NDArray[np.uint64]
    """[row, word]: free spines of the pod, rail after rail."""
    reached: NDArray[np.int64]
    """Free spines of every row; on rails, of the rail that has fewest."""
    ports: NDArray[np.int64]
    """Free cables of every row."""
    first: NDArray[np.int64]
    """Rows of pod p are `first[p]` to `first[p + 1]` - 1."""

    @classmethod
    def of(cls, state: Occupancy) -> LeafRows:
        rails, first = state.plant.rails, state.plant.tiers.first_leaf
        if rails == 1:
            return cls(1, state.spine_words, state.spines_of_leaf, state.ports_of_leaf, first)
        units = state.plant.units
        return cls(
            rails,
            state.spine_words.reshape(units, -1),
            state.spines_of_leaf.reshape(units, rails).min(axis=1),
            state.ports_of_leaf.reshape(units, rails).sum(axis=1),
            first // rails,
        )


def servers_of(state: Occupancy, spines: int) -> int:
    """Servers of a row that have so many GPUs on each of its leafs."""
    return spines * state.plant.rails // state.plant.gpus_per_server
