"""How far servers of a circulant are from each other, what its jumps are judged by; and the jumps of one group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.circulants import best_rings
from ropewalk.codesign.totient import directed_jumps
from ropewalk.routing.coin_change import coin_change


def best_jumps(size: int, count: int, *, duplex: bool, **search: object) -> tuple[int, ...]:
    """The `count` rings of one group by itself with the fewest hops, ascending; all its rings if it has no more."""
    return best_rings(size, {size: count}, duplex=duplex, **search)[0][size]


def hop_counts(size: int, jumps: tuple[int, ...], duplex: bool) -> NDArray[np.int32]:
    """Fewest hops to the server m further on, for every m."""
    return coin_change(size, directed_jumps(size, tuple(jumps), duplex=duplex)).hops


def diameter(size: int, jumps: tuple[int, ...], duplex: bool) -> int:
    """Hops between the two servers that are farthest apart."""
    return int(hop_counts(size, jumps, duplex).max())


def mean_hops(size: int, jumps: tuple[int, ...], duplex: bool, weight: NDArray[np.float64] | None = None) -> float:
    """Mean hops over all other servers, or over the demand where `weight[m]` is the demand at distance m."""
    hops = hop_counts(size, jumps, duplex)[1:]
    demand = np.ones(size - 1) if weight is None else weight[1:]
    return float(hops @ demand / demand.sum()) if demand.any() else 0.0
