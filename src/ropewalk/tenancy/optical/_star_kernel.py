"""Fibres from leafs to switches towards one spine, as a matching that grows along augmenting paths."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Flags, Ints
from ropewalk.compiled import kernel


@kernel
def grow(possible: Flags, room: Ints, order: Ints, times: Ints, each: int, most: int, used: Flags) -> int:
    """Add `each` fibres to one leaf after the other, up to times[leaf] times, `most` times at most; answers how often.

    `possible` [leaf, switch]: the leaf has a fibre there, and the spine; `room`: fibres of the spine by switch; `used`
    [leaf, switch] gets the matching. Fibres of earlier leafs move to other switches to make way; a leaf gets all of
    `each` or none.
    """
    switches = len(room)
    users = np.empty((switches, max(1, room.max())), np.int64)
    count, done = np.zeros(switches, np.int64), 0
    came, queue = np.empty((switches, 2), np.int64), np.empty((1 + room.sum(), 2), np.int64)
    for leaf in order:
        for _ in range(times[leaf]):
            if done == most:
                return done
            users_before, count_before, used_before = users.copy(), count.copy(), used.copy()
            for _ in range(each):
                if not _augment(leaf, possible, room, users, count, used, came, queue):
                    users[:], count[:], used[:] = users_before, count_before, used_before
                    break
            else:
                done += 1
                continue
            break
    return done


@kernel
def _augment(
    leaf: int, possible: Flags, room: Ints, users: Ints, count: Ints, used: Flags, came: Ints, queue: Ints
) -> bool:
    """One more fibre for a leaf, by a shortest path to a switch with room."""
    # By switch: the leaf that asks for it, -1 for none yet, and the switch that leaf gives up (-1 for the first).
    came[:] = -1
    queue[0, 0], queue[0, 1] = leaf, -1
    end, at = 1, 0
    while at < end:
        asks, gives_up = queue[at]
        at += 1
        for switch in range(len(room)):
            if not possible[asks, switch] or used[asks, switch] or came[switch, 0] >= 0:
                continue
            came[switch, 0], came[switch, 1] = asks, gives_up
            if count[switch] < room[switch]:
                _follow(switch, users, count, used, came)
                return True
            for place in range(count[switch]):
                queue[end, 0], queue[end, 1] = users[switch, place], switch
                end += 1
    return False


@kernel
def _follow(switch: int, users: Ints, count: Ints, used: Flags, came: Ints) -> None:
    """Every leaf of a path takes the switch it asks for and gives up its own."""
    while switch >= 0:
        leaf, gives_up = came[switch]
        users[switch, count[switch]] = leaf
        count[switch] += 1
        used[leaf, switch] = True
        if gives_up >= 0:
            count[gives_up] -= 1
            place = 0
            while users[gives_up, place] != leaf:
                place += 1
            for after in range(place, count[gives_up]):
                users[gives_up, after] = users[gives_up, after + 1]
            used[leaf, gives_up] = False
        switch = gives_up
