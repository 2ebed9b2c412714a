"""What a collective takes on a healthy cluster: NCCL's latencies, and its bytes as they cross the simulated network.

A group that runs alone takes a start-up and so many seconds for each byte, so one simulation of each algorithm prices
it at all sizes and with all protocols. What every link carries of it is kept: it says which links can slow it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl import Algorithm, Communicator, Library, NcclRun, chosen
from ropewalk.collectives.nccl.embedded import rings_along_links
from ropewalk.expect.benchmarks import Benchmark
from ropewalk.fabric import Fabric
from ropewalk.hardware import Cluster
from ropewalk.routing import ROUTERS, Router, router_for
from ropewalk.sim import simulate
from ropewalk.task.expand import Expansion, use_of
from ropewalk.task.graph import TaskKind
from ropewalk.task.kinds import AlikeCollectives
from ropewalk.task.nccl import nccl_template, wires_of
from ropewalk.task.seating import GroupSeating, seat
from ropewalk.task.step import StepSketch
from ropewalk.task.template import Template

Groups = tuple[tuple[int, ...], ...]
"""GPUs of every communicator that runs at the same time, by their numbers in the cluster."""

LARGE = 1e9
MOST_SIMULATED = 300_000
"""Transfers up to which they are simulated; an exchange of more takes as long as its busiest link."""


@dataclass(frozen=True, eq=False)
class Wired:
    """Bytes of one algorithm on the network: seconds for a byte, and the bytes of every link for a byte."""

    seconds_per_byte: float
    load: NDArray[np.float64]


@dataclass(frozen=True)
class ExpectedTime:
    """The time of one size."""

    run: NcclRun
    latency_s: float
    bytes_s: float
    wired: Wired
    across: bool
    """Does it cross between servers?"""
    stretch: float
    """Bytes on the wires for one that the algorithm sends: what the protocol and the size of a tree add."""

    @property
    def seconds(self) -> float:
        return self.latency_s + self.bytes_s

    @property
    def name(self) -> str:
        return f"{self.run.algorithm}/{self.run.protocol}"

    def link_seconds(self, size_bytes: float, bandwidth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds that every link takes for its part of the bytes."""
        return size_bytes * self.stretch * self.wired.load / bandwidth


