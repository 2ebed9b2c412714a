"""The cluster from event to event: the state of a replay and everything that can change it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ropewalk.errors import ClusterError, PhysicsError
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.backfill import QueueMoment, Waiter, backfill_named
from ropewalk.tenancy.curve import Curve
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.expectation import Expectations
from ropewalk.tenancy.failure import Failure, in_order, loses_gpus, loses_links
from ropewalk.tenancy.finishes import Finishes
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.circuits import start_delay_s
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.queue import Line, order_named
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.record import BEHIND_HEAD, RESTART, JobRecord, Refusal, Stretch
from ropewalk.tenancy.running import Past, Running
from ropewalk.tenancy.shards.ahead import InLine, Panels
from ropewalk.tenancy.shards.allocate import servers_of
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.shards.wired import wired_for
from ropewalk.tenancy.waits import Waits


@dataclass(frozen=True)
class Rules:
    """How a cluster is run."""

    routing: str = "ecmp"
    queue: str = "fifo"
    backfill: str = "none"
    seed: int = 0
    when_a_link_dies: str = "ecmp"
    rule_delay_s: float = 0.0
    """From the start of a job with dedicated links to its first byte: its rules are being written."""


class Simulation:
    """Jobs on a plant. `advance` goes to the next event; everything else is what events do."""

    def __init__(
        self, jobs: Sequence[Job], state: Occupancy, allocate: Allocate, rules: Rules, failures: Sequence[Failure]
    ) -> None:
        self.jobs, self.state, self.allocate, self.rules = jobs, state, allocate, rules
        self.plant = state.plant
        self.network = SharedNetwork(state.plant, rules.routing, rules.seed)
        self.line = Line(order_named(rules.queue))
        self.backfill = backfill_named(rules.backfill)
        self.arrivals = sorted(range(len(jobs)), key=lambda number: (jobs[number].arrival_s, number))
        self.changes = in_order(failures)
        """(time, comes back, failure) in order."""
        self.now_s = 0.0
        self.arrived = 0
        self.changed = 0
        self.events = 0
        self.running: dict[int, Running] = {}
        self.finishes = Finishes()
        self.waits = Waits()
        self.pasts: dict[int, Past] = {}
        self.records: dict[int, JobRecord] = {}
        self.refused: dict[int, Refusal] = {}
        self.curve = Curve()
        self.dead = Drained()
        self._known = {job.name: number for number, job in enumerate(jobs)}
        self._values: dict[Any, Any] = {}
        """Numbers and links of jobs that have ended, each once."""
        self._tried: tuple[int, int] | None = None
        self._version = 0
        """Counts changes of the state: a head that did not fit is not tried again before the next one."""
        self.expectations = Expectations(state, allocate)
        self._strangers = sum(held.size for held in state.jobs.values())
        self.panels = Panels(state.plant) if isinstance(state.plant, PanelPlant) else None

    def next_s(self) -> float:
        """When something happens next; never where nothing will."""
        arrival = self.jobs[self.arrivals[self.arrived]].arrival_s if self.arrived < len(self.arrivals) else math.inf
        change = self.changes[self.changed][0] if self.changed < len(self.changes) else math.inf
        return min(arrival, change, self.finishes.next_s())

    def advance(self) -> bool:
        """Go to the next event; False if no event is left and no job waits."""
        now = self.next_s()
        if now == math.inf:
            return self._give_up_on_head()
        self.now_s = now
        self.events += 1
        for number in self.finishes.due(now):
            self._finish(number)
        while self.changed < len(self.changes) and self.changes[self.changed][0] <= now:
            _, back, failure = self.changes[self.changed]
            self.changed += 1
            (self._repair if back else self._fail)(failure)
        while self.arrived < len(self.arrivals) and self.jobs[self.arrivals[self.arrived]].arrival_s <= now:
            self._arrive(self.arrivals[self.arrived])
            self.arrived += 1
        self._dispatch()
        self._look_ahead()
        self._new_paces()
        self._draw()
        self._check()
        return True

    def stand_in_line(self, number: int, *, again: bool) -> None:
        self.line.add(number, self.jobs[number], self.expectations.run_s, again=again)

    def last_try(self) -> tuple[int, bool] | None:
        """The last head that did not fit, and whether the state is still as it was then."""
        return None if self._tried is None else (self._tried[0], self._tried[1] == self._version)

    def remember_try(self, head: int, still: bool) -> None:
        self._tried = (head, self._version if still else -1)

    # What events do.

    def _arrive(self, number: int) -> None:
        job = self.jobs[number]
        place = self.expectations.place(job)
        if isinstance(place, Waiting):
            self._refuse(number, place)
            return
        self._enqueue(number, BEHIND_HEAD, again=False)

    def _enqueue(self, number: int, reason: str, *, again: bool) -> None:
        self.stand_in_line(number, again=again)
        self.waits.begin(number, self.now_s, reason)

    def _refuse(self, number: int, why: Waiting) -> None:
        job = self.jobs[number]
        self.refused[number] = Refusal(job.name, job.gpus, job.arrival_s, why.reason.value, why.explanation)

    def _start(self, number: int, allocation: Allocation) -> None:
        job, past = self.jobs[number], self.pasts.get(number)
        if self.panels is not None:
            allocation = self.panels.seat(self.state, allocation)
        self.state.place(allocation)
        self._version += 1
        self.line.remove(number)
        self.waits.end(number, self.now_s)
        footprint = self.network.footprint(job.work, allocation)
        self.network.start(job.name, number, footprint)
        self.running[number] = Running(
            number=number,
            allocation=allocation,
            start_s=self.now_s,
            left=job.iterations if past is None or past.left is None else past.left,
            since_s=self.now_s + self._delay_s(job, allocation),
            pace=self.network.pace(job.name),
            quiet_iteration_s=footprint.quiet_iteration_s,
            sent_flows=footprint.sent,
        )

    def _delay_s(self, job: Job, allocation: Allocation) -> float:
        """Circuits are set while rules are written: the slower of the two. Patching takes what it takes."""
        if self.panels is not None:
            wired = wired_for(self.panels.plant, job.work, allocation)
            return self.panels.start(allocation, 0 if wired is None else wired.cables, self.now_s)
        rules_s = self.rules.rule_delay_s if allocation.links else 0.0
        return max(rules_s, start_delay_s(self.plant, allocation))

    def _finish(self, number: int) -> None:
        job, run, past = self.jobs[number], self.running.pop(number), self.pasts.pop(number, Past())
        run.finish()
        self._leave(number)
        done = job.iterations if past.left is None else past.left
        self.records[number] = JobRecord(
            name=job.name,
            gpus=job.gpus,
            arrival_s=job.arrival_s,
            stretches=(*past.stretches, Stretch(run.start_s, self.now_s, run.allocation.kept(self._values))),
            quiet_s=past.quiet_s + done * run.quiet_iteration_s,
            waited_s=self.waits.of.pop(number).waited_s,
            flows=past.flows + run.flows,
            met_flows=past.met_flows + run.met_flows,
            deadline_s=job.deadline_s,
            model=job.model,
            busy_s=job.iterations * job.work.arithmetic_s,
        )

    def _leave(self, number: int) -> None:
        name = self.jobs[number].name
        self.state.release(name)
        self.network.stop(name)
        self.finishes.forget(number)
        self._version += 1

    def _throw_out(self, number: int) -> None:
        """A failure stops a job: whole iterations stay done, the one it was in is lost, and it goes first in line."""
        run, past = self.running.pop(number), self.pasts.setdefault(number, Past())
        run.advance(self.now_s)
        before = self.jobs[number].iterations if past.left is None else past.left
        past.left = before - math.floor(before - run.left)
        past.quiet_s += (before - past.left) * run.quiet_iteration_s
        past.flows, past.met_flows = past.flows + run.flows, past.met_flows + run.met_flows
        past.stretches.append(Stretch(run.start_s, self.now_s, run.allocation.kept(self._values)))
        self._leave(number)
        self._enqueue(number, RESTART, again=True)

    def _fail(self, failure: Failure) -> None:
        self.state.drain(failure.parts)
        self._version += 1
        if failure.drain:
            return
        self.bury(self.dead | failure.parts)
        for number in sorted(self.running):
            held = self.running[number].allocation
            lost_links = loses_links(failure.parts, self.plant, held)
            must_move = held.has_circuits or self.rules.when_a_link_dies == "re-place"
            if loses_gpus(failure.parts, self.plant, held) or (lost_links and must_move):
                self._throw_out(number)
            elif lost_links or not held.links:
                self._reroute(number, rerouted=lost_links)

    def _repair(self, failure: Failure) -> None:
        self.state.restore(failure.parts)
        self._version += 1
        if failure.drain:
            return
        self.bury(self.dead - failure.parts)
        for number in sorted(self.running):
            if self.running[number].rerouted or not self.running[number].allocation.links:
                self._reroute(number, rerouted=loses_links(self.dead, self.plant, self.running[number].allocation))

    def bury(self, dead: Drained) -> None:
        self.dead = dead
        self.network.cables = (self.plant.cables * dead.links_up(self.plant)).astype(np.int32)
        self.network.core_cables = (self.plant.core_cables * dead.core_links_up(self.plant)).astype(np.int32)

    def _reroute(self, number: int, *, rerouted: bool) -> None:
        """The flows of a running job take the paths that are there now; where there are none it stops."""
        job, run = self.jobs[number], self.running[number]
        if not run.allocation.crosses:
            return
        try:
            footprint = self.network.footprint(job.work, run.allocation)
        except ClusterError:
            self._throw_out(number)
            return
        self.network.stop(job.name)
        self.network.start(job.name, number, footprint)
        run.rerouted = rerouted

    def _dispatch(self) -> None:
        """Start heads while they fit; then whoever the backfill lets past."""
        while (head := self.line.head) is not None:
            if self._tried == (head, self._version):
                break
            job = self.jobs[head]
            found = self.allocate(self.state, job.name, job.gpus)
            if isinstance(found, Waiting):
                self._blocked(head, found)
                break
            self._start(head, found)
        if self.backfill is None:
            return
        while len(self.line) > 1 and (passed := self.backfill(self._moment())) is not None:
            self._start(*passed)

    def _blocked(self, head: int, why: Waiting) -> None:
        before = self.waits.head
        before_waits = before in self.waits.of and before not in self.running
        self.waits.block(head, self.jobs[head].name, self.now_s, why, before_waits=before_waits)
        self._tried = (head, self._version)

    def _moment(self) -> QueueMoment:
        waiting = [
            Waiter(number, self.jobs[number].name, self.jobs[number].gpus, self.expectations.run_s(self.jobs[number]))
            for number in self.line
        ]
        ends = []
        for number, run in self.running.items():
            job = self.jobs[number]
            ends.append((run.start_s + self.expectations.run_s(job), job.name))
        return QueueMoment(self.now_s, self.state, self.allocate, waiting, sorted(ends))

    def _look_ahead(self) -> None:
        """Where there is a second panel, those in line are patched while others run."""
        if self.panels is None:
            return
        free_s = np.where(self.state.drained.servers_up(self.plant), self.now_s, np.inf)
        for number, run in self.running.items():
            expected = max(run.start_s + self.expectations.run_s(self.jobs[number]), self.now_s)
            servers = list(servers_of(self.panels.plant, run.allocation))
            free_s[servers] = np.maximum(free_s[servers], expected)
        waiting = map(self.jobs.__getitem__, self.line)
        self.panels.look_ahead(self.now_s, [InLine(job.name, job.gpus) for job in waiting], free_s)

    def _new_paces(self) -> None:
        for name in self.network.settle():
            number = self._known[name]
            run = self.running[number]
            run.change(self.now_s, self.network.pace(name))
            self.finishes.expect(number, run.finish_s)

    def _give_up_on_head(self) -> bool:
        """Nothing will happen any more: the head of the line can never start, because of what failed for good."""
        head = self.line.head
        if head is None:
            return False
        job = self.jobs[head]
        why = self.allocate(self.state, job.name, job.gpus)
        if isinstance(why, Allocation):
            raise PhysicsError(f"job {job.name} could start and was not started")
        self.line.remove(head)
        del self.waits.of[head]
        self._refuse(head, why)
        self._dispatch()
        self._new_paces()
        self._draw()
        return True

    def _draw(self) -> None:
        used = sum(run.allocation.size for run in self.running.values())
        free = self.plant.gpus - self._strangers - used
        self.curve.draw(self.now_s, used, free, (self.jobs[number].gpus for number in self.line), len(self.line))

    def _check(self) -> None:
        """What can be checked at every event without being felt; `Occupancy.check` proves the rest."""
        if self.state.used != self.curve.used_gpus[-1] + self._strangers:
            raise PhysicsError(f"at {self.now_s} s jobs hold other GPUs than the state of the cluster says")
