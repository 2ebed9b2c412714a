"""Who holds what on a plant right now: free GPUs as bits of each server, free cables between leafs and spines.

A job that leaves gives back exactly what it took, by name. Drained parts take no new jobs; those that run there keep
running until they are released.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError, Findings, PhysicsError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.invariants import check_jobs
from ropewalk.tenancy.plant import Plant

WORD = 64
"""Spines whose state fits one word of `spine_words`."""


class Occupancy:
    """The state of a plant: mutable, and refusing every change that would give something away twice.

    >>> from ropewalk.tenancy.plant import plant
    >>> state = Occupancy(plant("leaf-spine:2x4x4", gpus_per_server=2))
    >>> state.place(Allocation("a", (0, 1), "server", (0,), (), (), (-1, -1), (0, 0)))
    >>> state.free, state.idle_servers.tolist()
    (6, [1, 2])
    >>> state.release("a").gpus
    (0, 1)
    """

    # What allocators read. All of it leaves out whatever is drained.
    free_in_server: NDArray[np.int64]
    """Free GPUs of every server."""
    free_on_leaf: NDArray[np.int64]
    """Free GPUs of every leaf."""
    idle_servers: NDArray[np.int64]
    """Servers of every leaf with all their GPUs free."""
    cables_free: NDArray[np.int64]
    """[leaf, spine]: free cables between the two."""
    spine_words: NDArray[np.uint64]
    """[leaf, word]: bit j of word w says that the leaf has a free cable to spine 64 w + j."""
    ports_of_leaf: NDArray[np.int64]
    """Free cables of every leaf."""
    ports_of_spine: NDArray[np.int64]
    """Free cables of every spine."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.jobs: dict[str, Allocation] = {}
        """What every running job holds, in the order in which they came."""
        self.free_gpus = np.full(plant.servers, (1 << plant.gpus_per_server) - 1, np.int64)
        """Bit g of server s: its GPU g belongs to no job."""
        self.free_cables = (np.int64(1) << plant.cables.astype(np.int64)) - 1
        """Bit c of [leaf, spine]: their cable c belongs to no job."""
        self.drained = Drained()
        self._derive()

    @property
    def free(self) -> int:
        """Free GPUs that jobs may get."""
        return int(self.free_on_leaf.sum())

    @property
    def used(self) -> int:
        """GPUs that belong to jobs."""
        return self.plant.gpus - int(np.bitwise_count(self.free_gpus).sum())

    def idle_servers_of(self, leaf: int) -> NDArray[np.int64]:
        """Servers of a leaf with all their GPUs free."""
        first, last = self.plant.first_server[leaf : leaf + 2]
        idle = np.flatnonzero(self.free_in_server[first:last] == self.plant.gpus_per_server)
        return np.asarray(first + idle, np.int64)

    def first_free_cable(self, leaf: int, spine: int) -> int:
        """The free cable of the lowest number between a leaf and a spine."""
        if not self.cables_free[leaf, spine]:
            raise ClusterError(f"{self._link_name(leaf, spine)} has no free cable: choose another spine")
        mask = int(self.free_cables[leaf, spine])
        return (mask & -mask).bit_length() - 1

    def place(self, allocation: Allocation) -> None:
        """Give a job what its allocation says; everything that stands in the way is reported together."""
        findings = Findings(ClusterError, f"job {allocation.job}")
        self._find_conflicts(allocation, findings)
        findings.raise_if_any()
        for server, bit in _gpu_bits(self.plant, allocation):
            self.free_gpus[server] &= ~bit
        for leaf, spine, cable in allocation.reserved():
            self.free_cables[leaf, spine] &= ~(1 << cable)
        self.jobs[allocation.job] = allocation
        self._refresh(allocation)

    def release(self, job: str) -> Allocation:
        """Take back everything a job holds."""
        if job not in self.jobs:
            raise ClusterError(f"job {job} holds nothing here: release a job that was placed")
        allocation = self.jobs.pop(job)
        for server, bit in _gpu_bits(self.plant, allocation):
            self.free_gpus[server] |= bit
        for leaf, spine, cable in allocation.reserved():
            self.free_cables[leaf, spine] |= 1 << cable
        self._refresh(allocation)
        return allocation

    def drain(self, parts: Drained) -> tuple[str, ...]:
        """Take parts out of service for new jobs; answers which running jobs still use them."""
        parts.check(self.plant)
        self.drained |= parts
        self._derive()
        return tuple(job for job, held in self.jobs.items() if parts.touches(self.plant, held))

    def restore(self, parts: Drained) -> None:
        """Put drained parts back into service."""
        self.drained -= parts
        self._derive()

    def check(self) -> None:
        """Prove the invariants: no GPU and no cable in two jobs, every reserved set complete, every count right."""
        check_jobs(self.plant, self.jobs.values(), self.free_gpus, self.free_cables)
        counted = self.copy()
        counted._derive()
        for name, value in vars(counted).items():
            if isinstance(value, np.ndarray) and not np.array_equal(value, getattr(self, name)):
                raise PhysicsError(f"{name} of the state of {self.plant.name} is not what its jobs leave free")

    def copy(self) -> Occupancy:
        """The same state, free to change on its own: for what-if questions."""
        other = Occupancy.__new__(Occupancy)
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict | np.ndarray) else value)
        return other

    def as_document(self) -> dict[str, Any]:
        """A snapshot as plain lists and numbers, for JSON."""
        return {
            "plant": self.plant.name,
            "gpus": self.plant.gpus,
            "jobs": [allocation.as_document() for allocation in self.jobs.values()],
            "drained": self.drained.as_document(),
        }

    @classmethod
    def from_document(cls, plant: Plant, document: dict[str, Any]) -> Occupancy:
        """Read a snapshot back; every job in it is placed anew and so checked."""
        state = cls(plant)
        try:
            size = document["gpus"]
            jobs = [Allocation.from_document(job) for job in document["jobs"]]
            drained = Drained.from_document(document["drained"])
        except (KeyError, TypeError, ValueError) as error:
            raise ClusterError(f"the snapshot cannot be read ({error!r}): give one that ropewalk wrote") from error
        if size != plant.gpus:
            raise ClusterError(
                f"the snapshot is of {size} GPUs, plant {plant.name} has {plant.gpus}: give the plant it was taken of, "
                f"{document.get('plant', 'which it does not name')} (--fabric)"
            )
        for job in jobs:
            state.place(job)
        state.drain(drained)
        return state

    def _find_conflicts(self, allocation: Allocation, findings: Findings) -> None:
        plant = self.plant
        if allocation.job in self.jobs:
            findings.add("it is already running: release it first")
        if len(set(allocation.gpus)) < len(allocation.gpus):
            findings.add("a GPU is listed twice: list each once")
        if not all(0 <= gpu < plant.gpus for gpu in allocation.gpus):
            findings.add(f"a GPU is not one of 0 to {plant.gpus - 1}: name GPUs of {plant.name}")
            return
        for server, bit in _gpu_bits(plant, allocation):
            taken = bit & ~int(self.free_gpus[server])
            if taken or not self.free_in_server[server]:
                why = "drained" if not taken else f"taken (GPUs {_numbers(taken)})"
                findings.add(f"server {plant.server_names[server]} is {why}: ask for what is free")
        for leaf, spine, cable in allocation.reserved():
            if not (0 <= leaf < plant.leafs and 0 <= spine < plant.spines):
                findings.add(f"{plant.name} has no leaf {leaf} with a spine {spine}: name links of the plant")
            elif not self.free_cables[leaf, spine] >> cable & 1 or not self.cables_free[leaf, spine]:
                findings.add(f"cable {cable} of {self._link_name(leaf, spine)} is not free: reserve another spine")

    def _link_name(self, leaf: int, spine: int) -> str:
        return f"{self.plant.leaf_names[leaf]} - {self.plant.spine_names[spine]}"

    def _derive(self) -> None:
        """Count everything anew."""
        plant = self.plant
        self._server_up = self.drained.servers_up(plant)
        self._link_up = self.drained.links_up(plant)
        self.free_in_server = np.zeros(plant.servers, np.int64)
        self.free_on_leaf = np.zeros(plant.leafs, np.int64)
        self.idle_servers = np.zeros(plant.leafs, np.int64)
        self.cables_free = np.zeros((plant.leafs, plant.spines), np.int64)
        self.spine_words = np.zeros((plant.leafs, -(-plant.spines // WORD)), np.uint64)
        self.ports_of_spine = np.zeros(plant.spines, np.int64)
        self.ports_of_leaf = np.zeros(plant.leafs, np.int64)
        self._count_servers(np.arange(plant.servers), np.arange(plant.leafs))
        self._count_cables(np.arange(plant.leafs))

    def _refresh(self, allocation: Allocation) -> None:
        """Count anew what one job has changed."""
        servers = np.unique(np.array(allocation.gpus, np.int64) // self.plant.gpus_per_server)
        self._count_servers(servers, np.unique(self.plant.server_leaf[servers]))
        if allocation.reserved():
            self._count_cables(np.unique([leaf for leaf, _, _ in allocation.reserved()]))

    def _count_servers(self, servers: NDArray[np.int64], leafs: NDArray[Any]) -> None:
        self.free_in_server[servers] = np.bitwise_count(self.free_gpus[servers]) * self._server_up[servers]
        for leaf in leafs.tolist():
            first, last = self.plant.first_server[leaf : leaf + 2]
            free = self.free_in_server[first:last]
            self.free_on_leaf[leaf] = free.sum()
            self.idle_servers[leaf] = np.count_nonzero(free == self.plant.gpus_per_server)

    def _count_cables(self, leafs: NDArray[np.int64]) -> None:
        free = np.bitwise_count(self.free_cables[leafs]).astype(np.int64) * self._link_up[leafs]
        self.ports_of_spine += free.sum(axis=0) - self.cables_free[leafs].sum(axis=0)
        self.ports_of_leaf[leafs] = free.sum(axis=1)
        self.cables_free[leafs] = free
        padded = np.zeros((len(leafs), self.spine_words.shape[1] * WORD), bool)
        padded[:, : self.plant.spines] = free > 0
        self.spine_words[leafs] = np.packbits(padded, axis=1, bitorder="little").view("<u8")


def _gpu_bits(plant: Plant, allocation: Allocation) -> list[tuple[int, int]]:
    """The GPUs of a job as (server, bits of its mask)."""
    bits: dict[int, int] = {}
    for gpu in allocation.gpus:
        server, place = divmod(gpu, plant.gpus_per_server)
        bits[server] = bits.get(server, 0) | 1 << place
    return sorted(bits.items())


def _numbers(bits: int) -> str:
    return ", ".join(str(place) for place in range(bits.bit_length()) if bits >> place & 1)
