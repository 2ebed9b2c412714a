"""Kueue's topology-aware scheduling (KEP 2724): BestFit and LeastFreeCapacity.

Both count how many parts of a job fit into every domain. BestFit with a preferred level looks for one domain of that
level that holds all of them, the fullest that does, then for one of the level above, and so on; where no domain holds
them all, it takes the emptiest ones and for the rest again the fullest that holds it. From there it goes down level by
level, over all domains below those that were chosen. LeastFreeCapacity, which Kueue uses where a job has no constraint,
looks at servers alone, the fullest first: one that holds the whole job, or else as many as it takes.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.placements.levels import Levels, levels_of
from ropewalk.tenancy.placements.seated import GangRequest


def best_fit(levels: Levels, room: Ints, parts: int, level: int, *, required: bool = False) -> Ints | None:
    """Parts on every server, for a job that prefers one domain of a level (or requires it); None where it waits.

    Servers are the level behind the last.

    >>> one_rack = Levels(np.zeros((1, 4), np.int64))
    >>> best_fit(one_rack, np.array([3, 3, 2, 1]), 7, level=0).tolist()
    [3, 3, 0, 1]
    """
    fitting = _fitting(levels, room, parts, level, required=required)
    if fitting is None:
        return None
    level, chosen = fitting
    taken = _taken(chosen, _room_at(levels, room, level), parts)
    while level < levels.depth:
        level += 1
        children = _below(levels, level, np.flatnonzero(taken))
        room_here = _room_at(levels, room, level)
        order = children[np.lexsort((children, -room_here[children]))]
        taken = _taken(order, room_here, parts)
    return taken


def least_free(room: Ints, parts: int) -> Ints | None:
    """Parts on every server, for a job without constraints.

    >>> least_free(np.array([3, 3, 2, 1]), 7).tolist()
    [3, 1, 2, 1]
    """
    if room.sum() < parts:
        return None
    taken = np.zeros_like(room)
    enough = np.flatnonzero(room >= parts)
    if len(enough):
        taken[enough[np.argmin(room[enough])]] = parts
        return taken
    for server in np.argsort(room, kind="stable").tolist():
        taken[server] = min(int(room[server]), parts)
        parts -= int(taken[server])
    return taken


def by_best_fit(state: Occupancy, asked: GangRequest) -> Ints:
    """Servers of a job that prefers one leaf."""
    levels = levels_of(state.plant)
    taken = best_fit(levels, asked.room, asked.parts, levels.depth - 1)
    assert taken is not None, "there is room for all parts"
    return np.repeat(np.arange(levels.servers), taken)


def by_least_free(state: Occupancy, asked: GangRequest) -> Ints:
    """Servers of a job without constraints."""
    taken = least_free(asked.room, asked.parts)
    assert taken is not None, "there is room for all parts"
    return np.repeat(np.arange(len(taken)), taken)


def _room_at(levels: Levels, room: Ints, level: int) -> Ints:
    return room if level == levels.depth else levels.sums(level, room)


def _below(levels: Levels, level: int, chosen: Ints) -> Ints:
    """Domains of a level, or servers behind the last, that are in one of the domains chosen above."""
    inside = np.isin(levels.of_server[level - 1], chosen)
    return np.flatnonzero(inside) if level == levels.depth else np.unique(levels.of_server[level][inside])


def _fitting(levels: Levels, room: Ints, parts: int, level: int, *, required: bool) -> tuple[int, list[int]] | None:
    """The level, and the domains of it, that hold the job."""
    here = _room_at(levels, room, level)
    order = np.lexsort((np.arange(len(here)), -here))
    if here[order[0]] >= parts:
        return level, [_fullest(order, here, parts)]
    if required:
        return None
    if level > 0:
        return _fitting(levels, room, parts, level - 1, required=False)
    chosen: list[int] = []
    for at in range(len(order)):
        domain = int(order[at])
        if here[domain] >= parts:
            domain = _fullest(order[at:], here, parts)
        chosen.append(domain)
        parts -= int(here[domain])
        if parts <= 0:
            return level, chosen
    return None


def _fullest(order: Ints, here: Ints, parts: int) -> int:
    """Of domains in their order the first with the least room that is enough."""
    enough = order[here[order] >= parts]
    return int(enough[np.argmin(here[enough])])


def _taken(order: list[int] | Ints, here: Ints, parts: int) -> Ints:
    """Parts in every domain: all that fit into one after the other, the rest into the fullest that holds it."""
    taken, listed = np.zeros_like(here), np.asarray(order, np.int64)
    for at in range(len(listed)):
        domain = int(listed[at])
        if here[domain] >= parts:
            taken[_fullest(listed[at:], here, parts)] = parts
            break
        taken[domain] = here[domain]
        parts -= int(here[domain])
    return taken
