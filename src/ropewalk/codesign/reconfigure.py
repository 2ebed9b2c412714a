"""A step on circuits that change while it runs: windows of dark and live time, demand served window by window.

When transfers are ready, circuits are set up for what is left of them (`circuits.py`). Nothing moves while the switch
is dark; then it is live for a window, after which circuits are chosen anew. Circuits that stay as they are cost no
dark time, and computation goes on all the while.

In a window every transfer runs over its direct cable, or, with forwarding, over a shortest path. It gets the part of
the tightest link on its way that its bytes are of all bytes waiting for that link: no link is overcommitted and
transfers on one link end together. Where several links bind, a max-min fair network would be somewhat faster.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.codesign.circuits import greedy_circuits
from ropewalk.errors import Findings, InputError, PhysicsError
from ropewalk.sim.tax import tax
from ropewalk.task.step import Act, Step

TOGETHER = 1e-6
"""Transfers that end within this part of the time to the next end are taken to end together."""


@dataclass(frozen=True)
class CircuitSwitch:
    """Servers with `degree` ports on a switch of circuits."""

    degree: int
    bandwidth: float
    """Bytes/s of one circuit, each way."""
    delay_s: float = 10e-3
    """Dark time of a change."""
    live_s: float | None = None
    """Live time between changes: four times the delay unless given, so that 10 ms make a cycle of 50 ms."""
    forwarding: bool = True
    """Do servers relay traffic?"""
    latency: float = 0.0
    """Of a transfer, and of every round of a sum."""

    def __post_init__(self) -> None:
        findings = Findings(InputError, "circuit switch")
        if self.degree < 1:
            findings.add(f"servers have {self.degree} ports: give 1 or more")
        if not self.bandwidth > 0:
            findings.add(f"a circuit has {self.bandwidth:g} bytes/s: give more than 0, such as 100Gbps")
        if not self.delay_s > 0 or (self.live_s is not None and not self.live_s > 0):
            findings.add("the dark or the live time is not above 0: give seconds such as 10ms")
        findings.raise_if_any()

    @property
    def window_s(self) -> float:
        return 4 * self.delay_s if self.live_s is None else self.live_s


@dataclass(frozen=True)
class CircuitRun:
    """A step that ran on changing circuits."""

    seconds: float
    changes: int
    dark_s: float
    """Time in which transfers waited for circuits to come up."""
    tax: float
    """Bytes carried by circuits over bytes asked for."""


def run_on_circuits(step: Step, switch: CircuitSwitch) -> CircuitRun:
    """Run a step, rank r on server r; a sum is one ring both ways in the order of its group.

    >>> from ropewalk.task.step import StepSketch
    >>> sketch = StepSketch(2)
    >>> _ = sketch.send(0, 1, 1e6)
    >>> run = run_on_circuits(sketch.step(), CircuitSwitch(1, 1e9, delay_s=1e-3))
    >>> round(run.seconds, 9), run.changes
    (0.002, 1)
    """
    step.check()
    return _Clock(step, switch, _flows_of(step, switch)).run()


@dataclass(frozen=True, eq=False)
class _Flows:
    """Every transfer of a step; those of one operation stand together."""

    operation: Ints
    src: Ints
    dst: Ints
    size: Floats
    lag: Floats
    """By operation: seconds from the last byte to the end."""


def _flows_of(step: Step, switch: CircuitSwitch) -> _Flows:
    rows: list[tuple[int, int, int, float]] = []
    lag = np.zeros(step.operations)
    for operation in np.flatnonzero(step.act != Act.COMPUTE).tolist():
        act, amount = Act(int(step.act[operation])), float(step.amount[operation])
        if act is Act.SEND:
            rows.append((operation, int(step.rank[operation]), int(step.peer[operation]), amount))
            lag[operation] = switch.latency
            continue
        members = step.groups[int(step.group[operation])].tolist()
        if act is Act.BARRIER or len(members) == 1:
            continue
        if act is Act.ALL_TO_ALL:
            lag[operation] = switch.latency
            rows += [(operation, a, b, amount / len(members)) for a in members for b in members if a != b]
            continue
        if act not in _RING_ROUNDS:
            raise InputError(
                f"a {act.name.lower()} does not run on circuits: compare steps with all-reduces and "
                "point-to-point transfers"
            )
        rounds = _RING_ROUNDS[act] * (len(members) - 1)
        lag[operation] = rounds * switch.latency
        carried = rounds * amount / len(members)
        hops = list(zip(members, [*members[1:], members[0]], strict=True))
        if len(members) > 2:  # circuits are duplex: half of the bytes take the other direction
            hops, carried = [*hops, *((b, a) for a, b in hops)], carried / 2
        rows += [(operation, a, b, carried) for a, b in hops]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    owner, src, dst = (np.array(column, np.int64) for column in columns[:3])
    return _Flows(owner, src, dst, np.array(columns[3], np.float64), lag)


_RING_ROUNDS = {Act.ALL_REDUCE: 2, Act.ALL_GATHER: 1, Act.REDUCE_SCATTER: 1}
"""How often a ring of k runs its k - 1 rounds: twice for an all-reduce."""


@dataclass
class _Clock:
    """The run: what is ready, what is left, which circuits are up until when."""

    step: Step
    switch: CircuitSwitch
    flows: _Flows
    now: float = 0.0
    changes: int = 0
    dark_s: float = 0.0
    carried: float = 0.0
    ends: list[tuple[float, int]] = field(default_factory=list)
    """Operations that end at a known time."""
    waiting: list[list[tuple[int, float, int]]] = field(default_factory=list)
    """By server: computations that are ready, by (priority, since when, number)."""

    def __post_init__(self) -> None:
        step, flows = self.step, self.flows
        self.left = flows.size.copy()
        self.ready = np.zeros(len(flows.size), bool)
        bounds = np.searchsorted(flows.operation, np.arange(step.operations + 1))
        self.first, self.last = bounds[:-1], bounds[1:]
        self.open_flows = self.last - self.first
        self.missing = np.diff(step.dep_start).copy()
        order = np.argsort(step.dep, kind="stable")
        self.waiter = np.repeat(np.arange(step.operations), np.diff(step.dep_start))[order]
        self.waiter_start = np.searchsorted(step.dep[order], np.arange(step.operations + 1))
        self.busy = [False] * step.ranks
        self.waiting = [[] for _ in range(step.ranks)]
        self.cables: Ints = np.zeros((step.ranks, step.ranks), np.int64)
        self.live_from = self.live_to = 0.0
        self.done = 0
        self.paths: _Paths | None = None

    def run(self) -> CircuitRun:
        self._begin(np.flatnonzero(self.missing == 0).tolist())
        while self.done < self.step.operations:
            if self.ready.any():
                self._serve()
            elif self.ends:
                self._end_until(self.ends[0][0])
            else:
                raise PhysicsError(f"{self.step.operations - self.done} operations of the step never start")
        asked = float(self.flows.size.sum())
        return CircuitRun(self.now, self.changes, self.dark_s, tax(self.carried, asked))

    def _serve(self) -> None:
        """To the next event: circuits come up, some transfers end, an operation ends, or the window is over."""
        if self.now >= self.live_to:
            self._choose_circuits()
        horizon = min(self.ends[0][0], self.live_to) if self.ends else self.live_to
        if self.now < self.live_from:
            horizon = min(horizon, self.live_from)
            self.dark_s += horizon - self.now
            self._end_until(horizon)
            return
        assert self.paths is not None
        active = np.flatnonzero(self.ready)
        to_end, hops = self.paths.seconds_to_end(self.flows.src[active], self.flows.dst[active], self.left[active])
        soonest = float(to_end.min(initial=np.inf))
        span = min(horizon - self.now, soonest)
        over = to_end <= span * (1 + TOGETHER)
        moved = np.where(over, self.left[active], self.left[active] * np.minimum(span / to_end, 1.0))
        self.carried += float((moved * hops).sum())
        self.left[active] -= moved
        self.now += span
        finished = active[over]
        self.ready[finished] = False
        for operation, count in zip(*np.unique(self.flows.operation[finished], return_counts=True), strict=True):
            self.open_flows[operation] -= count
            if not self.open_flows[operation]:
                heapq.heappush(self.ends, (self.now + float(self.flows.lag[operation]), int(operation)))
        self._end_until(self.now)

    def _choose_circuits(self) -> None:
        switch, ready = self.switch, self.ready
        demand = np.zeros(self.cables.shape)
        np.add.at(demand, (self.flows.src[ready], self.flows.dst[ready]), self.left[ready])
        wanted = greedy_circuits(demand, switch.degree, connect=switch.forwarding)
        self.live_from = self.now
        if not np.array_equal(wanted, self.cables) or self.paths is None:
            self.cables, self.live_from = wanted, self.now + switch.delay_s
            self.paths = _Paths(wanted, switch.bandwidth, switch.forwarding)
            self.changes += 1
        self.live_to = self.live_from + switch.window_s

    def _end_until(self, time: float) -> None:
        """Let the clock run to `time` and end what ends by then."""
        self.now = max(self.now, time)
        while self.ends and self.ends[0][0] <= self.now * (1 + 1e-15):
            _, operation = heapq.heappop(self.ends)
            self.done += 1
            if self.step.act[operation] == Act.COMPUTE:
                server = int(self.step.rank[operation])
                self.busy[server] = False
            self._begin(self._released_by(operation))
            if self.step.act[operation] == Act.COMPUTE:
                self._compute_next(int(self.step.rank[operation]))

    def _released_by(self, operation: int) -> list[int]:
        waiters = self.waiter[self.waiter_start[operation] : self.waiter_start[operation + 1]]
        np.subtract.at(self.missing, waiters, 1)
        return sorted({int(one) for one in waiters if self.missing[one] == 0})

    def _begin(self, operations: list[int]) -> None:
        step = self.step
        for operation in operations:
            if step.act[operation] == Act.COMPUTE:
                server = int(step.rank[operation])
                heapq.heappush(self.waiting[server], (int(step.priority[operation]), self.now, operation))
                self._compute_next(server)
            elif self.open_flows[operation]:
                self.ready[self.first[operation] : self.last[operation]] = True
            else:
                heapq.heappush(self.ends, (self.now, operation))

    def _compute_next(self, server: int) -> None:
        if self.busy[server] or not self.waiting[server]:
            return
        _, _, operation = heapq.heappop(self.waiting[server])
        self.busy[server] = True
        heapq.heappush(self.ends, (self.now + float(self.step.amount[operation]), operation))


class _Paths:
    """Ways over the circuits of one window."""

    def __init__(self, cables: Ints, bandwidth: float, forwarding: bool) -> None:
        self.servers = len(cables)
        self.capacity = (cables * bandwidth).astype(np.float64)
        self.before: NDArray[np.int32] | None = None
        if forwarding:
            from scipy.sparse import csr_array
            from scipy.sparse.csgraph import shortest_path

            _, self.before = shortest_path(csr_array(cables > 0), method="D", unweighted=True, return_predecessors=True)

    def seconds_to_end(self, src: Ints, dst: Ints, left: Floats) -> tuple[Floats, Ints]:
        """How long each transfer takes if nothing changes, and how many links it crosses; inf where it has no way."""
        pair, row = np.unique(src * self.servers + dst, return_inverse=True)
        owner, links = self._links(pair)
        waiting = np.bincount(row, left, minlength=len(pair))
        load = np.bincount(links, waiting[owner], minlength=self.capacity.size)
        slowest, hops = np.zeros(len(pair)), np.bincount(owner, minlength=len(pair))
        np.maximum.at(slowest, owner, load[links] / self.capacity.ravel()[links])
        slowest[hops == 0] = np.inf
        return slowest[row], hops[row]

    def _links(self, pair: Ints) -> tuple[Ints, Ints]:
        """(row of the pair, link) for every hop; a link from a to b has number a * servers + b."""
        a, b = np.divmod(pair, self.servers)
        if self.before is None:
            direct = np.flatnonzero(self.capacity[a, b] > 0)
            return direct, pair[direct]
        owner, links, at, rows = [], [], b, np.arange(len(pair))
        while len(rows):
            previous = self.before[a[rows], at].astype(np.int64)
            known = previous >= 0  # a pair in different parts has no way in this window
            rows, at, previous = rows[known], at[known], previous[known]
            owner.append(rows)
            links.append(previous * self.servers + at)
            further = previous != a[rows]
            rows, at = rows[further], previous[further]
        return np.concatenate([*owner, np.zeros(0, np.int64)]), np.concatenate([*links, np.zeros(0, np.int64)])
