"""A ring of ranks: which shard of a chunk every message carries, and between which elements it lies.

A chunk is cut into as many shards as there are ranks. In the first n - 1 rounds partial sums circulate, in the last
n - 1 rounds results do. Shard s begins at rank s and meets ranks s + 1, s + 2, ... in this order, whatever arrives
when: so its sum has the same bits in every run.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import StrategyError


@dataclass(frozen=True)
class RingPlace:
    """The place of one rank in a ring: it sends to the next rank and receives from the one before.

    >>> ring = RingPlace(ranks=4, rank=1)
    >>> [ring.sent(turn) for turn in range(ring.rounds)], [ring.received(turn) for turn in range(ring.rounds)]
    ([1, 0, 3, 2, 1, 0], [0, 3, 2, 1, 0, 3])
    """

    ranks: int
    rank: int

    def __post_init__(self) -> None:
        if not self.ranks >= 2 or not 0 <= self.rank < self.ranks:
            raise StrategyError(f"rank {self.rank} of {self.ranks} has no ring: give 2 or more ranks, numbered from 0")

    @property
    def reducing(self) -> int:
        """Rounds whose messages are added."""
        return self.ranks - 1

    @property
    def rounds(self) -> int:
        return 2 * self.reducing

    @property
    def after(self) -> int:
        return (self.rank + 1) % self.ranks

    @property
    def before(self) -> int:
        return (self.rank - 1) % self.ranks

    def sent(self, turn: int) -> int:
        """The shard that this rank sends in a round."""
        return (self.rank - turn) % self.ranks

    def received(self, turn: int) -> int:
        """The shard that this rank receives in a round: what the rank before it sends."""
        return (self.rank - 1 - turn) % self.ranks

    def bounds(self, elements: int, shard: int) -> tuple[int, int]:
        """Between which elements of a chunk a shard lies.

        >>> [RingPlace(3, 0).bounds(8, shard) for shard in range(3)]
        [(0, 2), (2, 5), (5, 8)]
        """
        return elements * shard // self.ranks, elements * (shard + 1) // self.ranks
