"""The switches above servers as schedulers see them: nested domains, outermost first, with servers at the bottom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.plant import Plant


@dataclass(frozen=True, eq=False)
class Levels:
    """Level l has the domains `of_server[l]`, numbered in the order of their names; the last level are leafs.

    >>> Levels(np.array([[0, 0, 0, 1], [0, 0, 1, 2]])).parents(1).tolist()
    [0, 0, 1]
    """

    of_server: Ints
    """[level, server]: the domain that a server is in."""

    @property
    def depth(self) -> int:
        return len(self.of_server)

    @property
    def servers(self) -> int:
        return int(self.of_server.shape[1])

    def count(self, level: int) -> int:
        return int(self.of_server[level].max(initial=-1)) + 1

    def sums(self, level: int, of_server: Ints) -> Ints:
        """What the servers of every domain have together."""
        return np.bincount(self.of_server[level], of_server, minlength=self.count(level)).astype(np.int64)

    def parents(self, level: int) -> Ints:
        """The domain one level further out of every domain."""
        found = np.zeros(self.count(level), np.int64)
        found[self.of_server[level]] = self.of_server[level - 1] if level else 0
        return found


@lru_cache(maxsize=64)
def levels_of(plant: Plant) -> Levels:
    """Leafs of two tiers; pods and leafs of three. On rails servers stand in units."""
    unit = plant.server_unit.astype(np.int64)
    if not plant.cores:
        return Levels(unit[None])
    return Levels(np.stack([plant.tiers.pod_of_leaf[plant.server_leaf], unit]))
