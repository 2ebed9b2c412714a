"""How far servers of a circulant are from each other: what its jumps are judged by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.totient import directed_jumps
from ropewalk.errors import StrategyError
from ropewalk.routing.coin_change import coin_change


def hop_counts(size: int, jumps: tuple[int, ...], duplex: bool) -> NDArray[np.int32]:
    """Fewest hops to the server m further on, for every m.

    >>> hop_counts(12, (1, 5), True).tolist()
    [0, 1, 2, 3, 2, 1, 2, 1, 2, 3, 2, 1]
    """
    return coin_change(size, directed_jumps(size, tuple(jumps), duplex=duplex)).hops


def diameter(size: int, jumps: tuple[int, ...], duplex: bool) -> int:
    """Hops between the two servers that are farthest apart.

    >>> diameter(128, (1, 5, 21, 35), True)
    4
    """
    return int(hop_counts(size, jumps, duplex).max())


def mean_hops(size: int, jumps: tuple[int, ...], duplex: bool, weight: NDArray[np.float64] | None = None) -> float:
    """Mean hops over all other servers, or over the demand where `weight[m]` is the demand at distance m.

    >>> round(mean_hops(16, (1, 3, 7), False), 3)
    2.267
    """
    hops = hop_counts(size, jumps, duplex)[1:]
    demand = np.ones(size - 1) if weight is None else checked_weight(size, weight)[1:]
    return float(hops @ demand / demand.sum()) if demand.any() else 0.0


def checked_weight(size: int, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Demand by distance as an array of the right length, without negative or infinite entries."""
    demand = np.ascontiguousarray(weight, np.float64)
    if demand.shape != (size,) or not np.isfinite(demand).all() or (demand < 0).any():
        raise StrategyError(
            f"the demand by distance has shape {demand.shape} or negative or infinite entries: "
            f"give {size} numbers, one for each distance 0…{size - 1}"
        )
    return demand
