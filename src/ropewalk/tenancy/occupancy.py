"""Who holds what on a plant right now: free GPUs as bits of each server, free cables between leafs and spines.

A job that leaves gives back exactly what it took, by name. Drained parts take no new jobs; those that run there keep
running until they are released.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError, Findings, PhysicsError
from ropewalk.tenancy.allocation import Allocation, AllocationColumns
from ropewalk.tenancy.conflicts import link_name, refuse, refuse_links
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.free_cables import FreeCables
from ropewalk.tenancy.invariants import check_allocation, check_jobs
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.saved_state import saved_state


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
    """Free GPUs of every leaf; on rails, of every unit."""
    idle_servers: NDArray[np.int64]
    """Servers of every leaf, on rails of every unit, with all their GPUs free."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.jobs: dict[str, Allocation] = {}
        """What every running job holds, in the order in which they came."""
        self.releasing: dict[str, Allocation] = {}
        """Allocations whose GPUs are free again and whose links are not yet, by the name given to `release`."""
        self.free_gpus = np.full(plant.servers, (1 << plant.gpus_per_server) - 1, np.int64)
        """Bit g of server s: its GPU g belongs to no job."""
        self.drained = Drained()
        tiers, up = plant.tiers, self.drained.links_up(plant)
        self.links = FreeCables(plant.cables, tiers.first_spine[tiers.pod_of_leaf], tiers.lanes, up)
        """Cables between leafs and spines; words count the spines of a pod."""
        core_up = self.drained.core_links_up(plant)
        self.core_links = FreeCables(plant.core_cables, tiers.first_core, tiers.cores_per_lane, core_up)
        """Cables between spines and cores; words count the cores of a plane."""
        self._count_servers()

    @property
    def free_cables(self) -> NDArray[np.int64]:
        """Bit c of [leaf, spine]: their cable c belongs to no job."""
        return self.links.bits

    @property
    def cables_free(self) -> NDArray[np.int64]:
        """[leaf, spine]: free cables between the two."""
        return self.links.count

    @property
    def spine_words(self) -> NDArray[np.uint64]:
        """[leaf, word]: bit j of word w says that the leaf has a free cable to spine 64 w + j of its pod."""
        return self.links.words

    @property
    def spines_of_leaf(self) -> NDArray[np.int64]:
        """Spines to which every leaf has a free cable."""
        return self.links.reached

    @property
    def ports_of_leaf(self) -> NDArray[np.int64]:
        """Free cables of every leaf."""
        return self.links.ports_below

    @property
    def ports_of_spine(self) -> NDArray[np.int64]:
        """Free cables of every spine towards leafs."""
        return self.links.ports_above

    @property
    def free(self) -> int:
        """Free GPUs that jobs may get."""
        return int(self.free_on_leaf.sum())

    @property
    def used(self) -> int:
        """GPUs that belong to jobs."""
        return self.plant.gpus - int(np.bitwise_count(self.free_gpus).sum())

    def idle_servers_of(self, leaf: int) -> NDArray[np.int64]:
        """Servers of a leaf, on rails of a unit, with all their GPUs free."""
        first, last = self.plant.first_server[leaf : leaf + 2]
        idle = np.flatnonzero(self.free_in_server[first:last] == self.plant.gpus_per_server)
        return np.asarray(first + idle, np.int64)

    def first_free_cable(self, leaf: int, spine: int) -> int:
        """The free cable of the lowest number between a leaf and a spine."""
        if not self.cables_free[leaf, spine]:
            raise ClusterError(f"{link_name(self.plant, leaf, spine)} has no free cable: choose another spine")
        mask = int(self.free_cables[leaf, spine])
        return (mask & -mask).bit_length() - 1

    def place(self, allocation: Allocation, *, on_drained: bool = False) -> None:
        """Give a job what its allocation says; everything that stands in the way is reported together.

        `on_drained`: the job runs already, so that drained parts do not stand in its way.
        """
        from ropewalk.tenancy import _occupancy_kernel as kernel

        held = allocation.columns
        if allocation.job not in self.jobs and kernel.take_gpus(on_drained, held.gpus, *self._server_columns):
            if self._take_cables(held, on_drained=on_drained):
                self.jobs[allocation.job] = allocation
                return
            kernel.give_gpus(held.gpus, *self._server_columns)
        refuse(self, allocation, on_drained=on_drained)

    def release(self, job: str, *, links_as: str | None = None) -> Allocation:
        """Take back everything a job holds; `links_as`: its links stay taken under this name until `free_links`."""
        from ropewalk.tenancy import _occupancy_kernel as kernel

        if job not in self.jobs:
            raise ClusterError(f"job {job} holds nothing: release a job that was placed")
        if links_as is not None and links_as in self.releasing:
            raise ClusterError(f"links of {links_as} are already being released: give them another name")
        allocation = self.jobs.pop(job)
        kernel.give_gpus(allocation.columns.gpus, *self._server_columns)
        if links_as is not None and allocation.links:
            self.releasing[links_as] = allocation
        else:
            self._free_cables(allocation)
        return allocation

    def keep_links(self, name: str, allocation: Allocation) -> None:
        """Links of an allocation that nobody uses any more, and that nobody may get before `free_links`."""
        if name in self.releasing or not self._take_cables(allocation.columns, on_drained=True):
            refuse_links(self, name, allocation)
        self.releasing[name] = allocation

    def free_links(self, name: str) -> Allocation:
        """Links that `release` has kept are free again."""
        if name not in self.releasing:
            raise ClusterError(f"no links of {name} are being released: use the name given to `release`")
        allocation = self.releasing.pop(name)
        self._free_cables(allocation)
        return allocation

    def _take_cables(self, held: AllocationColumns, *, on_drained: bool) -> bool:
        """Take the cables of all tiers, or none."""
        if not self.links.take(held.links, on_drained=on_drained):
            return False
        if self.plant.cores and not self.core_links.take(held.core_links, on_drained=on_drained):
            self.links.give(held.links)
            return False
        return True

    def _free_cables(self, allocation: Allocation) -> None:
        held = allocation.columns
        self.links.give(held.links)
        if self.plant.cores:
            self.core_links.give(held.core_links)

    def drain(self, parts: Drained) -> tuple[str, ...]:
        """Take parts out of service for new jobs; answers which running jobs still use them."""
        parts.check(self.plant)
        self.drained |= parts
        self._turn(parts)
        return tuple(job for job, held in self.jobs.items() if parts.touches(self.plant, held))

    def restore(self, parts: Drained) -> None:
        """Put drained parts back into service."""
        self.drained -= parts
        self._turn(parts)

    def check(self) -> None:
        """Prove the invariants: no GPU and no cable in two jobs, every reserved set complete, every count right."""
        check_jobs(self)
        counted = self.copy()
        counted._recount()
        for name, value in vars(counted).items():
            own = getattr(self, name)
            if isinstance(value, np.ndarray) and not np.array_equal(value, own):
                raise PhysicsError(f"{name} of the state of {self.plant.name} is not what its jobs leave free")
            if isinstance(value, FreeCables) and (column := value.differs(own)) is not None:
                raise PhysicsError(f"{column} of {name} of {self.plant.name} is not what its jobs leave free")

    def copy(self) -> Occupancy:
        """The same state, free to change on its own: for what-if questions."""
        other = Occupancy.__new__(Occupancy)
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict | np.ndarray | FreeCables) else value)
        return other

    @classmethod
    def of_free(cls, plant: Plant, free_gpus: NDArray[np.int64]) -> Occupancy:
        """A state in which these GPUs are free, bit by bit in every server, and who holds the others is not told."""
        state = cls(plant)
        state.free_gpus = free_gpus.copy()
        state._count_servers()
        return state

    def as_document(self) -> dict[str, Any]:
        """A snapshot as plain lists and numbers, for JSON."""
        return {
            "plant": self.plant.name,
            "gpus": self.plant.gpus,
            "gpus_per_server": self.plant.gpus_per_server,
            "jobs": [allocation.as_document() for allocation in self.jobs.values()],
            "drained": self.drained.as_document(),
        }

    @classmethod
    def from_document(cls, plant: Plant, document: dict[str, Any]) -> Occupancy:
        """Read a snapshot back; every job in it is placed anew and so checked."""
        saved, state = saved_state(document), cls(plant)
        if saved.gpus != plant.gpus:
            raise ClusterError(
                f"the snapshot is of {saved.gpus} GPUs, plant {plant.name} has {plant.gpus}: give the plant it was "
                f"taken of, {saved.plant or 'which it does not name'} (--fabric)"
            )
        each = saved.gpus_per_server or plant.gpus_per_server
        if each != plant.gpus_per_server:
            raise ClusterError(
                f"the snapshot is of servers with {each} GPUs, those of plant {plant.name} have "
                f"{plant.gpus_per_server}: add --gpus-per-server {each}"
            )
        findings = Findings(ClusterError, "the snapshot")
        for job in saved.jobs:
            job.check()
            state.place(job)
            check_allocation(plant, job, findings)
        findings.raise_if_any()
        state.drain(saved.drained.drained())
        return state

    @property
    def _server_columns(self) -> tuple[Any, ...]:
        """What the loops over servers change, in their order."""
        size, unit, counts = self.plant.gpus_per_server, self.plant.server_unit, (self.free_on_leaf, self.idle_servers)
        return size, unit, self._server_up, self.free_gpus, self.free_in_server, *counts

    def _turn(self, parts: Drained) -> None:
        """Bring the counts of parts that were drained or restored in line with what is drained now."""
        from ropewalk.tenancy import _occupancy_kernel as kernel

        servers = parts.servers_of(self.plant)
        kernel.turn_servers(servers, self.drained.servers_up(self.plant, servers), *self._server_columns)
        for links, cables, turned, down in (
            (self.links, self.plant.cables, parts.above_leafs, self.drained.above_leafs),
            (self.core_links, self.plant.core_cables, parts.above_spines, self.drained.above_spines),
        ):
            if turned and cables.size:
                below, above = turned.pairs(cables)
                links.turn(below, above, down.these_up(cables, below, above))

    def _recount(self) -> None:
        """Count everything anew."""
        self._count_servers()
        self.links.up, self.core_links.up = self.drained.links_up(self.plant), self.drained.core_links_up(self.plant)
        self.links.recount()
        self.core_links.recount()

    def _count_servers(self) -> None:
        plant = self.plant
        self._server_up = self.drained.servers_up(plant)
        self.free_in_server = np.bitwise_count(self.free_gpus).astype(np.int64) * self._server_up
        self.free_on_leaf = _per_unit(plant, self.free_in_server)
        self.idle_servers = _per_unit(plant, self.free_in_server == plant.gpus_per_server)


def _per_unit(plant: Plant, counts: NDArray[Any]) -> NDArray[np.int64]:
    return np.bincount(plant.server_unit, weights=counts, minlength=plant.units).astype(np.int64)
