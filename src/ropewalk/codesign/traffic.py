"""Everything a design sends: ring traffic of sums from member to member, and bytes between pairs.

A sum over k servers with R directed rings puts 2(k-1)/k * S/R bytes on every hop of every ring. Where the rings have
cables of their own a hop is one link; otherwise it is a transfer like others and goes over the cables of others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.totient import directed_jumps
from ropewalk.errors import StrategyError
from ropewalk.fabric.wiring import Wiring


@dataclass(frozen=True, eq=False)
class Traffic:
    """Bytes from server to server in a step; a pair may occur for sums and again for pairs."""

    servers: int
    source: NDArray[np.int32]
    destination: NDArray[np.int32]
    size_bytes: NDArray[np.float64]
    for_sum: NDArray[np.bool_]
    """Part of a sum; otherwise model-parallel."""

    @property
    def by_distance(self) -> NDArray[np.float64]:
        """Bytes that go to the server m further on (mod n), for every m."""
        apart = (self.destination.astype(np.int64) - self.source) % self.servers
        return np.bincount(apart, weights=self.size_bytes, minlength=self.servers).astype(np.float64)


def traffic_of(wiring: Wiring, demands: Demands) -> Traffic:
    """The transfers of a design. Zero bytes are sent by nobody and left out.

    >>> wiring = Wiring(4, 2, True, 1.0, 0.0, (), ((0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)), 2, 0)
    >>> traffic = traffic_of(wiring, Demands(4, (GroupSum((0, 1, 2, 3), 8.0),), np.zeros((4, 4))))
    >>> traffic.by_distance.tolist()
    [0.0, 24.0, 0.0, 24.0]
    """
    if demands.servers != wiring.servers:
        raise StrategyError(
            f"demands of {demands.servers} servers on a wiring of {wiring.servers}: derive both from the same servers"
        )
    blocks = [_ring_hops(wiring, group) for group in demands.sums if group.size_bytes > 0]
    a, b = np.nonzero(demands.pairs)
    blocks.append((a, b, demands.pairs[a, b]))
    source, destination, size_bytes = (np.concatenate(column) for column in zip(*blocks, strict=True))
    for_sum = np.arange(len(source)) < len(source) - len(a)
    return Traffic(
        wiring.servers, source.astype(np.int32), destination.astype(np.int32), size_bytes.astype(np.float64), for_sum
    )


def ring_jumps(wiring: Wiring, size: int) -> tuple[int, ...]:
    """Directed rings of groups of a size: those of the wiring; a size without rings keeps its own order."""
    jumps = next((rings.jumps for rings in wiring.rings if rings.size == size and rings.jumps), (1,))
    return directed_jumps(size, jumps, duplex=wiring.duplex)


def _ring_hops(wiring: Wiring, group: GroupSum) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    members = np.array(group.servers, np.int64)
    jumps = ring_jumps(wiring, len(members))
    here = np.tile(np.arange(len(members)), len(jumps))
    there = (here + np.repeat(jumps, len(members))) % len(members)
    hop_bytes = group.wire_bytes / len(members) / len(jumps)
    return members[here], members[there], np.full(len(here), hop_bytes)
