"""The search for R leafs that share A free spines and one more leaf that has B of them free."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints, Words
from ropewalk.compiled import kernel
from ropewalk.tenancy._bits_kernel import common


@kernel
def _last_leaf(
    chosen: Ints, shared: Words, rest: int, order: Ints, idle: Ints, spine_words: Words, spines_of_leaf: Ints
) -> int:
    """The first leaf, in order, that takes the remainder, or -1."""
    for leaf in order:
        if idle[leaf] < rest or spines_of_leaf[leaf] < rest or common(shared, spine_words[leaf]) < rest:
            continue
        if not (chosen == leaf).any():
            return int(leaf)
    return -1


@kernel
def _find(
    full: int,
    rest: int,
    per_leaf: int,
    order: Ints,
    idle: Ints,
    spine_words: Words,
    spines_of_leaf: Ints,
    budget: int,
) -> tuple[bool, Ints, int, Words]:
    """Depth first over leafs with few free cables first; a full house must also leave a leaf for the remainder."""
    least = per_leaf if full > 1 else rest  # one full leaf alone needs links only for what it sends to the last
    rows = order[(idle[order] >= per_leaf) & (spines_of_leaf[order] >= least)]
    mask = np.empty((full + 1, spine_words.shape[1]), np.uint64)
    mask[0] = ~np.uint64(0)
    chosen = np.full(full, -1, np.int64)
    place = np.zeros(full + 1, np.int64)
    nodes = depth = 0
    while depth >= 0:
        if depth == full:
            last = _last_leaf(chosen, mask[full], rest, order, idle, spine_words, spines_of_leaf) if rest else -1
            if last >= 0 or not rest:
                return True, chosen, last, mask[full]
            depth -= 1
            continue
        at = place[depth]
        if at > len(rows) - (full - depth):
            depth -= 1
            continue
        place[depth] = at + 1
        if common(mask[depth], spine_words[rows[at]]) < least:
            continue
        nodes += 1
        if nodes > budget:
            break
        chosen[depth] = rows[at]
        mask[depth + 1] = mask[depth] & spine_words[rows[at]]
        depth += 1
        place[depth] = at + 1
        chosen[depth:] = -1
    return False, chosen, -1, mask[0]


@kernel
def first_split(
    gpus: int,
    size: int,
    first_leaf: Ints,
    idle_servers: Ints,
    ports_of_leaf: Ints,
    spine_words: Words,
    spines_of_leaf: Ints,
    budget: int,
) -> tuple[int, Ints, int, Words]:
    """(A, full leafs, last leaf or -1, spines they share) of the largest A that fits a pod; A is 0 where none does."""
    leafs = len(idle_servers)
    idle = idle_servers * size
    order = np.empty(leafs, np.int64)
    for pod in range(len(first_leaf) - 1):
        mine = np.arange(first_leaf[pod], first_leaf[pod + 1])
        order[first_leaf[pod] : first_leaf[pod + 1]] = np.sort(ports_of_leaf[mine] * leafs + mine) % leafs
    most = min(gpus - 1, idle.max())
    for per_leaf in range(most // size * size, 0, -size):
        full, rest = gpus // per_leaf, gpus % per_leaf
        for pod in range(len(first_leaf) - 1):
            mine = order[first_leaf[pod] : first_leaf[pod + 1]]
            found, chosen, last, shared = _find(full, rest, per_leaf, mine, idle, spine_words, spines_of_leaf, budget)
            if found:
                return per_leaf, chosen, last, shared
    return 0, order[:0], -1, spine_words[0]
