"""Which leaf, server and GPUs a job gets: the loops over servers and their free GPUs."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.compiled import kernel


@kernel
def best_leaf(
    free_in_server: Ints, free_on_leaf: Ints, idle_servers: Ints, first_server: Ints, size: int, share: int, needed: int
) -> tuple[int, int, int]:
    """(free GPUs, servers with `share` of them free, the fullest leaf with `needed` such servers or -1)."""
    free, fitting, best = 0, 0, -1
    for leaf in range(len(free_on_leaf)):
        free += free_on_leaf[leaf]
        here = 0
        if share == size:
            here = idle_servers[leaf]
        elif free_on_leaf[leaf] >= share:
            for server in range(first_server[leaf], first_server[leaf + 1]):
                here += free_in_server[server] >= share
        fitting += here
        if here >= needed and (best < 0 or free_on_leaf[leaf] < free_on_leaf[best]):
            best = leaf
    return free, fitting, best


@kernel
def buddy_group(free: int, size: int, gpus: int) -> tuple[int, int]:
    """(size, first place) of the smallest free aligned power-of-two group that holds `gpus`, grown while it is free.

    If the free GPUs are scattered, its size is one more than a server's.
    """
    if gpus == size and free == (np.int64(1) << size) - 1:
        return size, 0
    width = 1
    while width < gpus:
        width *= 2
    while width <= size:
        for start in range(0, size - width + 1, width):
            whole = ((np.int64(1) << width) - 1) << start
            if free & whole == whole and not _larger_is_free(free, size, start, width):
                return width, start
        width *= 2
    return size + 1, 0


@kernel
def _larger_is_free(free: int, size: int, start: int, width: int) -> bool:
    """Is the group half of a larger free one?"""
    start -= start % (2 * width)
    if start + 2 * width > size:
        return False
    whole = ((np.int64(1) << 2 * width) - 1) << start
    return bool(free & whole == whole)


@kernel
def inside_one_server(free_gpus: Ints, free_in_server: Ints, first: int, last: int, size: int, gpus: int) -> Ints:
    """The server whose smallest sufficient group of free GPUs is smallest, so that large groups stay whole."""
    best, best_group, best_start = -1, 0, 0
    for server in range(first, last):
        if free_in_server[server] < gpus:
            continue
        group, start = buddy_group(free_gpus[server], size, gpus)
        fuller = group == best_group and free_in_server[server] < free_in_server[best]
        if best < 0 or group < best_group or fuller:
            best, best_group, best_start = server, group, start
    seats = np.empty(gpus, np.int64)
    taken, place = 0, best_start
    while taken < gpus:
        if best_group <= size or free_gpus[best] >> place & 1:
            seats[taken] = best * size + place
            taken += 1
        place += 1
    return seats


@kernel
def over_idle_servers(leafs: Ints, shares: Ints, free_in_server: Ints, first_server: Ints, size: int) -> Ints:
    """So many GPUs of the fewest idle servers of each leaf: evenly where that is possible, else the last is not full.

    Short where a leaf has too few idle servers.
    """
    total = 0
    for share in shares:
        total += share
    seats = np.empty(total, np.int64)
    at = 0
    for row in range(len(leafs)):
        needed = -(-shares[row] // size)
        each = shares[row] // needed if shares[row] % needed == 0 else size
        end = at + shares[row]
        for server in range(first_server[leafs[row]], first_server[leafs[row] + 1]):
            if at == end:
                break
            if free_in_server[server] == size:
                for place in range(min(each, end - at)):
                    seats[at] = server * size + place
                    at += 1
        if at < end:
            return seats[:at]
    return seats


@kernel
def fullest_first(idle_servers: Ints, needed: int) -> tuple[Ints, Ints]:
    """(leafs, servers of each): the leafs with most idle servers, and what is left on the best-fitting one."""
    taken = np.zeros_like(idle_servers)
    missing = needed
    while missing > 0:
        best, most = -1, -1
        for leaf in range(len(idle_servers)):
            if taken[leaf]:
                continue
            if idle_servers[leaf] >= missing and (best < 0 or idle_servers[leaf] < idle_servers[best]):
                best = leaf
            if most < 0 or idle_servers[leaf] > idle_servers[most]:
                most = leaf
        leaf = best if best >= 0 else most
        if leaf < 0 or idle_servers[leaf] == 0:
            break
        taken[leaf] = min(missing, idle_servers[leaf])
        missing -= taken[leaf]
    leafs = np.flatnonzero(taken)
    return leafs, taken[leafs]
