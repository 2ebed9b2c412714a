"""Rings of groups that got no cables of their own: every hop is a way over the rings of others.

A group of k servers, n/k apart, may form a ring with any jump p coprime to k, which is p*n/k on servers. Of these those
with the fewest hops over the cables that are there are taken, and their hops are paid in coins.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.codesign.totient import totient_jumps
from ropewalk.routing.coin_change import coin_change


@dataclass(frozen=True)
class MultiHopRing:
    """A ring of a group whose members are `servers / size` apart: each of its hops is one of these ways."""

    jump: int
    """Members further on: the server `jump * servers / size` further on."""
    payments: tuple[tuple[int, ...], ...]
    """All ways with the fewest hops, as jumps of the cables in any order."""

    @property
    def hops(self) -> int:
        return len(self.payments[0])


def multi_hop_rings(servers: int, size: int, coins: tuple[int, ...]) -> tuple[MultiHopRing, ...]:
    """The directed rings of groups of a size that have the fewest hops over cables with these directed jumps."""
    change = coin_change(servers, coins)
    stride = servers // size
    jumps = totient_jumps(size, duplex=False)
    fewest = min(int(change.hops[jump * stride]) for jump in jumps)
    return tuple(
        MultiHopRing(jump, change.payments(jump * stride)) for jump in jumps if change.hops[jump * stride] == fewest
    )
