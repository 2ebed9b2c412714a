"""Circuits inside several pods at once: s lanes, the same in all pods, each joined with all virtual leafs of a pod.

Pods share the choice of lanes and nothing else, so circuits are laid pod by pod; a lane that cannot be joined in one of
them makes way for another. Where that fails, an integer program decides about all pods together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.linear_rows import ConstraintRows
from ropewalk.tenancy.optical.clos import MOST_CIRCUITS
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.laying import lay_all
from ropewalk.tenancy.optical.programs import NODE_LIMIT, RELATIVE_GAP, ProgramUndecided, solve


@dataclass(frozen=True, eq=False)
class LeafPart:
    """One pod of a job: its free fibres, and how many virtual leafs each of its leafs takes."""

    fibres: FreeFibres
    leafs: Ints


@dataclass(frozen=True, eq=False)
class PodLanes:
    """The lanes of a job, and in every pod the switches of its circuits."""

    lanes: Ints
    switches: tuple[dict[tuple[int, int], list[int]], ...]
    """For each pod (leaf, lane): switches of the circuits between the two."""


def quick_pod_lanes(parts: Sequence[LeafPart], candidates: Ints, count: int) -> PodLanes | None:
    """Lay `count` of the candidates, the first of them if possible. None says nothing."""
    left = candidates.tolist()
    while len(left) >= count:
        chosen, laid = np.sort(np.array(left[:count], np.int64)), []
        for part in parts:
            wanted = np.zeros(len(part.fibres.spine), np.int64)
            wanted[chosen] = 1
            switches = lay_all(part.fibres, part.leafs, wanted)
            if isinstance(switches, int):
                left.remove(switches)
                break
            laid.append(switches)
        else:
            return PodLanes(chosen, tuple(laid))
    return None


def exact_pod_lanes(
    parts: Sequence[LeafPart],
    candidates: Ints,
    count: int,
    *,
    node_limit: int = NODE_LIMIT,
    most: int = MOST_CIRCUITS,
) -> PodLanes | ProgramUndecided | None:
    """The integer program over all pods together; None where it has no solution.

    y[j] says that lane j is taken, and `count` of them are; a leaf with m virtual leafs has m y[j] circuits to the
    spine of lane j in its pod; no fibre is used twice. Lanes with few free fibres are preferred.
    """
    columns = [_possible(part, candidates) for part in parts]
    if sum(len(leaf) for leaf, _, _ in columns) > most:
        return ProgramUndecided()
    lanes = len(candidates)
    rows = ConstraintRows(lanes + sum(len(leaf) for leaf, _, _ in columns))
    rows.add([count], [count], (np.zeros(lanes), np.arange(lanes), 1.0))
    first, firsts = lanes, []
    for part, (leaf, lane, switch) in zip(parts, columns, strict=True):
        c, used, switches = first + np.arange(len(leaf)), np.flatnonzero(part.leafs), part.fibres.leaf.shape[1]
        firsts.append(c)
        first += len(leaf)
        row_of = np.full(len(part.leafs), -1, np.int64)
        row_of[used] = np.arange(len(used))
        pairs = np.arange(len(used) * lanes)
        demand = np.repeat(part.leafs[used], lanes).astype(np.float64)
        rows.add(np.zeros(len(pairs)), 0.0, (row_of[leaf] * lanes + lane, c, 1.0), (pairs, pairs % lanes, -demand))
        spine = candidates[lane]
        for end, room in ((leaf, part.fibres.leaf.astype(np.int64)), (spine, part.fibres.spine)):
            ports, row = np.unique(end * switches + switch, return_inverse=True)
            rows.add(np.full(len(ports), -np.inf), room.ravel()[ports].astype(np.float64), (row, c, 1.0))
    cost = np.zeros(first)
    cost[:lanes] = sum(part.fibres.of_spine[candidates] for part in parts)
    solved = solve(cost, rows, np.ones(first), node_limit, RELATIVE_GAP)
    if not isinstance(solved, np.ndarray):
        return solved
    laid = []
    for c, (leaf, lane, switch) in zip(firsts, columns, strict=True):
        found: dict[tuple[int, int], list[int]] = {}
        for at in np.flatnonzero(solved[c]).tolist():
            found.setdefault((int(leaf[at]), int(candidates[lane[at]])), []).append(int(switch[at]))
        laid.append(found)
    return PodLanes(np.sort(candidates[solved[:lanes] > 0]), tuple(laid))


def _possible(part: LeafPart, candidates: Ints) -> tuple[Ints, Ints, Ints]:
    """(leaf, place among the candidates, switch) with a free fibre at both ends."""
    used = np.flatnonzero(part.leafs)
    leaf, lane, switch = np.nonzero(part.fibres.leaf[used][:, None, :] & (part.fibres.spine[candidates] > 0)[None])
    return used[leaf], lane, switch
