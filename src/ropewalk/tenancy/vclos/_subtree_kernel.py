"""The search for a sub-tree over p pods: l leafs in each, s spines in the same lanes, l cores for every lane.

Branch and bound as over the leafs of one pod, pod by pod. Along the way stand the lanes that every chosen leaf can
still reach, and for every lane the cores that the spines of all chosen pods have in common; a lane with fewer than l of
them is dropped. Pods are entered in the order of their cheapest leafs.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints, Words
from ropewalk.compiled import kernel
from ropewalk.tenancy._bits_kernel import common, ones
from ropewalk.tenancy.vclos._biclique_kernel import ANYTHING, BEST, FOUND, NONE, UNKNOWN, core, covers, enough


@kernel
def _enter(
    mask: Words, lane_cores: Words, spine_words: Words, first: int, last: int, rails: int, leafs: int, below: Words
) -> None:
    """Into a pod with spines `first` to `last` - 1: drop lanes whose cores become too few, narrow the others."""
    wide = len(mask) // rails
    for place in range(len(mask)):
        left = mask[place]
        while left:
            bit = left & (~left + np.uint64(1))
            left ^= bit
            lane = 64 * (place % wide) + ones(bit - np.uint64(1))
            if first + lane >= last or common(lane_cores[lane], spine_words[first + lane]) < leafs:
                mask[place] ^= bit
            else:
                below[lane] = lane_cores[lane] & spine_words[first + lane]


@kernel
def _pods_by_cost(cost: Ints, start: Ints, leafs: int) -> tuple[Ints, Ints]:
    """(pods with enough rows, what the cheapest of each cost): cheapest pods first; rows of a pod are sorted."""
    pods = len(start) - 1
    least = np.zeros(pods, np.int64)
    able = np.empty(pods, np.int64)
    count = 0
    for pod in range(pods):
        if start[pod + 1] - start[pod] >= leafs:
            for row in range(start[pod], start[pod] + leafs):
                least[pod] += cost[row]
            able[count] = pod
            count += 1
    able = able[:count]
    order = able[np.argsort(least[able], kind="mergesort")]
    return order, least[order]


@kernel
def cheapest_subtree(
    words: Words,
    cost: Ints,
    start: Ints,
    spine_words: Words,
    first_spine: Ints,
    pods: int,
    leafs: int,
    rails: int,
    spines: int,
    budget: int,
) -> tuple[int, int, Ints]:
    """(status, nodes visited, chosen rows, pod after pod).

    Rows `start[p]` to `start[p + 1]` - 1 of `words` are candidates of pod p, sorted by cost. `spine_words` are the free
    cores of every spine, `first_spine` says where the spines of a pod begin.
    """
    order, least = _pods_by_cost(cost, start, leafs)
    steps, wide, most_rows = pods * (leafs + 1), words.shape[1], 0
    for pod in range(len(start) - 1):
        most_rows = max(most_rows, start[pod + 1] - start[pod])
    # Step t chooses a pod where t is a multiple of leafs + 1, else a leaf of it.
    place, spent = np.zeros(steps + 1, np.int64), np.zeros(steps + 1, np.int64)
    count, path = np.zeros(steps + 1, np.int64), np.zeros(steps + 1, np.int64)
    candidates = np.empty((steps + 1, max(most_rows, 1)), np.int64)
    mask = np.zeros((steps + 1, wide), np.uint64)
    lane_cores = np.zeros((pods + 1, 64 * (wide // rails), spine_words.shape[1]), np.uint64)
    mask[0] = ~mask[0]
    lane_cores[0] = ~lane_cores[0]
    chosen = np.zeros(pods * leafs, np.int64)
    best, nodes, step = ANYTHING, 0, 0
    while step >= 0:
        level, at = step // (leafs + 1), step % (leafs + 1)
        turn = place[step]
        if step == steps:
            best = spent[step]
            for number in range(steps):
                if number % (leafs + 1):
                    chosen[number - number // (leafs + 1) - 1] = path[number]
            step -= 1
            continue
        bound = spent[step]
        if at == 0:
            if turn + pods - level > len(order):
                step -= 1
                continue
            for pod in range(turn, turn + pods - level):
                bound += least[pod]
        else:
            missing = leafs - at + 1
            if turn + missing > count[step]:
                step -= 1
                continue
            for row in range(turn, turn + missing):
                bound += cost[candidates[step, row]]
            # The pods behind the present one, at the cheapest.
            after = place[level * (leafs + 1)]
            for pod in range(after, after + pods - level - 1):
                bound += least[pod]
        if bound >= best:
            step -= 1  # costs ascend, so whatever stands behind is no cheaper
            continue
        place[step] = turn + 1
        if at > 0 and _is_covered(mask[step], words, candidates[step], turn):
            continue
        if nodes >= budget:
            return (FOUND if best < ANYTHING else UNKNOWN), nodes, chosen
        nodes += 1
        spent[step + 1] = spent[step]
        if at == 0:
            pod = order[turn]
            mask[step + 1] = mask[step]
            _enter(
                mask[step + 1], lane_cores[level], spine_words, first_spine[pod], first_spine[pod + 1], rails, leafs,
                lane_cores[level + 1],
            )  # fmt: skip
            rows = start[pod + 1] - start[pod]
            candidates[step + 1, :rows] = np.arange(start[pod], start[pod + 1])
            if enough(mask[step + 1], mask[step + 1], rails, spines):
                count[step + 1] = core(mask[step + 1], words, candidates[step + 1], rows, leafs, rails, spines)
            else:
                count[step + 1] = 0
            place[step + 1] = 0
        else:
            row = candidates[step, turn]
            path[step] = row
            spent[step + 1] += cost[row]
            mask[step + 1] = mask[step] & words[row]
            if at == leafs:
                # Further pods stand behind this one in their order.
                place[step + 1] = place[level * (leafs + 1)]
            else:
                rest = count[step] - turn - 1
                candidates[step + 1, :rest] = candidates[step, turn + 1 : count[step]]
                count[step + 1] = core(mask[step + 1], words, candidates[step + 1], rest, leafs - at, rails, spines)
                place[step + 1] = 0
        step += 1
    return (BEST if best < ANYTHING else NONE), nodes, chosen


@kernel
def _is_covered(mask: Words, words: Words, candidates: Ints, turn: int) -> bool:
    """Could an earlier, so no dearer, row of the pod reach every lane that this one can?"""
    for other in range(turn):  # noqa: SIM110 (kernels have no generators)
        if covers(mask, words[candidates[other]], words[candidates[turn]]):
            return True
    return False
