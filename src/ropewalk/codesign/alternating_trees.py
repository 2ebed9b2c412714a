"""The trees and blossoms of a matching under way: how they are kept, joined, taken apart and re-matched (kernels).

A *blossom* is an odd cycle of tight edges whose parts, vertices or smaller blossoms, act as one vertex. Trees alternate
between outer parts (even depth) and inner parts (odd depth); `blossom.py` decides when they grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.compiled import kernel

FREE, OUTER, INNER = 0, 1, 2


class AlternatingForest(NamedTuple):
    """Vertices are 0 … n-1; blossoms have the numbers from n on and are used again after they are dissolved."""

    weight: Ints
    dual: Ints
    mate: Ints
    """Of a vertex: the vertex it is matched with, or -1."""
    top: Ints
    """Of a vertex: the outermost blossom that contains it, or itself."""
    parent: Ints
    base: Ints
    """The one vertex of a blossom that is not matched inside it."""
    label: Ints
    reached_from: Ints
    """Of an inner blossom: the outer vertex whose edge made it inner, and the vertex inside that the edge ends at."""
    reached_at: Ints
    near_from: Ints
    """Of an outer blossom: its edge of least slack to another outer blossom."""
    near_to: Ints
    want: Ints
    """Of a vertex that is not outer: the outer vertex of least slack to it."""
    children: Ints
    """Of blossom n + i: how many children it has; 0 where the number is unused."""
    child: Ints
    """Row i: children of blossom n + i around its odd cycle, the one with the base first."""
    leave: Ints
    """The edge from child j to the next one: its end in child j, and (`enter`) in the next."""
    enter: Ints
    closest: Ints
    """Row i: for every vertex outside blossom n + i, the vertex inside with the least slack to it."""


@kernel
def slack_of(f: AlternatingForest, u: int, v: int) -> int:
    return int(f.dual[u] + f.dual[v] - 2 * f.weight[u, v])


@kernel
def closest(f: AlternatingForest, b: int, v: int) -> int:
    return b if b < len(f.mate) else f.closest[b - len(f.mate), v]


@kernel
def exists(f: AlternatingForest, b: int) -> bool:
    """Whether b is an outermost vertex or blossom."""
    return f.parent[b] < 0 and (b < len(f.mate) or f.children[b - len(f.mate)] > 0)


@kernel
def meeting_of(f: AlternatingForest, u: int, v: int) -> int:
    """The outer blossom where the paths of u and v to their roots meet, or -1 when they are in different trees."""
    passed = np.zeros(len(f.label), np.bool_)
    b = f.top[u]
    while True:
        passed[b] = True
        mate = f.mate[f.base[b]]
        if mate < 0:
            break
        b = f.top[f.reached_from[f.top[mate]]]
    b = f.top[v]
    while not passed[b]:
        mate = f.mate[f.base[b]]
        if mate < 0:
            return -1
        b = f.top[f.reached_from[f.top[mate]]]
    return b  # type: ignore[no-any-return]


@kernel
def blossom(f: AlternatingForest, u: int, v: int, meeting: int) -> int:
    """Make one outer blossom of the odd cycle that the edge from u to v closes; the two ways meet in `meeting`."""
    n = len(f.mate)
    row = 0
    while f.children[row] > 0:
        row += 1
    b = n + row
    child, leave, enter = f.child[row], f.leave[row], f.enter[row]
    before = 0
    outer = f.top[u]
    while outer != meeting:
        outer = f.top[f.reached_from[f.top[f.mate[f.base[outer]]]]]
        before += 2
    child[0] = meeting
    at, outer = before, f.top[u]
    while outer != meeting:  # from u back to the meeting, filling the cycle backwards
        inner = f.top[f.mate[f.base[outer]]]
        child[at], leave[at - 1], enter[at - 1] = outer, f.mate[f.base[outer]], f.base[outer]
        child[at - 1], leave[at - 2], enter[at - 2] = inner, f.reached_from[inner], f.reached_at[inner]
        at, outer = at - 2, f.top[f.reached_from[inner]]
    leave[before], enter[before] = u, v
    at, outer = before + 1, f.top[v]
    while outer != meeting:
        inner = f.top[f.mate[f.base[outer]]]
        child[at], leave[at], enter[at] = outer, f.base[outer], f.mate[f.base[outer]]
        child[at + 1], leave[at + 1], enter[at + 1] = inner, f.reached_at[inner], f.reached_from[inner]
        at, outer = at + 2, f.top[f.reached_from[inner]]
    f.children[row] = at
    f.dual[b], f.base[b], f.parent[b] = 0, f.base[meeting], -1
    for j in range(at):
        f.parent[child[j]] = b
        f.label[child[j]] = FREE
    for w in range(n):
        if f.parent[f.top[w]] == b:
            f.top[w] = b
    for w in range(n):
        if f.top[w] != b:
            best = closest(f, child[0], w)
            for j in range(1, at):
                other = closest(f, child[j], w)
                if slack_of(f, other, w) < slack_of(f, best, w):
                    best = other
            f.closest[row, w] = best
    return b


@kernel
def place_in_cycle(f: AlternatingForest, b: int, v: int) -> int:
    """Which child of blossom b contains vertex v."""
    inside = v
    while f.parent[inside] != b:
        inside = f.parent[inside]
    place = 0
    while f.child[b - len(f.mate), place] != inside:
        place += 1
    return place


@kernel
def dissolve(f: AlternatingForest, b: int) -> None:
    """Make the children of blossom b outermost and free."""
    row = b - len(f.mate)
    for j in range(f.children[row]):
        f.parent[f.child[row, j]] = -1
        f.label[f.child[row, j]] = FREE
    for v in range(len(f.mate)):
        if f.top[v] == b:
            outermost = v
            while f.parent[outermost] >= 0:
                outermost = f.parent[outermost]
            f.top[v] = outermost
    f.children[row] = 0
    f.label[b] = FREE


@kernel
def augment(f: AlternatingForest, u: int, v: int) -> None:
    """Match outer vertex u with v, then re-match all the way from u to the root of its tree."""
    while True:
        mate = f.mate[f.base[f.top[u]]]
        move_base(f, f.top[u], u)
        f.mate[u] = v
        if mate < 0:
            return
        inner = f.top[mate]
        v, u = f.reached_at[inner], f.reached_from[inner]
        move_base(f, inner, v)
        f.mate[v] = u


@kernel
def move_base(f: AlternatingForest, whole: int, vertex: int) -> None:
    """Re-match inside a blossom, and the blossoms inside it, so that `vertex` is the one left for outside."""
    n = len(f.mate)
    waiting = np.empty((len(f.label), 2), np.int64)
    waiting[0, 0], waiting[0, 1] = whole, vertex
    length = 1
    while length:
        length -= 1
        b, v = waiting[length]
        if b < n:
            continue
        row, place = b - n, place_in_cycle(f, b, v)
        count = f.children[row]
        waiting[length, 0], waiting[length, 1] = f.child[row, place], v
        length += 1
        at = place
        while at != 0:
            edge = at + 1 if place % 2 else at - 2
            x, y = f.leave[row, edge], f.enter[row, edge]
            f.mate[x], f.mate[y] = y, x
            waiting[length, 0], waiting[length, 1] = f.child[row, edge], x
            waiting[length + 1, 0], waiting[length + 1, 1] = f.child[row, (edge + 1) % count], y
            length += 2
            at = (at + 2) % count if place % 2 else at - 2
        for ring in (f.child, f.leave, f.enter):
            turned = np.concatenate((ring[row, place:count], ring[row, :place]))
            ring[row, :count] = turned
        f.base[b] = v
