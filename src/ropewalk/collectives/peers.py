"""Peer sets: groups of ranks that reduce-scatter among themselves at the same time, by mesh or around a ring.

This is the step that plain rings and meshes take once and hierarchies take once for each level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.lanes import Rounds, mirrored
from ropewalk.collectives.program import Round, arrows, refuse_too_many_arrows


@dataclass(frozen=True, eq=False)
class PeerSets:
    """Row s of `members` is one peer set. Member j of it is to own the block of `width` slots from `first[s, j]` on.

    Slots are chunks in the order in which a hierarchy cuts the buffer up; `chunk_at` says which chunk each one is.
    """

    members: NDArray[np.int64]
    first: NDArray[np.int64]
    width: int
    chunk_at: NDArray[np.int64]
    lane: NDArray[np.int64] | None = None
    """Of each peer set; all are in the first unless given."""

    @property
    def size(self) -> int:
        return int(self.members.shape[1])

    def block(self, position: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """CSR of sends that each carry one block: row by row, `position` says whose."""
        first = self.first[:, position].reshape(-1, 1)
        ids = self.chunk_at[first + np.arange(self.width)]
        return np.arange(len(first) + 1) * self.width, ids.ravel()


Inside = Callable[[PeerSets], tuple[Rounds, Rounds]]
"""A way to work inside peer sets: -> (rounds of the reduce-scatter, rounds of the all-gather)."""


def lanes_of(orders: Sequence[NDArray[np.int64]]) -> PeerSets:
    """All ranks in each of these orders, every order in a lane of its own; rank r is to own chunk r of every lane."""
    members, ranks = np.stack(orders), len(orders[0])
    lane = np.arange(len(orders))
    slots = np.arange(members.size).reshape(members.shape)
    return PeerSets(members, slots, 1, (members + lane[:, None] * ranks).ravel(), lane)


def mesh_inside(peers: PeerSets) -> tuple[Rounds, Rounds]:
    """Every member sends every other one its block at once: one round each way."""
    if peers.size == 1:
        return [], []
    refuse_too_many_arrows(f"a mesh of {peers.size} ranks", peers.members.shape[0] * peers.size * (peers.size - 1))
    here, there = np.nonzero(~np.eye(peers.size, dtype=bool))
    pattern = arrows(peers.members[:, here], peers.members[:, there], peers.width, reduces=True)
    scatter = [Round(pattern, partial(peers.block, there))]
    return scatter, mirrored(scatter)


def ring_inside(peers: PeerSets) -> tuple[Rounds, Rounds]:
    """Members pass blocks on to the next member, in n - 1 rounds each way; both ways run in the same direction."""
    return _around(peers, 1)


def reverse_ring_inside(peers: PeerSets) -> tuple[Rounds, Rounds]:
    """The same against the order of the members."""
    return _around(peers, -1)


def _around(peers: PeerSets, step: int) -> tuple[Rounds, Rounds]:
    receivers = np.roll(peers.members, -step, axis=1)
    lane = 0 if peers.lane is None else np.repeat(peers.lane, peers.size)
    adding = arrows(peers.members, receivers, peers.width, reduces=True, lane=lane)
    copying = arrows(peers.members, receivers, peers.width, reduces=False, lane=lane)
    rounds = range(peers.size - 1)
    # A block starts behind its owner and is summed up on the way to it; the finished block sets out from the owner.
    scatter = [Round(adding, partial(_passed_on, peers, step, back + 1)) for back in rounds]
    gather = [Round(copying, partial(_passed_on, peers, step, back)) for back in rounds]
    return scatter, gather


def _passed_on(peers: PeerSets, step: int, back: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every member passes on the block of the member `back` places behind it."""
    return peers.block((np.arange(peers.size) - step * back) % peers.size)
