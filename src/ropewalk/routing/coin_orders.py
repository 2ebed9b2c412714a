"""In which order coins are paid, and how many bytes each order gets.

The rule of the order: a server that got a transfer by coin c goes on with c as long as some fewest-coins payment of
what is left has it, then with the next such coin in the circle of coins. So the next hop depends on the port a
transfer came in by and on where it goes, and on nothing else: that is what forwarding tables of servers look like.
The sender is free to begin with any coin of a fewest-coins payment; these beginnings are the *ways* of a residue, and
the bytes are shared among them so that the links of all coins are loaded as equally as they can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.routing.coin_change import CoinChange

SWEEPS = 100
"""Rounds of balancing at most; a handful settles what the circulants of practice leave to choose."""

SETTLED = 1e-9
"""Relative gain of a whole sweep below which balancing ends."""


@dataclass(frozen=True, eq=False)
class CoinOrders:
    """Ways of all residues, those of residue m in rows `start[m]:start[m+1]`, by the number of their first coin."""

    change: CoinChange
    start: NDArray[np.int64]
    coin: NDArray[np.int64]
    """coin[w, h]: number of the coin that way w pays at hop h; -1 behind its end."""

    @property
    def residue(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.change.servers), np.diff(self.start))

    @property
    def counts(self) -> NDArray[np.int64]:
        """counts[w, c]: how often way w pays coin number c."""
        numbers = np.arange(len(self.change.coins))
        return np.asarray((self.coin[:, :, None] == numbers).sum(axis=1), np.int64)


def coin_orders(change: CoinChange) -> CoinOrders:
    """Lay out one way for every first coin of every residue.

    >>> from ropewalk.routing.coin_change import coin_change
    >>> orders = coin_orders(coin_change(12, (1, 5, 11, 7)))
    >>> orders.coin[orders.start[3] : orders.start[4]].tolist()
    [[0, 0, 0], [1, 1, 1], [2, 2, 1], [3, 3, 0]]
    """
    coins = np.array(change.coins, np.int64)
    follow = _next_coin(change.usable)
    residue, number = np.nonzero(change.usable)
    start = np.searchsorted(residue, np.arange(change.servers + 1)).astype(np.int64)
    laid = np.full((len(residue), int(change.hops.max(initial=0))), -1, np.int64)
    left = residue
    for hop in range(laid.shape[1]):
        going = left > 0
        laid[going, hop] = number[going]
        left = np.where(going, (left - coins[number]) % change.servers, 0)
        number = follow[left, number]
    return CoinOrders(change, start, laid)


def _next_coin(usable: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The coin that follows coin c where m is left: c itself, or the next one in the circle that m can be paid with."""
    servers, coins = usable.shape
    turn = (np.arange(coins)[:, None] + np.arange(coins)) % coins
    # For residue 0 nothing follows and nothing is asked.
    ahead = np.argmax(usable[:, turn], axis=2)
    return np.asarray((np.arange(coins) + ahead) % coins, np.int64).reshape(servers, coins)


def balanced_shares(
    orders: CoinOrders, weight: NDArray[np.float64], speed: NDArray[np.float64], shared: bool = True
) -> NDArray[np.float64]:
    """Shares of all ways; those of a residue sum to 1.

    On a circulant all links of a coin carry the same when every server sends `weight[m]` to the server m further on.
    The sum of squares of these loads, each divided by the `speed` of its links, is lowered residue by residue until
    it settles. Without `shared` every residue has one way, which gets everything.
    """
    cost = orders.counts / speed
    rows = [slice(*ends) for ends in zip(orders.start[:-1].tolist(), orders.start[1:].tolist(), strict=True)]
    share = np.zeros(len(cost))
    for row in rows[1:]:
        share[row if shared else row.start] = 1 / (row.stop - row.start) if shared else 1.0
    load = (share * weight[orders.residue]) @ cost
    free = [row for m, row in enumerate(rows) if weight[m] > 0 and (cost[row] != cost[row][:1]).any()]
    move = _move_share if shared else _move_all
    for _ in range(SWEEPS):
        before = load @ load
        for row in free:
            load = move(share, row, load, cost[row] * weight[orders.residue[row.start]])
        if before - load @ load <= SETTLED * before:
            break
    return share


def _move_share(
    share: NDArray[np.float64], row: slice, load: NDArray[np.float64], cost: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Move share from the dearest way that has some to the cheapest, as far as it helps."""
    price = cost @ load
    cheap = int(np.argmin(price))
    dear = int(np.argmax(np.where(share[row] > 0, price, -np.inf)))
    change = cost[cheap] - cost[dear]
    slope, curve = price[cheap] - price[dear], change @ change
    if slope >= 0 or curve == 0:
        return load
    moved = min(-slope / curve, share[row.start + dear])
    share[row.start + cheap] += moved
    share[row.start + dear] -= moved
    return np.asarray(load + moved * change)


def _move_all(
    share: NDArray[np.float64], row: slice, load: NDArray[np.float64], cost: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give everything to the way with which the loads are most equal."""
    others = load - share[row] @ cost
    squares = ((others + cost) ** 2).sum(axis=1)
    now = int(np.argmax(share[row]))
    best = int(np.argmin(squares))
    if squares[best] >= squares[now]:
        return load
    share[row] = 0.0
    share[row.start + best] = 1.0
    return np.asarray(others + cost[best])
