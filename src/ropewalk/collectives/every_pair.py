"""Every rank sends a chunk to every other rank: the arrows of a mesh, of sharded servers and of a direct all-to-all.

There are N(N-1) of them, and no rank is different from another. So the pattern is two numbers; the arrows are written
out when somebody reads them, which a proof does, and a simulation that knows its fabric looks alike from every host
does not.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.program import CLOSED_FORM, Pattern, refuse_too_many_arrows

ALIKE = (
    "use fewer ranks, symmetry with the same routes from every host (dmodk on trees, dimension on tori and BCubes), "
    f"or {CLOSED_FORM}"
)
"""What makes it unnecessary to write the arrows out."""


class EveryPair(Pattern):
    """The arrows of all ordered pairs of ranks, one chunk each, by sender and then by receiver.

    >>> pattern = EveryPair(3, adds=True)
    >>> pattern.src.tolist(), pattern.dst.tolist()
    ([0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1])
    >>> EveryPair(16384, adds=True).sends
    268419072
    """

    ranks: int
    adds: bool

    def __init__(self, ranks: int, *, adds: bool) -> None:
        object.__setattr__(self, "ranks", ranks)
        object.__setattr__(self, "adds", adds)

    @property
    def sends(self) -> int:
        return self.ranks * (self.ranks - 1)

    @property
    def lanes(self) -> int:
        return 1

    @cached_property
    def src(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(self.ranks, dtype=np.int32), self._written_out() // self.ranks)

    @cached_property
    def dst(self) -> NDArray[np.int32]:
        # The i-th of the others is i, or i + 1 from the sender itself on.
        other = np.tile(np.arange(self.ranks - 1, dtype=np.int32), self._written_out() // (self.ranks - 1))
        return other + (other >= self.src)

    @cached_property
    def chunks(self) -> NDArray[np.int64]:
        return np.ones(self._written_out(), np.int64)

    @cached_property
    def reduces(self) -> NDArray[np.bool_]:
        return np.full(self._written_out(), self.adds, np.bool_)

    @cached_property
    def lane(self) -> NDArray[np.int32]:
        return np.zeros(self._written_out(), np.int32)

    def chunk_of_receiver(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The chunks that move when everybody sends rank r chunk r."""
        return np.arange(self._written_out() + 1), self.dst.astype(np.int64)

    def chunk_of_sender(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The chunks that move when rank r sends everybody chunk r."""
        return np.arange(self._written_out() + 1), self.src.astype(np.int64)

    def chunk_of_pair(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The chunks that move when rank s has chunk s*N + d for rank d."""
        return np.arange(self._written_out() + 1), self.src.astype(np.int64) * self.ranks + self.dst

    def _written_out(self) -> int:
        refuse_too_many_arrows(f"an exchange between all pairs of {self.ranks} ranks", self.sends, ALIKE)
        return self.sends
