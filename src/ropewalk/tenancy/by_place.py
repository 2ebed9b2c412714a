"""The fixed rule of a plant without isolation: which way up every GPU sends, by its place alone.

The i-th GPU of a leaf has the i-th cable of the leaf. Above that, leafs of a pod take turns: what leaf k sends to a
spine goes up by the k-th cable of the spine, and where more GPUs than cables share a leaf, the next ones go on
counting. On plants with as many cables up as GPUs every GPU so has a path of its own to the top.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.tenancy.plant import Plant


@dataclass(frozen=True, eq=False)
class WayUp:
    """Of every GPU: spine and core, and which of the parallel cables to each; -1 for none."""

    spine: Ints
    cable: Ints
    core: Ints
    core_cable: Ints


@lru_cache(maxsize=16)
def way_up(plant: Plant) -> WayUp:
    """The fixed rule for all GPUs of a plant.

    >>> from ropewalk.tenancy.plant import plant
    >>> rule = way_up(plant("fat-tree:4", gpus_per_server=1))
    >>> rule.spine[:4].tolist(), rule.core[:4].tolist()
    ([0, 1, 0, 1], [0, 2, 1, 3])
    """
    spine, cable = _nth_cable(plant.cables, plant.leaf_of_gpu.astype(np.int64), plant.place_on_leaf)
    ups = np.maximum(plant.cables.sum(axis=1, dtype=np.int64), 1)[plant.leaf_of_gpu]
    tiers = plant.tiers
    pod = tiers.pod_of_leaf[plant.leaf_of_gpu]
    turn = plant.leaf_of_gpu - tiers.first_leaf[pod] + np.diff(tiers.first_leaf)[pod] * (plant.place_on_leaf // ups)
    core, core_cable = _nth_cable(plant.core_cables, spine, turn)
    return WayUp(spine, cable, core, core_cable)


def _nth_cable(cables: NDArray[np.int32], below: Ints, turn: Ints) -> tuple[Ints, Ints]:
    """(switch above, cable) of the turn-th cable up from each switch below, round and round."""
    count = cables.sum(axis=1, dtype=np.int64)
    pair = np.repeat(np.arange(cables.size), cables.ravel())
    upper = pair % max(cables.shape[1], 1)
    strand = np.arange(len(pair)) - (np.cumsum(cables.ravel()) - cables.ravel())[pair]
    above, cable = np.full(len(below), -1, np.int64), np.zeros(len(below), np.int64)
    wired = np.flatnonzero(below >= 0)
    wired = wired[count[below[wired]] > 0]
    at = below[wired]
    number = (np.cumsum(count) - count)[at] + turn[wired] % count[at]
    above[wired], cable[wired] = upper[number], strand[number]
    return above, cable
