"""Shares for a known demand: the paths stay, the bytes of a pair move to those whose links have less to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.ragged import rows_of
from ropewalk.routing.routes import IntArray, Routes, starts

SWEEPS = 50
"""Rounds over all pairs at most."""

SETTLED = 1e-6
"""Relative gain of a whole sweep below which balancing ends."""

LEAST_SHARE = 1e-6
"""A path with less than this is left out and its share given to the others: nobody configures a millionth."""


def balanced(routes: Routes, pair: IntArray, size_bytes: NDArray[np.float64]) -> Routes:
    """Routes with the same paths and other shares, for transfers of `size_bytes[i]` over the routes of row `pair[i]`.

    The sum of the squares of link times (bytes over bandwidth) falls with every move. Pairs that send nothing keep
    their shares. A path that ends up with next to nothing is dropped.

    >>> from ropewalk.fabric import Ring
    >>> from ropewalk.routing.k_shortest import k_shortest
    >>> routes = k_shortest(2)(Ring(4).build(), np.array([0, 0]), np.array([1, 2]))
    >>> balanced(routes, np.array([0, 1]), np.array([1.0, 1.0])).share.round(3).tolist()
    [1.0, 0.25, 0.75]
    """
    # Imported here because loading Numba takes longer than most commands run.
    from ropewalk.routing._balance import move_shares

    amount = np.bincount(pair, weights=size_bytes, minlength=routes.pairs).astype(np.float64)
    chosen = np.flatnonzero((amount > 0) & (np.diff(routes.path_start) > 1))
    if len(chosen) == 0:
        return routes
    # Only ratios matter; bytes and bandwidths as they are would square to numbers that lose digits.
    amount = amount / amount.max()
    slowness = routes.fabric.bandwidth.max() / routes.fabric.bandwidth
    share = routes.share.copy()
    load = routes.link_bytes(np.arange(routes.pairs), amount) * slowness
    before = float(load @ load)
    for _ in range(SWEEPS):
        after = float(
            move_shares(chosen, amount, routes.path_start, routes.link_start, routes.link, slowness, load, share)
        )
        if before - after <= SETTLED * before:
            break
        before = after
    return with_shares(routes, np.where(share > LEAST_SHARE, share, 0.0))


def with_shares(routes: Routes, share: NDArray[np.float64]) -> Routes:
    """Routes without the paths whose share is 0, the shares of every pair divided by their sum."""
    kept = np.flatnonzero(share > 0)
    pair = routes.pair_of_path[kept]
    total = np.bincount(pair, weights=share[kept], minlength=routes.pairs)
    hops = routes.hops[kept]
    return Routes(
        routes.fabric,
        routes.pair_src,
        routes.pair_dst,
        starts(np.bincount(pair, minlength=routes.pairs)),
        share[kept] / total[pair],
        starts(hops),
        rows_of(routes.link, routes.link_start[kept], hops),
    )
