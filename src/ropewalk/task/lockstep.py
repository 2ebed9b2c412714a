"""Rounds of transfers in lockstep, kept rolled up: what a collective program becomes on real hosts.

A *slot* is one rank in one lane. In a round the arrows go from slot to slot; a slot sends in a round when everything
that it sent and received in earlier rounds is done. Rounds that repeat share their arrows, so the 32,766 rounds of a
ring of 16,384 hosts are one set of arrows and one array of numbers. `unroll` writes the rounds out as a task graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives import Pattern, Program
from ropewalk.collectives.every_pair import EveryPair
from ropewalk.errors import GraphError
from ropewalk.ragged import ranges
from ropewalk.task.graph import Kind, TaskGraph, make_graph

MOST_TASKS = 2**31 - 1
"""Task numbers are 32-bit."""


@dataclass(frozen=True, eq=False)
class Arrows:
    """The transfers of one round: slot `src_slot[i]` on host `src_host[i]` sends `size_bytes[i]`.

    They are the sends of a pattern between ranks, and are written out as transfers between hosts when they are read.
    """

    pattern: Pattern
    lanes: int
    host: NDArray[np.int32]
    """The host on which each rank runs."""
    chunk_bytes: float

    @property
    def transfers(self) -> int:
        return self.pattern.sends

    @cached_property
    def src_slot(self) -> NDArray[np.int64]:
        return self.pattern.src.astype(np.int64) * self.lanes + self.pattern.lane

    @cached_property
    def dst_slot(self) -> NDArray[np.int64]:
        return self.pattern.dst.astype(np.int64) * self.lanes + self.pattern.lane

    @cached_property
    def src_host(self) -> NDArray[np.int32]:
        return self.host[self.pattern.src]

    @cached_property
    def dst_host(self) -> NDArray[np.int32]:
        return self.host[self.pattern.dst]

    @cached_property
    def size_bytes(self) -> NDArray[np.float64]:
        return self.pattern.chunks.astype(np.float64) * self.chunk_bytes

    def are_every_pair_of(self, hosts: int) -> bool:
        """Every one of so many hosts sends `chunk_bytes` to every other."""
        return isinstance(self.pattern, EveryPair) and np.array_equal(np.sort(self.host), np.arange(hosts))


@dataclass(frozen=True, eq=False)
class Lockstep:
    """Rounds over `slots` slots: round r uses `arrows[order[r]]`; each transfer starts up in `start_up_s`."""

    name: str
    slots: int
    arrows: tuple[Arrows, ...]
    order: NDArray[np.int64]
    start_up_s: float = 0.0

    @property
    def rounds(self) -> int:
        return len(self.order)

    @property
    def transfers(self) -> int:
        return int(sum(self.arrows[kind].transfers for kind in self.order))

    def is_every_pair_of(self, hosts: int) -> bool:
        """In every round each of so many hosts sends the same bytes to every other."""
        return bool(self.arrows) and all(arrows.are_every_pair_of(hosts) for arrows in self.arrows)

    def repeats(self) -> NDArray[np.int64]:
        """How often each set of arrows is used."""
        return np.bincount(self.order, minlength=len(self.arrows))

    def all_pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Source and destination hosts of all arrows, for routing."""
        if not self.arrows:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        return (
            np.concatenate([arrows.src_host for arrows in self.arrows]),
            np.concatenate([arrows.dst_host for arrows in self.arrows]),
        )


def lockstep(
    program: Program, size_bytes: float, start_up_s: float = 0.0, hosts: NDArray[np.int32] | None = None
) -> Lockstep:
    """Put a program to work on a buffer of `size_bytes`; rank i runs on `hosts[i]` (host i where not given)."""
    host = np.arange(program.ranks, dtype=np.int32) if hosts is None else hosts
    if len(host) < program.ranks:
        raise GraphError(f"{program.name} has {program.ranks} ranks, but only {len(host)} hosts were given")
    lanes = program.lanes
    chunk_bytes = size_bytes / program.buffer_chunks
    arrows = tuple(Arrows(pattern, lanes, host[: program.ranks], chunk_bytes) for pattern in program.patterns)
    return Lockstep(program.name, program.ranks * lanes, arrows, program.pattern_of_round, start_up_s)


def unroll(rolled: Lockstep) -> TaskGraph:
    """Write all rounds out as a task graph."""
    if rolled.transfers > MOST_TASKS:
        raise GraphError(
            f"{rolled.name}: {rolled.transfers:.3g} transfers do not fit in one task graph: simulate with symmetry on"
        )
    steps = write_out(rolled.slots, [(arrows.src_slot, arrows.dst_slot) for arrows in rolled.arrows], rolled.order)
    src, dst = rolled.all_pairs()
    size = np.concatenate([arrows.size_bytes for arrows in rolled.arrows])
    sends = steps.arrow >= 0
    return make_graph(
        np.where(sends, Kind.TRANSFER, Kind.MARKER),
        np.where(sends, src[steps.arrow], -1),
        np.where(sends, dst[steps.arrow], -1),
        np.where(sends, size[steps.arrow], 0.0),
        steps.dep_start,
        steps.dep,
        start_up=np.where(sends, rolled.start_up_s, 0.0),
        label=(~sends).astype(np.int32),
        labels=(rolled.name, "join"),
    )


@dataclass(frozen=True)
class Steps:
    """Rounds written out: task i is arrow `arrow[i]` (counted through all sets of arrows) or a marker (-1)."""

    arrow: NDArray[np.int64]
    dep_start: NDArray[np.int64]
    dep: NDArray[np.int64]


