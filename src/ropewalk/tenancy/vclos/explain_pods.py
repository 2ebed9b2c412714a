"""Why a job waits on three tiers: which tier of links stands in its way, and where it came nearest."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Reason, Waiting
from ropewalk.tenancy.free_cables import FreeCables
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.vclos.attempt import Attempt
from ropewalk.tenancy.vclos.explain import MOST_NAMED, nearest, never_fits, some_names
from ropewalk.tenancy.vclos.subtree import FoundTree, search_subtree

NODE_BUDGET = 1_000
"""Nodes of a search for what would fit if more were free: an explanation may cost no more than an answer."""


def no_common_cores(state: Occupancy, gpus: int, attempts: list[Attempt], *, never: bool) -> Waiting:
    """Network fragmentation: would it start if all cores were free? Otherwise leafs and spines are in the way."""
    plant, reason = state.plant, Reason.NETWORK_FRAGMENTATION
    if never:
        return Waiting(reason, never_fits(plant, gpus), never=True)
    kind = "leaf" if plant.rails == 1 else "unit"
    alone = f"no {kind} has {-(-gpus // plant.gpus_per_server)} idle servers"
    if not attempts:
        return Waiting(
            reason,
            f"{alone}, and {gpus} GPUs cannot be split over {kind}s and pods in equal whole servers of "
            f"{plant.gpus_per_server}",
        )
    tried = ", ".join(map(str, attempts[:MOST_NAMED]))
    limits = "" if all(attempt.proved for attempt in attempts) else "; the search reached its limits undecided"
    said = f"{alone}, and no shape (pods×{kind}s×spines: {tried}) is free"
    over = [attempt for attempt in attempts if attempt.pods > 1][:MOST_NAMED]
    for attempt in over:
        tree = search_subtree(
            state,
            attempt.pods,
            attempt.leafs,
            attempt.spines,
            node_budget=NODE_BUDGET,
            spine_words=_all_cores(plant),
        )
        if isinstance(tree, FoundTree):
            return _cores_missing(state, f"{said}: ", attempt, tree, limits)
    inside = [(attempt, nearest(state, attempt.leafs, attempt.spines)) for attempt in attempts if attempt.pods == 1]
    told = [(attempt, near) for attempt, near in inside if near is not None]
    if not told:
        return Waiting(
            reason,
            f"{said}: no pod, and no pods together, have enough {kind}s with idle servers and free links{limits}",
            tier="spine",
        )
    attempt, near = min(told, key=lambda pair: pair[0].spines - pair[1].shared)
    return Waiting(
        reason,
        f"{said}: leafs and spines are taken; closest are {attempt.leafs} {kind}s of one pod "
        f"({some_names(plant.unit_names, near.leafs, ', …')}) that share {near.shared} of {attempt.spines} spines: "
        f"links to {some_names(plant.spine_names, near.blocking)} are taken or drained{limits}",
        near.blocking,
        nearest_leafs=plant.leafs_of(near.leafs),
        tier="spine",
    )


@lru_cache(maxsize=16)
def _all_cores(plant: Plant) -> NDArray[np.uint64]:
    """Cores of every spine while nothing is taken."""
    tiers = plant.tiers
    return FreeCables(plant.core_cables, tiers.first_core, tiers.cores_per_lane, plant.core_cables > 0).words


def _cores_missing(state: Occupancy, said: str, attempt: Attempt, tree: FoundTree, limits: str) -> Waiting:
    """Pods whose leafs have the spines, and the cores that their spines do not have free in common."""
    from ropewalk.tenancy._bits_kernel import positions
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    plant, rails = state.plant, state.plant.rails
    pods = plant.tiers.pod_of_leaf[[row[0] * rails for row in tree.leafs]]
    first = plant.tiers.first_spine[pods]
    units = np.array(tree.leafs, np.int64).ravel()
    lacking: list[int] = []
    least = attempt.spines
    for rail in range(rails):
        lanes = kernel.shared_by(units * rails + rail, state.spine_words)
        able = kernel.lanes_with_cores(lanes, state.core_links.words, first, attempt.leafs)
        least = min(least, int(np.bitwise_count(able).sum()))
        for lane in positions(lanes & ~able, 64 * len(lanes)).tolist():
            shared = kernel.shared_by(first + lane, state.core_links.words)
            base = int(plant.tiers.first_core[first[0] + lane])
            lacking += kernel.blocking(first + lane, shared, plant.core_cables, base).tolist()
    names = ", ".join(f"that of {plant.unit_names[row[0]]}" for row in tree.leafs[:MOST_NAMED])
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"{said}cores are taken; {attempt.pods} pods ({names}) have the leafs and spines, but only {least} of "
        f"{attempt.spines} lanes {'has' if least == 1 else 'have'} {attempt.leafs} cores free in all of them: links to "
        f"{some_names(plant.core_names, sorted(set(lacking)))} are taken or drained{limits}",
        nearest_leafs=plant.leafs_of(units.tolist()),
        tier="core",
        blocking_cores=tuple(sorted(set(lacking))),
    )
