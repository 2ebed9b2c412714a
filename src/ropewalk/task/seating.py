"""How the groups of a step sit in servers; groups that sit alike share what is worked out for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.over_servers import Servers


@dataclass(frozen=True, eq=False)
class GroupSeating:
    """Groups with the same number of ranks in each server: row r of `members` is one of them, server by server."""

    servers: Servers
    members: NDArray[np.int32]

    @property
    def ranks(self) -> int:
        return int(self.members.shape[1])


@dataclass(frozen=True, eq=False)
class SeatedGroups:
    """Group g is row `row[g]` of seating `seating_of[g]`."""

    seatings: tuple[GroupSeating, ...]
    seating_of: NDArray[np.int64]
    row: NDArray[np.int64]


def seat(groups: Sequence[NDArray[np.int32]], server_of_rank: NDArray[np.int32]) -> SeatedGroups:
    """Sort every group by server, servers in the order in which the group names them first.

    >>> seated = seat([np.array([0, 4, 1, 5])], np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    >>> seated.seatings[0].servers, seated.seatings[0].members.tolist()
    ((2, 2), [[0, 1, 4, 5]])
    """
    number: dict[Servers, int] = {}
    rows: list[list[NDArray[np.int32]]] = []
    seating_of, row = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    sizes = np.array([len(members) for members in groups], np.int64)
    for size in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == size)
        members = np.stack([groups[group] for group in which.tolist()])
        place = _place(server_of_rank[members])
        patterns, pattern_of = np.unique(place, axis=0, return_inverse=True)
        for at, pattern in enumerate(patterns):
            mine = np.flatnonzero(pattern_of.ravel() == at)
            servers = tuple(np.bincount(pattern).tolist())
            seating = number.setdefault(servers, len(number))
            if seating == len(rows):
                rows.append([])
            before = sum(map(len, rows[seating]))
            seating_of[which[mine]], row[which[mine]] = seating, before + np.arange(len(mine))
            rows[seating].append(members[mine][:, np.argsort(pattern, kind="stable")])
    seatings = tuple(GroupSeating(servers, np.concatenate(rows[index])) for servers, index in number.items())
    return SeatedGroups(seatings, seating_of, row)


def _place(server: NDArray[np.int32]) -> NDArray[np.int64]:
    """By group and member, which of the servers that the group names it sits in, in the order they are named in."""
    by_server = np.argsort(server, axis=1, kind="stable")
    changes = np.diff(np.take_along_axis(server, by_server, axis=1), axis=1, prepend=-1) != 0
    # Sorted by server, the first member of each stands in front.
    first = np.maximum.accumulate(np.where(changes, np.arange(server.shape[1]), 0), axis=1)
    named = np.empty_like(by_server)
    np.put_along_axis(named, by_server, np.take_along_axis(by_server, first, axis=1), axis=1)
    # `named` is where the server of each member is named first: count the places named up to it.
    opens = named == np.arange(server.shape[1])
    return np.take_along_axis(np.cumsum(opens, axis=1) - 1, named, axis=1)
