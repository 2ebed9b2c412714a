"""What the ranks of a lab are told to do: a task graph over connections, and the data of a collective on it.

A `LabJob` is plain values that are sent to the process of the ranks. Every transfer has a task of its own in the graph,
so what the clock sees of it stands beside what the simulator says. A transfer over several paths is cut by their
shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.program import Program
from ropewalk.errors import LabError
from ropewalk.lab.forwarding import path_numbers
from ropewalk.routing import Routes
from ropewalk.task import Lockstep, TaskGraph, TaskKind, unroll
from ropewalk.task.compose import parallel

ITEM_BYTES = 4
"""Sums are of whole numbers of 32 bits: exact in any order."""
MOST_CONNECTIONS = 8192
PORT = 5000
FIRST_PORT = 20_000
"""Connection n is made from port 20000 + n, so that its path under a hash can be asked for before."""
Part = tuple[int, int]
"""A connection, and the bytes that it carries of a transfer."""


@dataclass(frozen=True)
class Connection:
    """Bytes of one lane between two hosts, over one of their paths."""

    src: int
    dst: int
    path: int


@dataclass(frozen=True, eq=False)
class Carried:
    """What a transfer of a collective does to data: in its round, chunks go from one slot of a rank to another's."""

    round: int
    src_slot: int
    dst_slot: int
    adds: bool
    chunks: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of a collective, by which its result is checked."""

    ranks: int
    lanes: int
    chunk_items: int
    has: NDArray[np.bool_]
    """Which ranks bring something to which chunk."""
    gets: NDArray[np.bool_]
    """Which ranks must end with the sum of it."""
    carried: dict[int, Carried]
    """By task, in the order of tasks."""


@dataclass(frozen=True, eq=False)
class LabJob:
    """A task graph to be run for real."""

    graph: TaskGraph
    connections: tuple[Connection, ...]
    parts: dict[int, tuple[Part, ...]]
    """By task."""
    congestion: str
    data: tuple[Data, ...] = ()
    """Of every group that runs a collective."""

    @property
    def sent_bytes(self) -> int:
        return sum(size for parts in self.parts.values() for _, size in parts)


@dataclass(frozen=True, eq=False)
class LabWork:
    """A job with its name, the routes it takes, and what its seconds mean outside the lab."""

    what: str
    details: dict[str, Any]
    """For files: what it was made from."""
    job: LabJob
    routes: Routes
    brings_routes: bool
    """Whether these routes are its own, rather than those of the lab."""
    real_seconds: float
    """Seconds on the fabric for one second of the lab."""


def job_of_graph(graph: TaskGraph, routes: Routes, lane: dict[int, int], congestion: str) -> LabJob:
    """Any task graph as a job; transfers of one pair of hosts and one lane share a connection, where they queue."""
    connections, parts = _connected(graph, routes, lane)
    return LabJob(graph, connections, parts, congestion)


def whole_size(program: Program, size_bytes: float) -> int:
    """The buffer of a rank with chunks of whole numbers: what was asked for, or a little more."""
    items = max(1, -(-int(size_bytes) // (program.buffer_chunks * ITEM_BYTES)))
    return items * ITEM_BYTES * program.buffer_chunks


def job_of_programs(
    programs: Sequence[tuple[Program, Lockstep]], routes: Routes, *, congestion: str, shared: bool = False
) -> LabJob:
    """Collectives of several groups at once; with `shared`, all lanes between two hosts share a connection."""
    graphs = [unroll(rounds) for _, rounds in programs]
    first = np.cumsum([0, *(graph.tasks for graph in graphs)]).tolist()
    data, lane = [], dict[int, int]()
    for (program, rounds), graph, offset in zip(programs, graphs, first, strict=False):
        carried = _carried(program, graph, offset)
        lane |= {task: 0 if shared else one.src_slot % program.lanes for task, one in carried.items()}
        every = np.arange(program.chunks)
        items = round(rounds.arrows[0].chunk_bytes) // ITEM_BYTES
        data.append(Data(program.ranks, program.lanes, items, program.pre(every), program.post(every), carried))
    return replace(job_of_graph(parallel(*graphs), routes, lane, congestion), data=tuple(data))


def _carried(program: Program, graph: TaskGraph, offset: int) -> dict[int, Carried]:
    """Transfers of the unrolled rounds stand in the order of rounds, and of arrows inside them."""
    tasks = iter((np.flatnonzero(graph.kind == TaskKind.TRANSFER) + offset).tolist())
    found: dict[int, Carried] = {}
    for number, step in enumerate(program.rounds):
        pattern, (start, ids) = step.pattern, step.chunks()
        src, dst = (end.astype(np.int64) * program.lanes + pattern.lane for end in (pattern.src, pattern.dst))
        for arrow in range(pattern.sends):
            chunks = tuple(ids[start[arrow] : start[arrow + 1]].tolist())
            adds = bool(pattern.reduces[arrow])
            found[next(tasks)] = Carried(number, int(src[arrow]), int(dst[arrow]), adds, chunks)
    return found


def _connected(
    graph: TaskGraph, routes: Routes, lane: dict[int, int]
) -> tuple[tuple[Connection, ...], dict[int, tuple[Part, ...]]]:
    """A connection for each pair of hosts, path and lane that is used, and the parts of every transfer on them."""
    transfers = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    rows = routes.rows_of(graph, transfers) if len(transfers) else np.zeros(0, np.int64)
    path_number = path_numbers(routes).tolist()
    pieces = {}
    for task, row in zip(transfers.tolist(), rows.tolist(), strict=True):
        src, dst = int(graph.place[task]), int(graph.peer[task])
        share = routes.share[routes.path_start[row] : routes.path_start[row + 1]]
        ends = np.rint(np.cumsum(share) * graph.amount[task]).astype(np.int64)
        sizes = np.diff(ends, prepend=0).tolist()
        pieces[task] = [
            ((src, dst, path_number[path], lane.get(task, 0)), size)
            for path, size in enumerate(sizes, int(routes.path_start[row]))
            if size or len(sizes) == 1
        ]
    # Where flows take turns, they do so in this order: every host begins with the next one, so no two meet at a third.
    keys = sorted({key for some in pieces.values() for key, _ in some}, key=partial(_turn, routes.fabric.hosts))
    if len(keys) > MOST_CONNECTIONS:
        raise LabError(f"{len(keys)} connections are more than the {MOST_CONNECTIONS} of a lab: run on fewer hosts")
    number = {key: at for at, key in enumerate(keys)}
    parts = {task: tuple((number[key], size) for key, size in some) for task, some in pieces.items()}
    return tuple(Connection(src, dst, path) for src, dst, path, _ in keys), parts


def _turn(hosts: int, key: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    src, dst, path, lane = key
    return (dst - src) % hosts, src, path, lane