Ends = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Source and destination slot of every arrow of one set."""


def write_out(slots: int, ends: list[Ends], order: NDArray[np.int64]) -> Steps:
    """The dependencies of rounds in lockstep.

    A transfer waits for what its sender did since it last sent: for all those transfers directly, or through one
    marker where that needs fewer dependencies (a mesh round would otherwise have N·N² of them).
    """
    if not len(order):
        return Steps(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))
    first_arrow = np.concatenate([[0], np.cumsum([len(src) for src, _ in ends])])
    history = _History(slots, ends)
    blocks: list[_Block] = []
    first_task = 0
    at = 0
    while at < len(order):
        kind = int(order[at])
        block = _round(ends[kind][0], int(first_arrow[kind]), history, first_task)
        run = 1
        if at > 0 and order[at - 1] == kind:
            # From its second round on, a run repeats itself a fixed number of tasks further on.
            while at + run < len(order) and order[at + run] == kind:
                run += 1
        tasks = len(block.arrow)
        for number in range(run):
            history.add(kind, first_task + (number + 1) * tasks - len(ends[kind][0]))
        blocks.append(_repeated(block, run))
        first_task += run * tasks
        at += run
    deps = np.concatenate([block.deps for block in blocks])
    return Steps(
        np.concatenate([block.arrow for block in blocks]),
        np.concatenate([[0], np.cumsum(deps)]),
        np.concatenate([block.dep for block in blocks]),
    )


class _History:
    """What every slot has taken part in since the last round in which it sent, that round included."""

    def __init__(self, slots: int, ends: list[Ends]) -> None:
        self.touching = [_transfers_of_slots(src, dst, slots) for src, dst in ends]
        self.senders = [np.unique(src) for src, _ in ends]
        self.receivers_only = [np.setdiff1d(dst, src) for src, dst in ends]
        self.depth = np.zeros(slots, np.int64)
        # Layer d holds the d-th of these rounds of each slot: (arrows used, first transfer).
        self.layers: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, kind: int, first_transfer: int) -> None:
        self.depth[self.senders[kind]] = 0
        for slots in (self.senders[kind], self.receivers_only[kind]):
            if not len(slots):
                continue
            for depth in range(int(self.depth[slots].max()) + 1):
                if depth == len(self.layers):
                    empty = np.zeros(len(self.depth), np.int64)
                    self.layers.append((empty - 1, empty))
                here = slots[self.depth[slots] == depth]
                self.layers[depth][0][here], self.layers[depth][1][here] = kind, first_transfer
            self.depth[slots] += 1

    def of(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each of the slots, as CSR, the tasks that its next transfer waits for."""
        parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
        for depth in range(int(self.depth[slots].max(initial=0))):
            kinds, first = self.layers[depth]
            for kind, (start, transfer) in enumerate(self.touching):
                mine = np.flatnonzero((self.depth[slots] > depth) & (kinds[slots] == kind))
                if len(mine):
                    slot = slots[mine]
                    count = start[slot + 1] - start[slot]
                    tasks = transfer[ranges(start[slot], count)] + np.repeat(first[slot], count)
                    parts.append((mine, count, tasks))
        waits = np.zeros(len(slots), np.int64)
        for mine, count, _ in parts:
            waits[mine] += count
        begin = np.concatenate([[0], np.cumsum(waits)])
        waited = np.zeros(begin[-1], np.int64)
        filled = begin[:-1].copy()
        for mine, count, tasks in parts:
            waited[ranges(filled[mine], count)] = tasks
            filled[mine] += count
        return begin, waited


@dataclass(frozen=True)
class _Block:
    """Consecutive tasks: the arrow of each (-1 for markers), how many tasks it waits for, and which."""

    arrow: NDArray[np.int64]
    deps: NDArray[np.int64]
    dep: NDArray[np.int64]


def _round(src_slot: NDArray[np.int64], first_arrow: int, history: _History, first_task: int) -> _Block:
    sender, sends = np.unique(src_slot, return_counts=True)
    start, waited = history.of(sender)
    waits = np.diff(start)
    marked = waits * sends > waits + sends
    marker_of = np.cumsum(marked) - 1 + first_task

    number = np.searchsorted(sender, src_slot)
    through_marker = marked[number]
    deps = np.where(through_marker, 1, waits[number])
    dep = waited[ranges(start[number], deps)]
    dep[(np.cumsum(deps) - deps)[through_marker]] = marker_of[number[through_marker]]
    markers = np.flatnonzero(marked)
    return _Block(
        np.concatenate([np.full(len(markers), -1), np.arange(len(src_slot)) + first_arrow]),
        np.concatenate([waits[markers], deps]),
        np.concatenate([waited[ranges(start[markers], waits[markers])], dep]),
    )


def _transfers_of_slots(
    src: NDArray[np.int64], dst: NDArray[np.int64], slots: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """CSR by slot of the transfers that it sends or receives."""
    slot = np.concatenate([src, dst])
    order = np.argsort(slot, kind="stable")
    start = np.zeros(slots + 1, np.int64)
    np.cumsum(np.bincount(slot, minlength=slots), out=start[1:])
    return start, np.tile(np.arange(len(src)), 2)[order]


def _repeated(block: _Block, times: int) -> _Block:
    shift = np.repeat(np.arange(times) * len(block.arrow), len(block.dep))
    return _Block(np.tile(block.arrow, times), np.tile(block.deps, times), np.tile(block.dep, times) + shift)
