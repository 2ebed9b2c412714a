"""Straight to everyone, the kernel: a cheap way through switches for one pair of members at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel

SLOPE = 0.25
"""How much dearer a full arc is than an empty one: enough to spread over equal ways, not enough for detours."""


@kernel
def prices_of_ways(
    start: int, end: int, first: Ints, head: Ints, price: Floats, is_member: NDArray[np.bool_], by: Ints, before: Ints
) -> Floats:
    """The price of the cheapest way from a member to every vertex, past no other member, and by which arc it comes.

    Arcs are sorted by tail; those of infinite price are closed. The search stops at `end`; -1 goes on to everyone
    (Dijkstra 1959, over a list: there are few switches).
    """
    n = len(is_member)
    cost = np.full(n, np.inf)
    done = np.zeros(n, np.bool_)
    listed = np.empty(n, np.int64)
    cost[start] = 0.0
    listed[0] = start
    filled = 1
    while True:
        u = -1
        for index in range(filled):
            v = listed[index]
            if not done[v] and (u < 0 or cost[v] < cost[u]):
                u = v
        if u < 0 or u == end:
            return cost
        done[u] = True
        if is_member[u] and u != start:
            continue
        for arc in range(first[u], first[u + 1]):
            v = head[arc]
            if done[v] or (is_member[v] and end >= 0 and v != end):
                continue
            there = cost[u] + price[arc]
            if there < cost[v]:
                if cost[v] == np.inf:
                    listed[filled] = v
                    filled += 1
                cost[v] = there
                by[v] = arc
                before[v] = u


@kernel
def routed(
    roots: Ints,
    ends: Ints,
    wanted: Ints,
    first: Ints,
    head: Ints,
    capacity: Ints,
    base: Floats,
    is_member: NDArray[np.bool_],
    left: Ints,
    strict: bool,
) -> tuple[bool, Ints, Ints, Ints]:
    """Route pairs one after the other by ways that keep off full arcs; changes `left`, below nothing if not `strict`.

    Whether all of it fits; then for every way its pair, its amount and where its arcs end in one list of arcs, which
    comes last: four columns of which the first three are one table.
    """
    price = base.copy()
    by = np.full(len(is_member), -1, np.int64)
    before = np.full(len(is_member), -1, np.int64)
    rows = 0
    table = np.empty((2 * len(roots) + 16, 3), np.int64)
    used = 0
    arcs = np.empty(8 * len(roots) + len(is_member), np.int64)
    for pair in range(len(roots)):
        missing = wanted[pair]
        while missing > 0:
            cost = prices_of_ways(roots[pair], ends[pair], first, head, price, is_member, by, before)
            if cost[ends[pair]] == np.inf:
                return False, table[:rows, :2], table[:rows, 2], arcs[:used]
            some = missing
            length = 0
            v = ends[pair]
            while v != roots[pair]:
                if strict:
                    some = min(some, left[by[v]])
                length += 1
                v = before[v]
            if rows == len(table):
                table = np.concatenate((table, np.empty_like(table)))
            while used + length > len(arcs):
                arcs = np.concatenate((arcs, np.empty_like(arcs)))
            at = used + length
            v = ends[pair]
            while v != roots[pair]:
                at -= 1
                arc = by[v]
                arcs[at] = arc
                left[arc] -= some
                if strict and left[arc] == 0:
                    price[arc] = np.inf
                else:
                    price[arc] = base[arc] * (1.0 + SLOPE * (1.0 - left[arc] / capacity[arc]))
                v = before[v]
            used += length
            table[rows, 0] = pair
            table[rows, 1] = some
            table[rows, 2] = used
            rows += 1
            missing -= some
    return True, table[:rows, :2], table[:rows, 2], arcs[:used]
