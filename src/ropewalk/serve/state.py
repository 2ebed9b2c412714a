"""Everything the controller knows: the plant, who holds what, who waits, what is out of service."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from heapq import heappush

import numpy as np
from numpy.typing import NDArray

from ropewalk.serve.job import ServedJob
from ropewalk.serve.outcome import Refused
from ropewalk.serve.settings import DEFAULT_RUN_S, Settings
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.queue import Line

KEPT_ENDED = 4096
"""Ended jobs that stay in memory; older ones are in the store."""


@dataclass(frozen=True)
class Counters:
    """What must never go back, not even when history is deleted."""

    next_job: int = 1
    next_event: int = 1


@dataclass(eq=False)
class State:
    """The state between two operations. It does no I/O and has no clock."""

    plant: Plant
    """As the operator describes it; `occupancy.plant` is what the policy makes of it."""
    settings: Settings
    occupancy: Occupancy
    jobs: dict[str, ServedJob] = field(default_factory=dict)
    """Every live job, by id, in the order of their numbers."""
    ended: OrderedDict[str, ServedJob] = field(default_factory=OrderedDict)
    """Some of those that are over, the latest last."""
    waiting_of: Counter[str] = field(default_factory=Counter)
    """How many jobs of each owner wait or are held."""
    degraded: set[str] = field(default_factory=set)
    """Running jobs that have lost links."""
    line: Line = field(init=False)
    drained: Drained = field(default_factory=Drained)
    failed: Drained = field(default_factory=Drained)
    now: float = 0.0
    next_job: int = 1
    expiries: list[tuple[float, int]] = field(default_factory=list)
    """A heap of (when, number); entries of jobs that were bound or have ended are skipped."""
    changes: int = 0
    """Counts changes of what is free: a head that did not fit is not tried again before the next one."""
    tried: tuple[int, int] | None = None
    """(head, changes) of the last try in vain."""
    lack: Waiting | None = None
    """What the head lacked then."""
    possible: dict[int, Waiting | None] = field(default_factory=dict)
    """By number of GPUs: why such a job can never start under the policy, None where it can."""

    def __post_init__(self) -> None:
        self.line = Line(self.settings.order)
        self.server_number = {name: number for number, name in enumerate(self.plant.server_names)}
        self.empty = Occupancy(self.occupancy.plant)
        """The plant with nothing on it, to ask what could ever be."""

    def job(self, job_id: str) -> ServedJob:
        """A job by its id, live or lately ended."""
        found = self.jobs.get(job_id) or self.ended.get(job_id)
        if found is None:
            raise Refused("not-found", f"there is no job {job_id}", "list the jobs, and give one of their ids")
        return found

    def run_s(self, job: ServedJob) -> float:
        """How long a job is taken to run by orders and backfills."""
        return DEFAULT_RUN_S if job.expected_s is None else job.expected_s

    def enqueue(self, job: ServedJob) -> None:
        self.line.add(job.number, job, self.run_s, again=job.again, priority=job.priority)

    def dequeue(self, number: int) -> None:
        self.line.remove(number)

    def keep(self, job: ServedJob) -> None:
        """Remember this version of a job, and forget the oldest of too many ended ones."""
        before = self.jobs.get(job.id)
        waited = before is not None and before.state == "pending"
        self.waiting_of[job.owner] += (job.state == "pending") - waited
        if job.degraded and job.state == "running":
            self.degraded.add(job.id)
        else:
            self.degraded.discard(job.id)
        if job.live:
            self.jobs[job.id] = job
            return
        self.jobs.pop(job.id, None)
        self.ended[job.id] = job
        self.ended.move_to_end(job.id)
        while len(self.ended) > KEPT_ENDED:
            self.ended.popitem(last=False)

    def watch_expiry(self, job: ServedJob) -> None:
        if job.expires_at is not None:
            heappush(self.expiries, (job.expires_at, job.number))

    def take(self, allocation: Allocation, *, on_drained: bool = False) -> None:
        self.occupancy.place(allocation, on_drained=on_drained)
        self.changes += 1

    def keep_out(self, *, besides: str | None = None) -> None:
        """Tell the occupancy what new jobs may not get: parts out of service, and links that shared jobs may use.

        Links that one job alone keeps from others are free where it looks for links of its own: it is left out.
        """
        occupancy = self.occupancy
        wanted = self.drained | self.failed | self.open_links(besides=besides)
        if wanted != occupancy.drained:
            occupancy.restore(occupancy.drained)
            occupancy.drain(wanted)
            self.changes += 1

    @contextmanager
    def set_aside(self, job: ServedJob) -> Iterator[None]:
        """The state as if a running job held nothing, to look for what else it could hold."""
        held = job.allocation
        assert held is not None
        opens = opens_links(job)
        self.occupancy.release(job.id)
        try:
            if opens:
                self.keep_out(besides=job.id)
            yield
        finally:
            self.occupancy.place(held, on_drained=True)
            if opens:
                self.keep_out()

    def open_links(self, *, besides: str | None = None) -> Drained:
        """Links on which jobs without dedicated links may send, while the policy gives others links of theirs."""
        if self.settings.rule.shares:
            return Drained()
        sharing = [
            job.allocation.leafs
            for job in self.jobs.values()
            if opens_links(job) and job.allocation and job.id != besides
        ]
        plant = self.occupancy.plant
        leafs = np.array(sorted({leaf for one in sharing for leaf in one}), np.int64)
        spines = np.flatnonzero((plant.cables[leafs] > 0).any(axis=0)) if len(leafs) else leafs
        return Drained(links=_pairs(leafs, plant.cables[leafs]), core_links=_pairs(spines, plant.core_cables[spines]))

    def fork(self) -> State:
        """The same state, free to change on its own: for questions that begin with what if."""
        other = replace(self, occupancy=self.occupancy.copy(), jobs=dict(self.jobs), ended=OrderedDict(self.ended))
        other.waiting_of = self.waiting_of.copy()
        other.degraded = set(self.degraded)
        other.expiries = list(self.expiries)
        other.possible = self.possible
        other.line = self.line.copy()
        return other

    def queued(self) -> Iterable[ServedJob]:
        """Waiting jobs in the order of the line."""
        return (self.jobs[f"j{number}"] for number in self.line)


def opens_links(job: ServedJob) -> bool:
    """Does a job send over links that are nobody's own?"""
    held = job.allocation
    return job.state == "running" and held is not None and held.stage == "shared" and len(held.leafs) > 1


def _pairs(below: NDArray[np.int64], cables: NDArray[np.int32]) -> list[tuple[int, int]]:
    """(below, above) wherever there is a cable."""
    rows, above = np.nonzero(cables)
    return list(zip(below[rows].tolist(), above.tolist(), strict=True))