@dataclass(eq=False)
class CollectivePrices:
    """What collectives of any group take on one cluster with one set-up of the library."""

    cluster: Cluster
    library: Library
    fabric: Fabric = field(init=False)
    _wired: dict[tuple[str, Groups, Algorithm], Wired] = field(default_factory=dict, init=False)
    _seated: dict[tuple[int, ...], GroupSeating] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.fabric = self.cluster.fabric()

    @cached_property
    def server(self) -> NDArray[np.int32]:
        fabric = self.fabric
        return np.arange(fabric.hosts, dtype=np.int32) if fabric.server is None else fabric.server

    @cached_property
    def router(self) -> Router:
        return ROUTERS[router_for(self.fabric).name].make(0)

    @property
    def everyone(self) -> Groups:
        return (tuple(range(self.fabric.hosts)),)

    def communicator(self, group: tuple[int, ...]) -> Communicator:
        return self.library.communicator(self.seated(group).servers)

    def seated(self, group: tuple[int, ...]) -> GroupSeating:
        """How a group sits in servers."""
        if group not in self._seated:
            self._seated[group] = seat([np.array(group, np.int32)], self.server).seatings[0]
        return self._seated[group]

    def expected(self, benchmark: Benchmark, size_bytes: float, groups: Groups) -> ExpectedTime:
        """The run that NCCL chooses, on the network."""
        known = self.communicator(groups[0])
        what = chosen(benchmark.make, known, size_bytes)
        run = self.library.run(benchmark.make, known.servers, what)
        wired = self.wired(benchmark, groups, run.algorithm)
        network, ceiling = wired.seconds_per_byte / run.share, benchmark.factor(known.ranks) / run.ceiling
        bytes_s = size_bytes * max(network, ceiling) / what.part
        across = len(known.servers) > 1
        return ExpectedTime(run, run.latency_s, bytes_s, wired, across, 1 / (run.share * what.part))

    def wired(self, benchmark: Benchmark, groups: Groups, algorithm: Algorithm) -> Wired:
        """One algorithm on the network, simulated once."""
        key = (benchmark.name, groups, algorithm)
        self.prepare([(benchmark, groups)])
        if key not in self._wired:
            self._wired[key] = self._simulated(benchmark, groups, algorithm)
        return self._wired[key]

    def prepare(self, asked: Iterable[tuple[Benchmark, Groups]]) -> None:
        """Route all pairs that send to each other at once: alone, a pair takes as long as its slowest link."""
        pairs = [
            (one, groups) for one, groups in asked
            if one.make is Act.SEND and len(groups) == 1 and len(groups[0]) == 2
            and (one.name, groups, Algorithm.POINT_TO_POINT) not in self._wired
        ]  # fmt: skip
        if not pairs:
            return
        ends = np.array([groups[0] for _, groups in pairs], np.int32)
        src, dst = np.concatenate([ends, ends[:, ::-1]]).T
        routes = self.router(self.fabric, np.ascontiguousarray(src), np.ascontiguousarray(dst))
        there, back = routes.find(src, dst).reshape(2, -1)
        wires = wires_of(self.library, Algorithm.POINT_TO_POINT)
        carried = wires.wire_bytes(self.server[ends[:, 0]] == self.server[ends[:, 1]])
        for (one, groups), wire, *rows in zip(pairs, carried.tolist(), there.tolist(), back.tolist(), strict=True):
            load = np.zeros(self.fabric.links)
            for row in rows[:1] if one.one_way else rows:
                first, last = routes.path_start[row], routes.path_start[row + 1]
                for path in range(first, last):
                    load[routes.link[routes.link_start[path] : routes.link_start[path + 1]]] += (
                        wire * routes.share[path]
                    )
            wired = Wired(float((load / self.fabric.bandwidth).max()), load)
            self._wired[one.name, groups, Algorithm.POINT_TO_POINT] = wired

    def _simulated(self, benchmark: Benchmark, groups: Groups, algorithm: Algorithm) -> Wired:
        sketch, kinds = StepSketch(self.fabric.hosts), []
        for number, group in enumerate(groups):
            template, members = self._template(benchmark, group, algorithm)
            act = benchmark.make if benchmark.make.is_collective else Act.ALL_TO_ALL
            sketch.collective(act, group, LARGE)
            kinds.append(AlikeCollectives(np.array([number]), np.array([0]), members, template, act, algorithm))
        step = sketch.step()
        use = use_of(step, np.arange(self.fabric.hosts), self.fabric)
        expansion, routes = Expansion.of_kinds(step, use, kinds).routed(self.router)
        graph = expansion.graph
        task = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
        load = routes.link_bytes(routes.rows_of(graph, task), graph.amount[task]) / LARGE
        if len(task) > MOST_SIMULATED:
            return Wired(float((load / self.fabric.bandwidth).max()), load)
        latency = float((routes.latency()[routes.rows_of(graph, task)] + graph.start_up[task]).max())
        taken = simulate(graph, routes).makespan - latency
        return Wired(taken / LARGE, load)

    def _template(
        self, benchmark: Benchmark, group: tuple[int, ...], algorithm: Algorithm
    ) -> tuple[Template, NDArray[np.int32]]:
        """The transfers of a group, and its members in the order of the template."""
        seating = self.seated(group)
        wires = wires_of(self.library, algorithm)
        members = seating.members
        cycles = rings_along_links(self.fabric, members[0]) if len(seating.servers) == 1 else ()
        return nccl_template(benchmark.make, algorithm, seating.servers, wires, cycles), members
