"""Why a job that has its servers still waits: which spines are missing towards the leafs that could hold it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.tenancy.allocation import Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant

MOST_NAMED = 8
"""Spines or shapes that a sentence names."""


@dataclass(frozen=True)
class Attempt:
    """A shape that was tried in vain."""

    leafs: int
    spines: int
    proved: bool
    """False where the search and the integer program both reached their limits."""


@dataclass(frozen=True)
class Nearest:
    """The leafs that came nearest to holding a shape, with the spines they share and those that stand in the way."""

    leafs: tuple[int, ...]
    shared: int
    blocking: tuple[int, ...]


def no_common_spines(state: Occupancy, gpus: int, attempts: list[Attempt], *, never: bool) -> Waiting:
    """Network fragmentation, told for the shape that came nearest."""
    plant = state.plant
    if never:
        return Waiting(Reason.NETWORK_FRAGMENTATION, _never(plant, gpus), never=True)
    servers = -(-gpus // plant.gpus_per_server)
    alone = f"no leaf has {servers} idle servers"
    if not attempts:
        return Waiting(
            Reason.NETWORK_FRAGMENTATION,
            f"{alone}, and {gpus} GPUs cannot be split over leafs in equal whole servers of {plant.gpus_per_server}",
        )
    blocked = [(attempt, nearest(state, attempt.leafs, attempt.spines)) for attempt in attempts]
    told = [(attempt, near) for attempt, near in blocked if near is not None]
    tried = ", ".join(f"{attempt.leafs}×{attempt.spines}" for attempt in attempts[:MOST_NAMED])
    limits = "" if all(attempt.proved for attempt in attempts) else "; the search reached its limits undecided"
    if not told:
        return Waiting(
            Reason.NETWORK_FRAGMENTATION,
            f"{alone}, and no shape ({tried}) has enough leafs with idle servers and free links{limits}",
        )
    attempt, near = min(told, key=lambda pair: pair[0].spines - pair[1].shared)
    names = ", ".join(plant.spine_names[spine] for spine in near.blocking[:MOST_NAMED])
    more = len(near.blocking) - MOST_NAMED
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"{alone}, and no shape ({tried}) has enough spines in common; nearest are {attempt.leafs} leafs "
        f"({', '.join(plant.leaf_names[leaf] for leaf in near.leafs[:MOST_NAMED])}"
        f"{', …' if len(near.leafs) > MOST_NAMED else ''}) that share {near.shared} of {attempt.spines} spines: "
        f"links to {names}{f' and {more} more' if more > 0 else ''} are taken or drained{limits}",
        near.blocking,
    )


def nearest(state: Occupancy, leafs: int, spines: int) -> Nearest | None:
    """Of the leafs that have the servers, a greedy choice with many spines in common; None if there are too few leafs.

    Blocking are the spines to which all of them have a cable, but not all of them a free one.
    """
    rows = np.flatnonzero(state.idle_servers * state.plant.gpus_per_server >= spines)
    if len(rows) < leafs:
        return None
    reach = state.cables_free[rows] > 0
    first = int(np.argmax(reach.sum(axis=1)))
    chosen, shared = [first], reach[first]
    while len(chosen) < leafs:
        overlap = (reach & shared).sum(axis=1)
        overlap[chosen] = -1
        chosen.append(int(np.argmax(overlap)))
        shared = shared & reach[chosen[-1]]
    picked = np.sort(rows[chosen])
    wired = (state.plant.cables[picked] > 0).all(axis=0)
    return Nearest(tuple(picked.tolist()), int(shared.sum()), tuple(np.flatnonzero(wired & ~shared).tolist()))


def _never(plant: Plant, gpus: int) -> str:
    size, most = plant.gpus_per_server, int(plant.gpus_per_leaf.max())
    return (
        f"{gpus} GPUs do not fit one leaf of {most} and have no equal split into whole servers of {size} over "
        f"the leafs of {plant.name}, even when it is empty: ask for another number, such as a power of two, "
        "or allocate by laas (--isolate laas)"
    )
