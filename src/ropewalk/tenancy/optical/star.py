"""All circuits of a job in one spine: every GPU has its own, so any pattern and any split is free of contention.

Servers are added one by one, each with a fibre for every GPU; fibres of earlier ones move to other switches to make way
(augmenting paths from leafs to switches). With one GPU a server this finds the most that a spine can hold; with more,
the integer program decides what is left open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import servers_needed
from ropewalk.tenancy.optical.fibres import FreeFibres, optical
from ropewalk.tenancy.optical.laying import bits, masks
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


@dataclass
class _Reach:
    """Fibres from leafs to switches towards one spine, as a matching that grows along augmenting paths."""

    possible: list[int]
    """Bit k of a leaf: it has a fibre to switch k, and the spine has one there."""
    room: list[int]
    """By switch: fibres of the spine."""
    users: dict[int, list[int]] = field(default_factory=dict)
    """By switch: the leafs that use it."""
    used: dict[int, int] = field(default_factory=dict)
    """By leaf: bits of the switches it uses."""

    def add(self, leaf: int, count: int) -> bool:
        """So many more fibres for a leaf, or none."""
        before = {switch: list(leafs) for switch, leafs in self.users.items()}, dict(self.used)
        for _ in range(count):
            if not self._augment(leaf):
                self.users, self.used = before
                return False
        return True

    def _augment(self, leaf: int) -> bool:
        came: dict[int, tuple[int, int]] = {}
        """By switch: the leaf that asks for it, and the switch that leaf gives up (-1 for the first)."""
        queue = [(leaf, -1)]
        for asks, gives_up in queue:
            for switch in bits(self.possible[asks] & ~self.used.get(asks, 0)):
                if switch in came:
                    continue
                came[switch] = (asks, gives_up)
                holders = self.users.setdefault(switch, [])
                if len(holders) < self.room[switch]:
                    self._follow(came, switch)
                    return True
                queue += [(holder, switch) for holder in holders]
        return False

    def _follow(self, came: dict[int, tuple[int, int]], switch: int) -> None:
        while switch >= 0:
            leaf, gives_up = came[switch]
            self.users[switch].append(leaf)
            self.used[leaf] = self.used.get(leaf, 0) | 1 << switch
            if gives_up >= 0:
                self.users[gives_up].remove(leaf)
                self.used[leaf] &= ~(1 << gives_up)
            switch = gives_up


def _reach(fibres: FreeFibres, spine: int) -> _Reach:
    return _Reach(masks(fibres.leaf & (fibres.spine[spine] > 0)), fibres.spine[spine].tolist())


def _grow(
    fibres: FreeFibres, spine: int, idle: NDArray[np.int64], servers: int, size: int
) -> dict[int, list[int]] | None:
    """Fullest use of few leafs: those that can give most servers come first."""
    reach = _reach(fibres, spine)
    missing = servers
    for leaf in np.argsort(-idle, kind="stable").tolist():
        for _ in range(int(idle[leaf])):
            if not missing or not reach.add(leaf, size):
                break
            missing -= 1
    if missing:
        return None
    return {leaf: list(bits(used)) for leaf, used in sorted(reach.used.items()) if used}


def _fits_without_whole_servers(
    fibres: FreeFibres, spine: int, idle: NDArray[np.int64], servers: int, size: int
) -> bool:
    """The most circuits that leafs can have to the spine, one by one: too few of them and no program can help."""
    reach = _reach(fibres, spine)
    most = sum(reach.add(leaf, 1) for leaf in np.flatnonzero(idle).tolist() for _ in range(int(idle[leaf]) * size))
    return most >= servers * size


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
