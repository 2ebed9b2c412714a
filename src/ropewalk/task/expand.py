"""From a step to a task graph: computations stay, collectives become the transfers of their programs.

A collective is a marker at which its last member arrives, its transfers, and a marker that all who wait for it wait
for. Collectives of the same act whose groups sit alike in servers are the same tasks between other hosts, so they are
worked out once and written side by side: there is no loop over operations.

Only dependencies make an operation wait: streams of communication are names for reports, and a step that wants two
collectives one after the other says so. A barrier, and a collective of a group of one rank, take no time. An operation
that stands for several in a row (`repeats`) moves the bytes of all of them at once and pays start-ups and rounds of
each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.choices import Choices
from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.collectives.cost.form import receiving_bandwidth
from ropewalk.collectives.table import COLLECTIVES, Collective
from ropewalk.errors import Findings, GraphError
from ropewalk.fabric import Fabric
from ropewalk.ragged import ranges
from ropewalk.routing import Router, Routes
from ropewalk.task.graph import TaskGraph, TaskKind
from ropewalk.task.kinds import AlikeCollectives as CollectiveKind
from ropewalk.task.kinds import Use, kinds_of_collectives
from ropewalk.task.lockstep import ADDER, MOST_TASKS
from ropewalk.task.nccl import sends_of
from ropewalk.task.step import Act, Step
from ropewalk.task.template import MODES
from ropewalk.task.transport import Transport


@dataclass(frozen=True, eq=False)
class Expansion:
    """A step as tasks on the hosts of a fabric."""

    graph: TaskGraph
    operation_of_task: NDArray[np.int32]
    hosts: NDArray[np.int32]
    """The host on which each rank runs."""
    server: NDArray[np.int32]
    """The server of every host of the fabric."""
    rounds_inside: NDArray[np.int64]
    """By operation: rounds that its transfers stand for, within servers and across; 0 where rounds are written out."""
    rounds_across: NDArray[np.int64]
    repeats: NDArray[np.int32]
    """By operation: how many in a row it stands for."""
    launch_s: NDArray[np.float64]
    """By operation: part of its start-up that operations launched together pay once."""
    fabric: Fabric
    kinds: tuple[CollectiveKind, ...] = ()
    """What the collectives run."""
    own_paths: Routes | None = None
    """Paths that collectives bring; until `routed`, the route of a task is a row of them."""

    @classmethod
    def of(cls, step: Step, use: Use) -> Expansion:
        """The tasks of a step."""
        return cls.of_kinds(step, use, kinds_of_collectives(step, use))

    @classmethod
    def of_kinds(cls, step: Step, use: Use, kinds: list[CollectiveKind]) -> Expansion:
        """The tasks of a step of which it is known what its collectives run."""
        return _written(step, use, kinds)

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Source and destination host of every transfer that the network routes."""
        moved = (self.graph.kind == TaskKind.TRANSFER) & (self.graph.route < 0)
        return self.graph.place[moved], self.graph.peer[moved]

    def routed(self, router: Router) -> tuple[Expansion, Routes]:
        """The same with the latency of paths charged, and the routes of everything that is sent."""
        routes = router(self.fabric, *self.pairs())
        if self.own_paths is None:
            return self.with_path_latency(routes), routes
        graph, named = self.graph, np.flatnonzero(self.graph.route >= 0)
        route = graph.route.copy()
        route[named] += routes.pairs
        routes = routes.with_rows(self.own_paths)
        return replace(self, graph=replace(graph, route=route), own_paths=None).with_path_latency(routes), routes

    def with_path_latency(self, routes: Routes) -> Expansion:
        """Charge the latency of the path as often as bytes set out on it; a collective goes by its slowest pair.

        A simulation charges every transfer the latency of its path once. That is all there is to a send and to rounds
        that are written out; a collective written as one transfer for each pair owes it for every further round, and
        whatever stands for several operations owes it for each of them.
        """
        task = np.flatnonzero(self.graph.kind == TaskKind.TRANSFER)
        if not len(task):
            return self
        own, each = self.latencies(routes, task)
        start_up = self.graph.start_up.copy()
        start_up[task] += np.maximum(each * self.repeats[self.operation_of_task[task]] - own, 0.0)
        return replace(self, graph=replace(self.graph, start_up=start_up))

    def latencies(self, routes: Routes, task: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of every transfer, the latency of its path, and what it owes for each operation that it stands for."""
        src, dst, operation = self.graph.place[task], self.graph.peer[task], self.operation_of_task[task]
        latency = routes.latency()[routes.rows_of(self.graph, task)]
        inside = self.server[src] == self.server[dst]
        # Transfers of an operation stand together.
        first = np.flatnonzero(np.diff(operation, prepend=-1))
        slowest_inside = np.maximum.reduceat(np.where(inside, latency, 0.0), first)
        slowest_across = np.maximum.reduceat(np.where(inside, 0.0, latency), first)
        owner, transfers = operation[first], np.diff(first, append=len(task))
        poured = np.repeat(
            self.rounds_inside[owner] * slowest_inside + self.rounds_across[owner] * slowest_across, transfers
        )
        is_poured = (self.rounds_inside + self.rounds_across)[operation] > 0
        return latency, np.where(is_poured, poured, latency)


def expand(
    step: Step,
    hosts: ArrayLike,
    fabric: Fabric,
    *,
    collectives: CollectiveChoice | None = None,
    table: Choices[Collective] = COLLECTIVES,
    router: Router | None = None,
    transport: Transport | None = None,
    mode: str = "fluid",
) -> Expansion:
    """Put a step to work: rank r runs on host `hosts[r]` of the fabric, where a GPU is a host.

    `collectives` says which collective of the table each purpose runs (rings where not given), `mode` says whether
    programs are written out in `rounds` or as one `fluid` transfer for each pair. Collectives that are made for the
    network need the `router` whose usual paths they may keep to. Hosts of one server are those that
    `fabric.server` says; without it every host is a server of its own. The root of a broadcast or reduce is the first
    rank of its group.

    >>> from ropewalk.fabric import Dgx
    >>> from ropewalk.task.step import StepSketch
    >>> sketch = StepSketch(16)
    >>> _ = sketch.collective(Act.ALL_REDUCE, range(16), 1e9)
    >>> graph = expand(sketch.step(), range(16), Dgx(2).build()).graph
    >>> across = (graph.kind == TaskKind.TRANSFER) & (graph.place // 8 != graph.peer // 8)
    >>> sorted(set(graph.place[across].tolist())) == list(range(16))  # every NIC carries its part
    True
    """
    return Expansion.of(step, use_of(step, hosts, fabric, collectives, table, router, transport, mode))


def use_of(
    step: Step, hosts: ArrayLike, fabric: Fabric, collectives: CollectiveChoice | None = None,
    table: Choices[Collective] = COLLECTIVES, router: Router | None = None, transport: Transport | None = None,
    mode: str = "fluid",
) -> Use:  # fmt: skip
    """What a step is expanded with, checked; who expands it several times uses it again."""
    step.check()
    if mode not in MODES:
        raise GraphError(f"there is no mode {mode!r} of writing collectives out: choose {', '.join(MODES)}")
    host = _checked_hosts(step, hosts, fabric)
    server = np.arange(fabric.hosts, dtype=np.int32) if fabric.server is None else fabric.server
    costs = (transport or Transport()).on(float(receiving_bandwidth(fabric).max(initial=0.0)), mode)
    return Use(fabric, host, server, collectives or CollectiveChoice(), table, costs, mode, router)


def _checked_hosts(step: Step, hosts: ArrayLike, fabric: Fabric) -> NDArray[np.int32]:
    host = np.asarray(hosts, np.int32).ravel()
    findings = Findings(GraphError, f"a step of {step.ranks} ranks on {fabric.name}")
    if len(host) != step.ranks:
        findings.add(f"{len(host)} hosts are given: give one host for each rank")
    strangers = host[(host < 0) | (host >= fabric.hosts)]
    if len(strangers):
        findings.add(f"host {int(strangers[0])} does not exist: hosts are 0…{fabric.hosts - 1}; use a larger fabric")
    shared = len(host) - len(np.unique(host))
    if shared:
        findings.add(f"{shared} ranks share a host with another: give every rank its own host (a GPU is a host)")
    findings.raise_if_any()
    return host


def _written(step: Step, use: Use, kinds: list[CollectiveKind]) -> Expansion:
    host, server = use.host, use.server
    size = np.ones(step.operations, np.int64)
    for kind in kinds:
        size[kind.operation] = kind.template.tasks
    tasks = int(size.sum())
    if tasks > MOST_TASKS:
        raise GraphError(f"the step has {tasks:.3g} tasks, more than fit in one graph: expand with mode fluid")
    first = np.cumsum(size) - size
    owner = np.repeat(np.arange(step.operations, dtype=np.int32), size)
    draft = _Draft.of_markers(tasks, routed=any(kind.template.paths is not None for kind in kinds))
    launch = np.zeros(step.operations)
    for transport, sends in _transports_of_sends(step, use):
        _write_sends(step, draft, first, use, transport, sends)
        launch[sends] = transport.start_up_s
    _write_computes(step, draft, first, host)

    own = np.diff(step.dep_start)
    deps = np.zeros(tasks, np.int64)
    deps[first] = own
    rounds_inside, rounds_across = np.zeros((2, step.operations), np.int64)
    for kind in kinds:
        deps[_block(first[kind.operation], kind.template.tasks, 1)] = kind.template.deps[1:]
        rounds_inside[kind.operation] = kind.template.rounds_inside
        rounds_across[kind.operation] = kind.template.rounds_across
        launch[kind.operation] = kind.template.launch_s
        _write_collectives(step, draft, first, host, kind)
    own_paths = _write_own_paths(use, draft, first, kinds)
    dep_start = np.concatenate([[0], np.cumsum(deps)])
    dep = np.zeros(int(dep_start[-1]), np.int32)
    # Waiting for an operation is waiting for its last task, and its first task waits for what the operation waits for.
    dep[ranges(dep_start[first], own)] = (first + size - 1)[step.dep]
    for kind in kinds:
        begin = first[kind.operation]
        dep[_block(dep_start[begin + 1], len(kind.template.dep))] = kind.template.dep + begin[:, None]
    stream = step.stream[owner]
    # What computes for a collective adds up what it brings, beside all that the rank computes.
    stream[(draft.kind == TaskKind.COMPUTE) & (step.act[owner] != Act.COMPUTE)] = ADDER
    graph = TaskGraph(
        draft.kind, draft.place, draft.peer, stream, draft.amount, draft.start_up, step.priority[owner],
        draft.rate_cap, step.label[owner], step.labels, dep_start, dep, draft.route,
    )  # fmt: skip
    return Expansion(
        graph,
        owner,
        host,
        server,
        rounds_inside,
        rounds_across,
        step.repeats,
        launch,
        use.fabric,
        tuple(kinds),
        own_paths,
    )


@dataclass(frozen=True, eq=False)
class _Draft:
    """Columns of the graph while they are filled; what nobody fills is a marker."""

    kind: NDArray[np.int8]
    place: NDArray[np.int32]
    peer: NDArray[np.int32]
    amount: NDArray[np.float64]
    start_up: NDArray[np.float64]
    rate_cap: NDArray[np.float64]
    route: NDArray[np.int32]

    @staticmethod
    def of_markers(tasks: int, *, routed: bool) -> _Draft:
        """Before anything is filled in; `routed` where transfers may be given routes of their own."""
        return _Draft(
            kind=np.full(tasks, TaskKind.MARKER, np.int8),
            place=np.full(tasks, -1, np.int32),
            peer=np.full(tasks, -1, np.int32),
            amount=np.zeros(tasks),
            start_up=np.zeros(tasks),
            rate_cap=np.full(tasks, np.inf),
            route=np.full(tasks, -1, np.int32) if routed else np.broadcast_to(np.int32(-1), tasks),
        )


def _transports_of_sends(step: Step, use: Use) -> Iterator[tuple[Transport, NDArray[np.int64]]]:
    """What sends cost, by the collectives of their purpose: those of a library that chooses cost what its sends do."""
    sends = np.flatnonzero(step.act == Act.SEND)
    chosen = np.array([use.table.named(use.choice.name_for(one)).chooses for one in step.streams], np.bool_)
    by_library = chosen[step.stream[sends]]
    yield use.transport, sends[~by_library]
    if by_library.any():
        yield sends_of(use.asked_library()), sends[by_library]


def _write_computes(step: Step, draft: _Draft, first: NDArray[np.int64], host: NDArray[np.int32]) -> None:
    computes = np.flatnonzero(step.act == Act.COMPUTE)
    draft.kind[first[computes]] = TaskKind.COMPUTE
    draft.place[first[computes]] = host[step.rank[computes]]
    draft.amount[first[computes]] = step.amount[computes]


def _write_sends(
    step: Step, draft: _Draft, first: NDArray[np.int64], use: Use, transport: Transport, sends: NDArray[np.int64]
) -> None:
    task, src, dst = first[sends], use.host[step.rank[sends]], use.host[step.peer[sends]]
    inside = use.server[src] == use.server[dst]
    draft.kind[task] = TaskKind.TRANSFER
    draft.place[task], draft.peer[task] = src, dst
    draft.amount[task] = step.amount[sends] * transport.wire_bytes(inside)
    draft.start_up[task] = (transport.start_up_s + transport.rounds_s(inside)) * step.repeats[sends]
    draft.rate_cap[task] = transport.caps(inside)


def _write_collectives(
    step: Step, draft: _Draft, first: NDArray[np.int64], host: NDArray[np.int32], kind: CollectiveKind
) -> None:
    template = kind.template
    sends = np.flatnonzero(template.src >= 0)
    task = first[kind.operation][:, None] + sends
    hosts_of_groups = host[kind.members]
    draft.kind[task] = TaskKind.TRANSFER
    draft.place[task] = hosts_of_groups[:, template.src[sends]][kind.row]
    draft.peer[task] = hosts_of_groups[:, template.dst[sends]][kind.row]
    draft.amount[task] = step.amount[kind.operation][:, None] * template.wire[sends]
    draft.start_up[task] = step.repeats[kind.operation][:, None] * template.start_up[sends]
    draft.rate_cap[task] = template.cap[sends]
    if len(adds := template.adds):
        task = first[kind.operation][:, None] + adds
        draft.kind[task] = TaskKind.COMPUTE
        draft.place[task] = hosts_of_groups[:, template.dst[adds]][kind.row]
        draft.amount[task] = step.amount[kind.operation][:, None] * template.wire[adds]


def _write_own_paths(use: Use, draft: _Draft, first: NDArray[np.int64], kinds: list[CollectiveKind]) -> Routes | None:
    """Point transfers at the paths that their collectives bring; the paths of all of them, one after the other."""
    found: Routes | None = None
    for kind in kinds:
        paths, own = kind.paths(use.host), kind.template.paths
        if paths is None or own is None:
            continue
        row = (found.pairs if found is not None else 0) + kind.row * own.pairs
        sends = np.flatnonzero(kind.template.route >= 0)
        draft.route[first[kind.operation][:, None] + sends] = row[:, None] + kind.template.route[sends]
        found = paths if found is None else found.with_rows(paths)
    return found


def _block(first: NDArray[np.int64], length: int, skip: int = 0) -> NDArray[np.int64]:
    """Rows of `length` consecutive numbers, each without its first `skip`."""
    return first[:, None] + np.arange(skip, length)
