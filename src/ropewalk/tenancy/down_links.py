"""Links between two tiers of switches that are out of service: their own, and all of a switch at either end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints


@dataclass(frozen=True)
class DownLinks:
    """Switches below and above, and single links between them."""

    below: frozenset[int]
    above: frozenset[int]
    links: frozenset[tuple[int, int]]

    def __bool__(self) -> bool:
        return bool(self.below or self.above or self.links)

    def up(self, cables: NDArray[np.int32]) -> NDArray[np.bool_]:
        """[below, above]: links that may be given to jobs."""
        up = cables > 0
        up[sorted(self.below), :] = False
        up[:, sorted(self.above)] = False
        for link in self.links:
            up[link] = False
        return up

    def these_up(self, cables: NDArray[np.int32], below: Ints, above: Ints) -> NDArray[np.bool_]:
        """Which of these links may be given to jobs?"""
        lower, upper = (np.zeros(count, bool) for count in cables.shape)
        lower[sorted(self.below)] = True
        upper[sorted(self.above)] = True
        dead = np.array([a * cables.shape[1] + b for a, b in self.links], np.int64)
        down = lower[below] | upper[above] | np.isin(below * cables.shape[1] + above, dead)
        return np.asarray((cables[below, above] > 0) & ~down)

    def pairs(self, cables: NDArray[np.int32]) -> tuple[Ints, Ints]:
        """(below, above) of every link that is out of service; some may be listed twice."""
        found = [np.array(sorted(self.links), np.int64).reshape(-1, 2).T]
        for lower in sorted(self.below):
            over = np.flatnonzero(cables[lower])
            found.append(np.stack([np.full(len(over), lower), over]))
        for upper in sorted(self.above):
            under = np.flatnonzero(cables[:, upper])
            found.append(np.stack([under, np.full(len(under), upper)]))
        below, above = np.concatenate(found, axis=1)
        return below, above
