"""All circuits of a job in one spine: every GPU has its own, so any pattern and any split is free of contention.

Servers are added one by one, each with a fibre for every GPU; fibres of earlier ones move to other switches to make way
(augmenting paths from leafs to switches). With one GPU a server this finds the most that a spine can hold; with more,
the integer program decides what is left open.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Flags, Ints
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import servers_needed
from ropewalk.tenancy.optical.fibres import FreeFibres, optical
from ropewalk.tenancy.optical.programs import ProgramUndecided, star_program


def around_one_spine(state: Occupancy, fibres: FreeFibres, job: str, gpus: int) -> Allocation | None:
    """Best fit: of the spines with enough free ports, the one with the fewest that can be reached."""
    servers, size = servers_needed(state, gpus), state.plant.gpus_per_server
    idle = np.minimum(state.idle_servers, fibres.of_leaf // size)
    # A last server that is not full still stands for all its GPUs here: circuits it does not need are not laid.
    enough = np.flatnonzero(fibres.of_spine >= servers * size)
    for spine in enough[np.argsort(fibres.of_spine[enough], kind="stable")].tolist():
        per_leaf = np.minimum(idle, fibres.common[:, spine] // size)
        if per_leaf.sum() < servers:
            continue
        switches = _grow(fibres, spine, per_leaf, servers, size)
        if switches is None and size > 1 and _fits_without_whole_servers(fibres, spine, idle, servers, size):
            decided = star_program(fibres, spine, per_leaf, servers, size)
            switches = None if isinstance(decided, ProgramUndecided) else decided
        if switches is not None:
            return _allocation(state, job, gpus, spine, switches)
    return None


def _grow(
    fibres: FreeFibres, spine: int, idle: NDArray[np.int64], servers: int, size: int
) -> dict[int, list[int]] | None:
    """Fullest use of few leafs: those that can give most servers come first."""
    used, added = _reach(fibres, spine, np.argsort(-idle, kind="stable"), idle, size, servers)
    if added < servers:
        return None
    return {leaf: np.flatnonzero(used[leaf]).tolist() for leaf in np.flatnonzero(used.any(axis=1)).tolist()}


def _fits_without_whole_servers(
    fibres: FreeFibres, spine: int, idle: NDArray[np.int64], servers: int, size: int
) -> bool:
    """The most circuits that leafs can have to the spine, one by one: too few of them and no program can help."""
    _, most = _reach(fibres, spine, np.flatnonzero(idle), idle * size, 1, servers * size)
    return most == servers * size


def _reach(fibres: FreeFibres, spine: int, order: Ints, times: Ints, each: int, most: int) -> tuple[Flags, int]:
    """[leaf, switch] that are used, and how often a leaf got `each` of them; leafs in their order, at most `most`."""
    from ropewalk.tenancy.optical._star_kernel import grow

    used = np.zeros(fibres.leaf.shape, bool)
    room = fibres.spine[spine]
    return used, grow(fibres.leaf & (room > 0), room, order, times, each, most, used)


def _allocation(state: Occupancy, job: str, gpus: int, spine: int, switches: dict[int, list[int]]) -> Allocation:
    plant = optical(state)
    size = plant.gpus_per_server
    seats: list[tuple[int, int, int]] = []
    for leaf, own in switches.items():
        servers = state.idle_servers_of(leaf)[: len(own) // size].tolist()
        places = [server * size + place for server in servers for place in range(size)]
        seats += [(gpu, leaf, switch) for gpu, switch in zip(places, own, strict=True)]
    seats = seats[:gpus]
    leaf_of_gpu = tuple(leaf for _, leaf, _ in seats)
    return Allocation(
        job=job,
        gpus=tuple(gpu for gpu, _, _ in seats),
        stage="ocs",
        leafs=tuple(dict.fromkeys(leaf_of_gpu)),
        spines=(spine,),
        links=tuple((leaf, spine) for leaf in leaf_of_gpu),
        spine_of_gpu=(spine,) * gpus,
        leaf_of_gpu=leaf_of_gpu,
        cables=tuple(switch for _, _, switch in seats),
    )
