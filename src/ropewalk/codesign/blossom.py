"""Maximum-weight matching of a dense graph, exactly, in O(n³): Edmonds' blossoms with dual variables, as a kernel.

Every vertex has a dual, every blossom (an odd set that acts as one vertex) another; an edge may be matched where its
*slack*, the duals of its ends less twice its weight, is zero. Alternating trees grow from all unmatched vertices at
once. Vertices at even depth are *outer* and lower their duals, those at odd depth are *inner* and raise them, until
an edge becomes tight or an inner blossom loses its dual. When the dual of the unmatched vertices reaches zero, the
matching is proved to be the heaviest. Weights are whole numbers, so all duals are, and no rounding can spoil the
proof.

What makes it O(n³) on a dense graph: a blossom remembers, for every vertex outside, which of its own vertices has the
least slack to it (`closest`). That never changes while the blossom lives, because duals inside it move together.

Edges of weight zero are never matched. Ties fall to the lowest vertex first seen, so the result is always the same.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.codesign.alternating_trees import (
    FREE,
    INNER,
    OUTER,
    AlternatingForest,
    augment,
    blossom,
    closest,
    dissolve,
    exists,
    meeting_of,
    place_in_cycle,
    slack_of,
)
from ropewalk.compiled import kernel
from ropewalk.pointer import point_at


def heaviest_matching(weights: Ints) -> Ints:
    """The mate of every vertex (-1 for none) in a matching of the greatest total weight.

    `weights` is symmetric, not negative, and below 2**60; the diagonal does not count.

    >>> path = np.zeros((4, 4), np.int64)
    >>> path[0, 1] = path[1, 0] = 5
    >>> path[1, 2] = path[2, 1] = 7
    >>> path[2, 3] = path[3, 2] = 5
    >>> heaviest_matching(path)
    array([1, 0, 3, 2])
    """
    n = len(weights)
    blossoms = n // 2 + 1
    everything = n + blossoms
    forest = AlternatingForest(
        weight=np.ascontiguousarray(weights, np.int64),
        dual=np.zeros(everything, np.int64),
        mate=np.full(n, -1, np.int64),
        top=np.arange(n),
        parent=np.full(everything, -1, np.int64),
        base=np.arange(everything),
        label=np.zeros(everything, np.int64),
        reached_from=np.full(everything, -1, np.int64),
        reached_at=np.full(everything, -1, np.int64),
        near_from=np.full(everything, -1, np.int64),
        near_to=np.full(everything, -1, np.int64),
        want=np.full(n, -1, np.int64),
        children=np.zeros(blossoms, np.int64),
        child=np.zeros((blossoms, n), np.int64),
        leave=np.zeros((blossoms, n), np.int64),
        enter=np.zeros((blossoms, n), np.int64),
        closest=np.zeros((blossoms, n), np.int64),
    )
    forest.dual[:n] = weights.max(initial=0)
    _match(forest)
    return forest.mate


@kernel
def _match(forest: AlternatingForest) -> None:
    """Stage after stage: grow trees from all unmatched vertices until two of them meet, and match along the way."""
    f = point_at(forest)
    n = len(f.mate)
    while True:
        _match_tight_pairs(f)
        f.label[:] = FREE
        f.near_from[:] = -1
        f.want[:] = -1
        root = -1
        for v in range(n):
            if f.mate[v] < 0:
                root = v
                if f.label[f.top[v]] == FREE:
                    _make_outer(f, f.top[v])
        if root < 0 or not _stage(f, root):
            return
        found = True
        while found:
            found = False
            for b in range(n, n + len(f.children)):
                if exists(f, b) and f.dual[b] == 0:
                    dissolve(f, b)
                    found = True


@kernel
def _match_tight_pairs(f: AlternatingForest) -> None:
    """Match unmatched vertices whose edge is tight: what a stage would do, without its trees (equal weights)."""
    alone = np.flatnonzero((f.mate < 0) & (f.top == np.arange(len(f.mate))))
    if len(alone) == 0 or f.dual[alone[0]] == 0:
        return
    for u in alone:
        for v in alone:
            if f.mate[u] < 0 and f.mate[v] < 0 and u != v and slack_of(f, u, v) == 0:
                f.mate[u], f.mate[v] = v, u


@kernel
def _stage(f: AlternatingForest, root: int) -> bool:
    """Change duals and trees until one more pair can be matched; False when the matching is the heaviest."""
    n = len(f.mate)
    while True:
        grow, join, wither = -1, -1, -1
        delta = f.dual[root]
        for v in range(n):
            if f.label[f.top[v]] == FREE and f.want[v] >= 0:
                slack = slack_of(f, f.want[v], v)
                if slack < delta:
                    delta, grow = slack, v
        for b in range(n + len(f.children)):
            if f.label[b] == OUTER and f.near_from[b] >= 0:
                slack = slack_of(f, f.near_from[b], f.near_to[b]) // 2
                if slack < delta:
                    delta, grow, join = slack, -1, b
            elif f.label[b] == INNER and b >= n and f.dual[b] // 2 < delta:
                delta, grow, join, wither = f.dual[b] // 2, -1, -1, b
        _move_duals(f, delta)
        if wither >= 0 and join < 0 and grow < 0:
            _wither(f, wither)
        elif join >= 0:
            u, v = f.near_from[join], f.near_to[join]
            meeting = meeting_of(f, u, v)
            if meeting < 0:
                augment(f, u, v)
                augment(f, v, u)
                return True
            _make_outer(f, blossom(f, u, v, meeting))
        elif grow >= 0:
            inner = f.top[grow]
            f.label[inner] = INNER
            f.reached_from[inner], f.reached_at[inner] = f.want[grow], grow
            _make_outer(f, f.top[f.mate[f.base[inner]]])
        else:
            return False


@kernel
def _move_duals(f: AlternatingForest, delta: int) -> None:
    n = len(f.mate)
    if delta == 0:
        return
    for v in range(n):
        label = f.label[f.top[v]]
        if label == OUTER:
            f.dual[v] -= delta
        elif label == INNER:
            f.dual[v] += delta
    for b in range(n, n + len(f.children)):
        if f.label[b] == OUTER:
            f.dual[b] += 2 * delta
        elif f.label[b] == INNER:
            f.dual[b] -= 2 * delta


@kernel
def _make_outer(f: AlternatingForest, b: int) -> None:
    """Label b outer, find its edge to another outer blossom, and tell everybody that it can be reached from b."""
    n = len(f.mate)
    f.label[b] = OUTER
    f.near_from[b] = -1
    least = 0
    for v in range(n):
        other = f.top[v]
        if other == b:
            continue
        u = closest(f, b, v)
        slack = slack_of(f, u, v)
        if f.label[other] == OUTER:
            if f.near_from[b] < 0 or slack < least:
                f.near_from[b], f.near_to[b], least = u, v, slack
        elif f.want[v] < 0 or slack < slack_of(f, f.want[v], v):
            f.want[v] = u
    inside = np.flatnonzero(f.top == b)
    for other in range(n + len(f.children)):
        if f.label[other] != OUTER or other == b:
            continue
        has = f.near_from[other] >= 0
        least = slack_of(f, f.near_from[other], f.near_to[other]) if has else 0
        for member in inside:
            u = closest(f, other, member)
            slack = slack_of(f, u, member)
            if not has or slack < least:
                f.near_from[other], f.near_to[other], least, has = u, member, slack, True


@kernel
def _wither(f: AlternatingForest, b: int) -> None:
    """Dissolve an inner blossom; the even way around it, from where it was reached to its base, stays in the tree."""
    row = b - len(f.mate)
    count, place = f.children[row], place_in_cycle(f, b, f.reached_at[b])
    child, leave, enter = f.child[row].copy(), f.leave[row].copy(), f.enter[row].copy()
    dissolve(f, b)
    first = child[place]
    f.label[first] = INNER
    f.reached_from[first], f.reached_at[first] = f.reached_from[b], f.reached_at[b]
    outers = np.empty(count, np.int64)
    found = 0
    forwards = place % 2 == 1
    while place != 0:
        if forwards:
            outer, inner = child[place + 1], child[(place + 2) % count]
            f.reached_from[inner], f.reached_at[inner] = leave[place + 1], enter[place + 1]
            place = (place + 2) % count
        else:
            outer, inner = child[place - 1], child[place - 2]
            f.reached_from[inner], f.reached_at[inner] = enter[place - 2], leave[place - 2]
            place -= 2
        f.label[inner] = INNER
        outers[found] = outer
        found += 1
    for j in range(found):
        _make_outer(f, outers[j])
