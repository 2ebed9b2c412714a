"""Why a job that has its servers still waits: which spines are missing towards the leafs that could hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.tenancy.allocation import Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.vclos.attempt import Attempt
from ropewalk.tenancy.vclos.rows import LeafRows, servers_of

MOST_NAMED = 8
"""Spines or shapes that a sentence names."""


@dataclass(frozen=True)
class Nearest:
    """The leafs that came nearest to holding a shape, with the spines they share and those that stand in the way."""

    leafs: tuple[int, ...]
    """On rails, units."""
    shared: int
    blocking: tuple[int, ...]


def no_common_spines(state: Occupancy, gpus: int, attempts: list[Attempt], *, never: bool) -> Waiting:
    """Network fragmentation, told for the shape that came nearest."""
    plant = state.plant
    if never:
        return Waiting(Reason.NETWORK_FRAGMENTATION, never_fits(plant, gpus), never=True)
    servers = -(-gpus // plant.gpus_per_server)
    kind = "leaf" if plant.rails == 1 else "unit"
    alone = f"no {kind} has {servers} idle servers"
    if not attempts:
        return Waiting(
            Reason.NETWORK_FRAGMENTATION,
            f"{alone}, and {gpus} GPUs cannot be split over {kind}s into equal whole servers of "
            f"{plant.gpus_per_server}",
        )
    blocked = [(attempt, nearest(state, attempt.leafs, attempt.spines)) for attempt in attempts]
    told = [(attempt, near) for attempt, near in blocked if near is not None]
    tried = ", ".join(map(str, attempts[:MOST_NAMED]))
    limits = "" if all(attempt.proved for attempt in attempts) else "; the search reached its limits undecided"
    if not told:
        return Waiting(
            Reason.NETWORK_FRAGMENTATION,
            f"{alone}, and no shape ({tried}) has enough {kind}s with idle servers and free links{limits}",
        )
    attempt, near = min(told, key=lambda pair: pair[0].spines - pair[1].shared)
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"{alone}, and no shape ({tried}) has enough spines in common; closest are {attempt.leafs} {kind}s "
        f"({some_names(plant.unit_names, near.leafs, ', …')}) that share {near.shared} of {attempt.spines} spines: "
        f"links to {some_names(plant.spine_names, near.blocking)} are taken or drained{limits}",
        near.blocking,
        nearest_leafs=plant.leafs_of(near.leafs),
    )


def nearest(state: Occupancy, leafs: int, spines: int) -> Nearest | None:
    """Of the leafs that have the servers, a greedy choice with many spines in common; None if there are too few leafs.

    Blocking are the spines to which all of them have a cable, but not all of them a free one.
    """
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    plant, rows = state.plant, LeafRows.of(state)
    fits = state.idle_servers >= servers_of(state, spines)
    found, picked, shared = kernel.nearest_in_a_pod(rows.words, rows.reached, fits, rows.first, leafs)
    if not found:
        return None
    by_rail = shared.reshape(plant.rails, -1)
    first = plant.tiers.first_spine[plant.tiers.pod_of_leaf[picked[0] * plant.rails]]
    blocked = [
        kernel.blocking(picked * plant.rails + rail, by_rail[rail], plant.cables, first) for rail in range(plant.rails)
    ]
    least = int(np.bitwise_count(by_rail).sum(axis=1).min())
    return Nearest(tuple(picked.tolist()), least, tuple(np.unique(np.concatenate(blocked)).tolist()))


def some_names(names: Sequence[str], numbers: Sequence[int], more: str | None = None) -> str:
    """The first few by name, and that there are others."""
    left = len(numbers) - MOST_NAMED
    rest = "" if left <= 0 else f" and {left} more" if more is None else more
    return ", ".join(names[number] for number in numbers[:MOST_NAMED]) + rest


def never_fits(plant: Plant, gpus: int) -> str:
    """Why not even the empty plant holds a job; other numbers of GPUs that it holds are for `other_sizes`."""
    size, most = plant.gpus_per_server, int(plant.gpus_per_unit.max())
    kind = "leaf" if plant.rails == 1 else "unit"
    where = f"{kind}s" if not plant.cores else f"{kind}s and pods"
    if not plant.spines:
        return f"{gpus} GPUs do not fit one {kind} of {most}, and nothing connects the {kind}s of {plant.name}"
    up = plant.cables.sum(axis=1)
    if gpus > up.sum() or size // plant.rails > up.max():
        return (
            f"{gpus} GPUs do not fit one {kind} of {most}, and over several every GPU needs an uplink of its own: "
            f"leafs of {plant.name} have {int(up.max())}, {int(up.sum())} in all, and servers {size} GPUs; with shared "
            "links (ecmp) it starts"
        )
    whole = not plant.cores and plant.rails == 1 and bool((up >= plant.gpus_per_leaf).all())
    otherwise = "; laas takes it" if whole else ""
    return (
        f"{gpus} GPUs do not fit one {kind} of {most} and have no equal split into whole servers of {size} over "
        f"the {where} of {plant.name}, even when it is empty{otherwise}"
    )
