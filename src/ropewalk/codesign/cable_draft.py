"""Cables being laid: how many go from each server to each other one, and the ports that are still free."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError


class CableDraft:
    """Cables between servers of `degree` ports; a duplex cable is kept as one each way and takes a port at both ends.

    A simplex cable takes a sending port at one end and a receiving port at the other, so free ports are counted for
    both ways. On duplex ports the two counts are the same array.
    """

    def __init__(self, servers: int, degree: int, *, duplex: bool) -> None:
        self.servers, self.degree, self.duplex = servers, degree, duplex
        self.count = np.zeros((servers, servers), np.int64)
        self.sending = np.full(servers, degree, np.int64)
        self.receiving = self.sending if duplex else self.sending.copy()

    def add(self, sources: NDArray[np.int64], destinations: NDArray[np.int64]) -> None:
        """Lay one cable from each source to its destination; a server may be named several times."""
        np.add.at(self.count, (sources, destinations), 1)
        np.subtract.at(self.sending, sources, 1)
        np.subtract.at(self.receiving, destinations, 1)
        if self.duplex:
            np.add.at(self.count, (destinations, sources), 1)
        if (self.sending < 0).any() or (self.receiving < 0).any():
            short = int(np.flatnonzero((self.sending < 0) | (self.receiving < 0))[0])
            raise FabricError(
                f"server {short} has more cables than its {self.degree} ports: remove cables or add ports"
            )

    def add_ring(self, size: int, jump: int) -> None:
        """Lay the ring of one jump over every coset of `size` servers; two servers are joined by one duplex cable."""
        ends = np.arange(self.servers, dtype=np.int64)
        if size == 2 and self.duplex:
            ends = ends[: self.servers // 2]
        self.add(ends, (ends + jump * (self.servers // size)) % self.servers)

    def hops(self) -> NDArray[np.int64]:
        """Fewest cables from each server to each other one; `servers` where there is no way."""
        # Imported here because loading Numba takes longer than most commands run.
        from ropewalk.codesign._hops_kernel import fewest_hops

        source, destination = np.nonzero(self.count)
        return np.asarray(fewest_hops(np.searchsorted(source, np.arange(self.servers + 1)), destination))

    def cables(self) -> tuple[tuple[int, int, int], ...]:
        """(from, to, how many) in order of the two servers; duplex cables once, the lower server first."""
        kept = np.triu(self.count) if self.duplex else self.count
        sources, destinations = np.nonzero(kept)
        return tuple(
            (int(a), int(b), int(kept[a, b])) for a, b in zip(sources.tolist(), destinations.tolist(), strict=True)
        )
