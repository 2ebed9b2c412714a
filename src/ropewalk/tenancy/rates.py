"""How fast jobs iterate while they share a network: the mean over random moments of what the others are doing.

The model. Rounds of a collective end with a barrier, so a round takes as long as its slowest flow, and flows on a link
get equal parts of it: a round takes bytes / (bandwidth / flows) on its fullest link, or what its NICs take if that is
longer. That is the rule of the published simulations; max-min sharing gives a flow more only where others on its
fullest link are held up more elsewhere, which changes the times here by less than 0.1 %. What the others do at that
moment is random: iterations of different jobs are not in step, so a job is found in a phase with the probability of
that phase's part of its iteration. Both sides depend on each other: who is slowed down communicates longer and is met
more often. So the snapshots are evaluated again until times settle. What a job finds of another one must not count what
it does to that one itself: with fair sharing, whoever comes second into a round is delayed by what the first still has
to send, not by how long both take together. Of n jobs that slow another one down each finds it stretched by what the
other n - 1 do. For two jobs with equally many flows on a link that is exact over all offsets of their iterations; for n
equal ones it keeps links within their capacity.

Why snapshots and not mean loads: a round waits for its fullest link, and the mean of the fullest is far above the
fullest mean when many jobs each touch another link. Snapshots are drawn once for every job (a Latin hypercube, from the
seed and the number of the job), so the same set of jobs always gives the same times.

A flow on an emptier link is done before its round is, and others then find that link free: a snapshot has only the
flows of a round that still run. Against the flow simulator, which runs every round (`snapshot/`), two jobs on a link
agree within 2 %, and jobs of random worlds lie between 6 % below and 19 % above it, 2.5 % above on average where
collisions cost 38 % (`tests/agree`). What is left has two causes, both on the slow side. Of two jobs with m and k flows
on a link the first is taken to be slowed by 1 + k / m for as long as its phase lasts, but phases of the second that are
shorter than that delay it by no more than what they send. And others move on while a round lasts, so that the mean of
the fullest link is above the fullest mean of a round; that is a third of it.

Jobs that share no link with a changed job, directly or through others, keep their times and are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy._sharing_kernel import sample
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.footprint import Footprint, footprint_of
from ropewalk.tenancy.paths import Network, links_of
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import routing_named
from ropewalk.tenancy.work import Work

SNAPSHOTS = 48
MOST_SWEEPS = 6
SETTLED = 0.005
"""Iteration times that change by less than this part between sweeps have settled."""


@dataclass(frozen=True)
class Pace:
    """How a job gets on: seconds of an iteration, and the flows of an iteration that meet another one."""

    iteration_s: float
    met_flows: float


@dataclass(eq=False)
class _Member:
    name: str
    footprint: Footprint
    number: int
    slot: int
    """Row of the job in `SharedNetwork.uses`; -1 where it uses no link that could hold it up."""
    pace: Pace


class SharedNetwork:
    """The running jobs on the leaf-spine network; answers whose pace has changed when jobs come and go."""

    def __init__(self, plant: Plant, routing: str, seed: int, snapshots: int = SNAPSHOTS) -> None:
        self.plant = plant
        self.seed = seed
        self.snapshots = snapshots
        self.cables = plant.cables.copy()
        """[leaf, spine]: cables that are alive."""
        self._choose = routing_named(routing)
        self._members: dict[str, _Member] = {}
        self._near: dict[str, set[str]] = {}
        """For every job the others that use a link of its."""
        self._slots: list[str | None] = []
        self._uses = np.zeros((0, links_of(plant)), bool)
        self._load = np.zeros(links_of(plant), np.int32)
        self._touched: set[str] = set()

    def footprint(self, work: Work, allocation: Allocation) -> Footprint:
        """What a job would do to the network if it started now."""
        return footprint_of(
            work, allocation, Network(self.plant, self.cables, self._mean_load, self.seed), self._choose
        )

    def start(self, name: str, number: int, footprint: Footprint) -> None:
        """A job begins to communicate; `number` is its place in the trace, which its moments are drawn from."""
        near = self._users(footprint)
        slot = self._slot(name) if len(footprint.links) else -1
        self._members[name] = _Member(
            name, footprint, number, slot, Pace(footprint.alone_iteration_s, footprint.met_alone)
        )
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

    def pace(self, name: str) -> Pace:
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

    def restore(self, name: str, pace: Pace) -> None:
        """Put back the pace that a job had when a replay was written down."""
        self._members[name].pace = pace
        self._touched.discard(name)

    def sharing(self, name: str) -> list[str]:
        """Jobs that use a link that this one uses, in order of coming."""
        return self._in_order(self._near[name])

    def _in_order(self, names: set[str]) -> list[str]:
        return sorted(names, key=lambda name: self._members[name].number)

    def _mean_load(self) -> NDArray[np.float64]:
        """Flows on every link, mean over time; summed in order of coming, so that history leaves no rounding."""
        total = np.zeros(links_of(self.plant))
        for name in self._in_order(set(self._members)):
            total += self._members[name].footprint.mean_load(len(total))
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

    def _paces(self, members: list[_Member]) -> list[Pace]:
        if len(members) == 1:
            footprint = members[0].footprint
            return [Pace(footprint.alone_iteration_s, footprint.met_alone)]
        return shared_paces(
            [member.footprint for member in members],
            np.array([len(self._near[member.name]) for member in members]),
            np.stack([_moments(self.seed, member.number, self.snapshots) for member in members]),
            self._load,
        )


def _moments(seed: int, number: int, snapshots: int) -> NDArray[np.float64]:
    """Two rows of points in [0, 1), each with one point in every of `snapshots` equal parts, in random order."""
    random = np.random.default_rng([seed & (2**63 - 1), number])
    rows = np.stack([random.permutation(snapshots) for _ in range(2)])
    return np.asarray((rows + random.random((2, 1))) / snapshots, np.float64)


def shared_paces(
    footprints: list[Footprint],
    neighbours: NDArray[np.int64],
    moments: NDArray[np.float64],
    load: NDArray[np.int32],
) -> list[Pace]:
    """The pace of jobs that run at the same time.

    `neighbours` is how many of the others share a link with each; `moments` is [job, (moment, probe), snapshot] in
    [0, 1); `load` is room for one number for every link, all 0.
    """
    phase_start = np.concatenate([[0], np.cumsum([len(one.exchange) for one in footprints])]).astype(np.int64)
    flows = np.concatenate([np.diff(one.flow_start) for one in footprints])
    alone_s = np.concatenate([one.alone_s for one in footprints])
    columns = (
        phase_start,
        np.concatenate([one.floor_s for one in footprints]),
        np.concatenate([one.flow_s for one in footprints]),
        alone_s,
        np.concatenate([one.nic_flows for one in footprints]),
        np.concatenate([one.rounds for one in footprints]),
        np.concatenate([[0], np.cumsum(flows)]).astype(np.int64),
        np.concatenate([one.up for one in footprints]),
        np.concatenate([one.down for one in footprints]),
        np.concatenate([one.lasts for one in footprints]),
    )
    shape = (len(footprints), moments.shape[2])
    stretch, met, probed = np.ones(shape), np.zeros(shape), np.zeros(shape, np.int64)
    moment, probe = np.ascontiguousarray(moments[:, 0]), np.ascontiguousarray(moments[:, 1])
    found_s, iteration_s = alone_s.copy(), np.array([one.alone_iteration_s for one in footprints])
    met_in_s = iteration_s.copy()
    for _ in range(MOST_SWEEPS):
        sample(*columns, found_s, met_in_s, moment, probe, load, stretch, met, probed)
        before = iteration_s.copy()
        for job, footprint in enumerate(footprints):
            mine = slice(phase_start[job], phase_start[job + 1])
            took_s = _stretched(footprint, probed[job] - phase_start[job], stretch[job])
            iteration_s[job] = footprint.iteration_s(took_s)
            found_s[mine] = alone_s[mine] + (took_s - alone_s[mine]) * (1 - 1 / max(neighbours[job], 1))
            met_in_s[job] = footprint.iteration_s(found_s[mine])
        if (np.abs(iteration_s - before) <= SETTLED * before).all():
            break
    return [
        Pace(float(seconds), _met(footprint, probed[job] - phase_start[job], met[job]))
        for job, (footprint, seconds) in enumerate(zip(footprints, iteration_s, strict=True))
    ]


def _stretched(footprint: Footprint, probed: NDArray[np.int64], stretch: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds of every phase: phases of an exchange are stretched alike, by the mean of those that were probed."""
    if probed[0] < 0:
        return footprint.alone_s
    count = len(footprint.work.exchanges)
    exchange = footprint.exchange[probed]
    tries = np.bincount(exchange, minlength=count)
    mean = np.where(tries > 0, np.bincount(exchange, stretch, minlength=count) / np.maximum(tries, 1), stretch.mean())
    over_links = np.diff(footprint.flow_start) > 0
    return np.where(over_links, footprint.alone_s * mean[footprint.exchange], footprint.alone_s)


def _met(footprint: Footprint, probed: NDArray[np.int64], met: NDArray[np.float64]) -> float:
    """Flows of an iteration that share a link: the part of those probed, of all that cross leafs."""
    if probed[0] < 0:
        return 0.0
    flows = np.diff(footprint.flow_start)
    seen = flows[probed] * footprint.rounds[probed]
    weight = 1.0 / np.maximum(footprint.alone_s[probed], 1e-300)  # phases are probed by time, flows count by rounds
    part = float((met * footprint.rounds[probed] * weight).sum() / (seen * weight).sum())
    return part * float((flows * footprint.rounds).sum())
