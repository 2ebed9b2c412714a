"""How the groups of a step sit in servers; groups that sit alike share what is worked out for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.over_servers import Servers


@dataclass(frozen=True, eq=False)
class Seating:
    """Groups with the same number of ranks in each server: row r of `members` is one of them, server by server."""

    servers: Servers
    members: NDArray[np.int32]

    @property
    def ranks(self) -> int:
        return int(self.members.shape[1])


@dataclass(frozen=True, eq=False)
class SeatedGroups:
    """Group g is row `row[g]` of seating `seating_of[g]`."""

    seatings: tuple[Seating, ...]
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
    for group, members in enumerate(groups):
        server = server_of_rank[members]
        _, first, which = np.unique(server, return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))[which]
        servers = tuple(np.bincount(place).tolist())
        seating = number.setdefault(servers, len(number))
        if seating == len(rows):
            rows.append([])
        seating_of[group], row[group] = seating, len(rows[seating])
        rows[seating].append(members[np.argsort(place, kind="stable")])
    seatings = tuple(Seating(servers, np.stack(rows[index])) for servers, index in number.items())
    return SeatedGroups(seatings, seating_of, row)
