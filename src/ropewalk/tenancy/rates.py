"""The running jobs on a network that they share: whose pace changes when jobs come and go.

How jobs slow each other down is the network's own matter (`pacing/`). Jobs that share no link with a changed job,
directly or through others, keep their times and are not looked at. Moments are drawn once for every job (a Latin
hypercube, from the seed and the number of the job), so the same set of jobs always gives the same times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.footprint import Footprint, footprint_of
from ropewalk.tenancy.pacing.pace import Company, JobPace, alone
from ropewalk.tenancy.paths import SwitchNetwork, ideal
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.routings import routing_named
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.shards.wired import on_its_cables
from ropewalk.tenancy.work import Iteration

__all__ = ["JobPace", "SharedNetwork"]

SNAPSHOTS = 48
"""Moments at which jobs are looked at."""


@dataclass(eq=False)
class _Member:
    name: str
    footprint: Footprint
    number: int
    slot: int
    """Row of the job in `SharedNetwork.uses`; -1 where it uses no link that could hold it up."""
    pace: JobPace


class SharedNetwork:
    """The running jobs on the leaf-spine network; answers whose pace has changed when jobs come and go."""

    def __init__(self, plant: Plant, routing: str, seed: int, snapshots: int = SNAPSHOTS) -> None:
        self.plant = plant
        self.seed = seed
        self.snapshots = snapshots
        self.cables = plant.cables.copy()
        """[leaf, spine]: cables that are alive."""
        self.core_cables = plant.core_cables.copy()
        """[spine, core]: the same above spines."""
        self.routing = routing_named(routing)
        self._links = self.routing.links(plant)
        self._members: dict[str, _Member] = {}
        self._near: dict[str, set[str]] = {}
        """For every job the others that use a link of its."""
        self._slots: list[str | None] = []
        self._uses = np.zeros((0, self._links), bool)
        self._load = np.zeros(self._links)
        self._touched: set[str] = set()

    def footprint(self, work: Iteration, allocation: Allocation) -> Footprint:
        """What a job would do to the network if it started now."""
        if isinstance(self.plant, PanelPlant):
            return self._behind_panels(self.plant, work, allocation)
        width = self.routing.width(self.plant, self.cables, self.core_cables)
        load = self._mean_load
        if self.routing.ranks:
            quiet = SwitchNetwork(self.plant, self.cables, load, self.seed, width, self.core_cables)
            load = partial(self._mean_load, footprint_of(work, allocation, quiet, ideal).worth)
        once = cache(load)  # nobody comes or goes meanwhile, and every round of the job asks
        network = SwitchNetwork(self.plant, self.cables, lambda: once().copy(), self.seed, width, self.core_cables)
        return footprint_of(work, allocation, network, self.routing.make)

    def _behind_panels(self, plant: PanelPlant, work: Iteration, allocation: Allocation) -> Footprint:
        """On cables of its own, unless the question is what no network at all would cost."""
        quiet = SwitchNetwork(plant, self.cables, self._mean_load, self.seed, None, self.core_cables)
        footprint = footprint_of(work, allocation, quiet, ideal)
        return footprint if self.routing.make is ideal else on_its_cables(footprint, plant, allocation)

    def start(self, name: str, number: int, footprint: Footprint) -> None:
        """A job begins to communicate; `number` is its place in the trace, which its moments are drawn from."""
        near = self._users(footprint)
        slot = self._slot(name) if len(footprint.links) else -1
        self._members[name] = _Member(name, footprint, number, slot, alone(footprint))
        if slot >= 0:
            self._uses[slot, footprint.links] = True
        self._near[name] = near
        for other in near:
            self._near[other].add(name)
        self._touched |= near | {name}

    def stop(self, name: str) -> None:
        """A job is done, or stopped."""
        member = self._members.pop(name)
        if member.slot >= 0:
            self._uses[member.slot] = False
            self._slots[member.slot] = None
        near = self._near.pop(name)
        for other in near:
            self._near[other].discard(name)
        self._touched.discard(name)
        self._touched |= near

    def pace(self, name: str) -> JobPace:
        return self._members[name].pace

    def running(self, name: str) -> Footprint:
        """What a running job does to the network."""
        return self._members[name].footprint

    def settle(self) -> list[str]:
        """Work out the pace of everybody whom the last changes reach; answers whose pace is new, in order of coming."""
        touched, changed, seen = self._touched, set[str](), set[str]()
        self._touched = set()
        for name in self._in_order(touched):
            if name in seen:
                continue
            group = self._component(name)
            seen.update(group)
            members = [self._members[one] for one in group]
            for one, member, pace in zip(group, members, self._paces(members), strict=True):
                if pace != member.pace or one in touched:
                    member.pace = pace
                    changed.add(one)
        return self._in_order(changed)

    def restore(self, name: str, pace: JobPace) -> None:
        """Put back the pace that a job had when a replay was written down."""
        self._members[name].pace = pace
        self._touched.discard(name)

    def sharing(self, name: str) -> list[str]:
        """Jobs that use a link that this one uses, in order of coming."""
        return self._in_order(self._near[name])

    def _in_order(self, names: set[str]) -> list[str]:
        return sorted(names, key=lambda name: self._members[name].number)

    def _mean_load(self, least: float = 0.0) -> NDArray[np.float64]:
        """Load of every link, mean over time, by jobs that are worth so much at least.

        Summed in order of coming, so that history leaves no rounding.
        """
        total = np.zeros(self._links)
        for name in self._in_order(set(self._members)):
            footprint = self._members[name].footprint
            if footprint.worth >= least:
                total[footprint.links] += footprint.mean_load
        return total

    def _slot(self, name: str) -> int:
        if None in self._slots:
            slot = self._slots.index(None)
            self._slots[slot] = name
            return slot
        self._slots.append(name)
        if len(self._slots) > len(self._uses):
            grown = np.zeros((max(16, 2 * len(self._uses)), self._uses.shape[1]), bool)
            grown[: len(self._uses)] = self._uses
            self._uses = grown
        return len(self._slots) - 1

    def _users(self, footprint: Footprint) -> set[str]:
        """Jobs that use any of these links."""
        rows = self._uses[: len(self._slots)][:, footprint.links].any(axis=1)
        return {name for slot in np.flatnonzero(rows).tolist() if (name := self._slots[slot]) is not None}

    def _component(self, name: str) -> list[str]:
        """Everybody linked to a job through shared links, in order of coming."""
        found, fresh = {name}, [name]
        while fresh:
            near = self._near[fresh.pop()] - found
            found |= near
            fresh.extend(near)
        return self._in_order(found)

    def _paces(self, members: list[_Member]) -> list[JobPace]:
        company = Company(
            [member.footprint for member in members],
            np.array([len(self._near[member.name]) for member in members]),
            np.stack([_moments(self.seed, member.number, self.snapshots) for member in members]),
            self._load,
            self.cables,
            self.core_cables,
            self.plant.tiers,
        )
        return self.routing.paces(company)


def _moments(seed: int, number: int, snapshots: int) -> NDArray[np.float64]:
    """Two rows of points in [0, 1), each with one point in every of `snapshots` equal parts, in random order."""
    random = np.random.default_rng([seed & (2**63 - 1), number])
    rows = np.stack([random.permutation(snapshots) for _ in range(2)])
    return np.asarray((rows + random.random((2, 1))) / snapshots, np.float64)
