"""Which pods a job takes: enough idle servers and fibres in each, lanes that all of them have, and cores in common.

In every pod the leafs are chosen by servers alone (program 5a, a knapsack), twice: the best fit, and the emptiest. For
the leafs that are chosen the search for pods is complete; whether their circuits can be laid is not asked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Flags, Ints, Words
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.clos import spine_room
from ropewalk.tenancy.optical.cover import cheapest_cover
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.pod_fibres import inside_pods, of_pod
from ropewalk.tenancy.optical.pod_lanes import LeafPart
from ropewalk.tenancy.optical.programs import NODE_LIMIT, ProgramUndecided


@dataclass(frozen=True, eq=False)
class PodChoice:
    """Pods in the order in which ranks visit them, the leafs in each, and the lanes that all of them could use."""

    pods: tuple[int, ...]
    parts: tuple[LeafPart, ...]
    candidates: Ints
    """Those with fewest free fibres first."""


@dataclass(frozen=True, eq=False)
class _Able:
    """A pod that could hold its part."""

    pod: int
    part: LeafPart
    idle: int
    """Idle servers of the leafs that it would use."""
    lanes: Flags
    cores: Words
    """[lane, word]: cores to which the spine of the lane has a free cable, as bits."""


def choices(
    state: Occupancy, fibres: FreeFibres, pods: int, leafs: int, lanes: int
) -> list[PodChoice | ProgramUndecided]:
    """The pods that fit best, then those with most lanes and leafs that are emptiest; none where none share enough."""
    best = sorted(_able(state, fibres, leafs, lanes, emptiest=False), key=lambda one: (one.idle, one.pod))
    freest = sorted(_able(state, fibres, leafs, lanes, emptiest=True), key=lambda one: (-one.lanes.sum(), one.pod))
    found: list[PodChoice | ProgramUndecided] = []
    for order in (best, freest):
        chosen = first_in_common([one.lanes for one in order], [one.cores for one in order], pods, lanes, leafs)
        if isinstance(chosen, ProgramUndecided):
            found.append(chosen)
        elif chosen is not None:
            found.append(_choice(sorted((order[number] for number in chosen), key=lambda one: one.pod), leafs))
    return found


def first_in_common(
    able: Sequence[Flags],
    cores: Sequence[Words],
    pods: int,
    lanes: int,
    leafs: int,
    *,
    node_limit: int = NODE_LIMIT,
) -> tuple[int, ...] | ProgramUndecided | None:
    """The first pods, in the order given, that share so many lanes with so many cores in each; None where none do."""
    if len(able) < pods:
        return None
    nodes = 0
    nothing_yet = np.ones(len(able[0]), bool), np.full_like(cores[0], ~np.uint64(0))
    stack: list[tuple[int, tuple[int, ...], Flags, Words]] = [(0, (), *nothing_yet)]
    while stack:
        at, taken, common, shared = stack.pop()
        if len(taken) == pods:
            return taken
        if len(able) - at < pods - len(taken):
            continue
        nodes += 1
        if nodes > node_limit:
            return ProgramUndecided()
        stack.append((at + 1, taken, common, shared))
        with_it = shared & cores[at]
        left = common & able[at] & (np.bitwise_count(with_it).sum(axis=1) >= leafs)
        if left.sum() >= lanes:
            stack.append((at + 1, (*taken, at), left, with_it))
    return None


def _able(state: Occupancy, fibres: FreeFibres, leafs: int, lanes: int, *, emptiest: bool) -> list[_Able]:
    plant, tiers = inside_pods(state), state.plant.tiers
    servers = lanes // plant.gpus_per_server
    found = []
    for pod in range(tiers.pods):
        own, idle = of_pod(plant, fibres, pod), state.idle_servers[slice(*tiers.first_leaf[pod : pod + 2].tolist())]
        room = np.minimum(idle // servers, own.of_leaf // lanes)
        cover = cheapest_cover(room, int(idle.max()) + 1 - idle if emptiest else idle, leafs)
        if cover is not None:
            found.append(_able_with(state, own, pod, cover, int(idle[cover > 0].sum())))
    return found


def _able_with(state: Occupancy, own: FreeFibres, pod: int, cover: Ints, idle: int) -> _Able:
    """A pod whose leafs take so many virtual ones each."""
    tiers, spines = state.plant.tiers, len(own.spine)
    able, cores = np.zeros(tiers.lanes, bool), np.zeros((tiers.lanes, state.core_links.words.shape[1]), np.uint64)
    able[:spines] = spine_room(own, cover) > 0
    cores[:spines] = state.core_links.words[slice(*tiers.first_spine[pod : pod + 2].tolist())]
    return _Able(pod, LeafPart(own, cover), idle, able, cores)


def choice_of(state: Occupancy, fibres: FreeFibres, rows: Ints, each: int) -> PodChoice:
    """Leafs that are chosen already, [pod, leaf], each as so many virtual ones; pods in this order."""
    plant, tiers, able = inside_pods(state), state.plant.tiers, []
    for row in rows:
        pod = int(tiers.pod_of_leaf[row[0]])
        cover = np.zeros(int(tiers.first_leaf[pod + 1] - tiers.first_leaf[pod]), np.int64)
        cover[row - tiers.first_leaf[pod]] = each
        able.append(_able_with(state, of_pod(plant, fibres, pod), pod, cover, 0))
    return _choice(able, rows.shape[1] * each)


def _choice(chosen: list[_Able], leafs: int) -> PodChoice:
    parts = tuple(one.part for one in chosen)
    cores = np.bitwise_count(np.bitwise_and.reduce([one.cores for one in chosen])).sum(axis=1)
    lanes = np.flatnonzero(np.logical_and.reduce([one.lanes for one in chosen]) & (cores >= leafs))
    free = np.sum([part.fibres.of_spine[lanes] for part in parts], axis=0)
    return PodChoice(tuple(one.pod for one in chosen), parts, lanes[np.argsort(free, kind="stable")])
