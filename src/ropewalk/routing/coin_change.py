"""Coin change modulo n: the fewest jumps of a circulant that lead from one server to another.

On a circulant a way from i to j depends on m = j - i (mod n) alone: it is m paid in coins, the coins being the jumps
of the links. Sums wrap round (3 = 11 + 5 + 11 mod 12), so the table that is filled from 0 to m does not do: distances
are relaxed outwards from 0 until every residue is reached. Addition commutes, so a payment may be laid out in any
order, and a coin that occurs in some fewest-coins payment of m may be the first hop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import RouteError


@dataclass(frozen=True, eq=False)
class CoinChange:
    """Every residue modulo `servers` paid with the fewest coins."""

    servers: int
    coins: tuple[int, ...]
    """Jumps of the links, opposites listed as coins of their own; ties are looked at in this order."""
    hops: NDArray[np.int32]
    """hops[m]: the fewest coins that sum to m."""
    usable: NDArray[np.bool_]
    """usable[m, c]: some fewest-coins payment of m has coin number c in it. All payments are read off this table."""

    def payments(self, residue: int) -> tuple[tuple[int, ...], ...]:
        """All multisets of the fewest coins that sum to the residue, each in the order of the coins.

        >>> coin_change(12, (1, 5, 7, 11)).payments(6)
        ((1, 5), (7, 11))
        """
        return tuple(self._payments(residue % self.servers, 0))

    def _payments(self, residue: int, first: int) -> Iterator[tuple[int, ...]]:
        if residue == 0:
            yield ()
        for number in range(first, len(self.coins)):
            if self.usable[residue, number]:
                coin = self.coins[number]
                for rest in self._payments((residue - coin) % self.servers, number):
                    yield (coin, *rest)


def coin_change(servers: int, coins: Sequence[int]) -> CoinChange:
    """Pay every residue modulo `servers` with the fewest coins (CoinChangeMod of Wang et al., TopoOpt, NSDI 2023).

    >>> change = coin_change(12, (1, 5, 7, 11))
    >>> change.hops.tolist()
    [0, 1, 2, 3, 2, 1, 2, 1, 2, 3, 2, 1]
    >>> change.payments(3)
    ((1, 1, 1), (1, 7, 7), (5, 5, 5), (5, 11, 11))
    """
    known = tuple(dict.fromkeys(int(coin) % servers for coin in coins)) if servers > 0 else ()
    if servers < 1 or 0 in known or (servers > 1 and not known):
        raise RouteError(
            f"coins {tuple(coins)} for {servers} servers: give at least one stride that is not a multiple of {servers}"
        )
    hops = np.full(servers, -1, np.int32)
    hops[0] = 0
    reached, step = np.zeros(1, np.int64), np.array(known, np.int64)
    while len(reached):
        further = np.unique((reached[:, None] + step) % servers)
        level = hops[reached[0]] + 1
        reached = further[hops[further] < 0]
        hops[reached] = level
    if (hops < 0).any():
        raise RouteError(
            f"coins {known} never sum to {int(np.argmin(hops))} modulo {servers}, "
            f"they share a factor with it: add a coin that does not, such as 1"
        )
    before = (np.arange(servers)[:, None] - step) % servers
    usable = hops[before] == hops[:, None] - 1
    return CoinChange(servers, known, hops, usable)
