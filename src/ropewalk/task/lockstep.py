"""Rounds of transfers in lockstep, kept rolled up: what a collective program becomes on real hosts.

A *slot* is one rank in one lane. In a round the arrows go from slot to slot; a slot sends in a round when everything
that it sent and received in earlier rounds is done. Rounds that repeat share their arrows, so the 32,766 rounds of a
ring of 16,384 hosts are one set of arrows and one array of numbers. `unroll` writes the rounds out as a task graph.

Where adding takes time, each send that reduces is followed by an add: a task on the adder of the receiving rank, which
adds one arrival after the other beside all sends. Who waits for what it received waits for the add.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives import Pattern, Program
from ropewalk.collectives.every_pair import EveryPair
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.errors import GraphError
from ropewalk.ragged import ranges
from ropewalk.task.graph import TaskGraph, TaskKind, make_graph

MOST_TASKS = 2**31 - 1
"""Task numbers are 32-bit."""
ADDER = np.iinfo(np.int16).max
"""The stream of a GPU on which reductions are added up, beside those that compute."""


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

    @property
    def added_by_each(self) -> float:
        """Bytes of one arrow that its receiver adds, where all ranks send to all others alike."""
        return self.chunk_bytes if isinstance(self.pattern, EveryPair) and self.pattern.adds else 0.0

    def are_every_pair_of(self, hosts: int) -> bool:
        """Every one of so many hosts sends `chunk_bytes` to every other."""
        return isinstance(self.pattern, EveryPair) and np.array_equal(np.sort(self.host), np.arange(hosts))


@dataclass(frozen=True, eq=False)
class Lockstep:
    """Rounds over `slots` slots: round r uses `arrows[order[r]]`; each transfer starts up in `start_up_s`.

    What sends reduce is added up by the `mixer` of the rank that receives it.
    """

    name: str
    slots: int
    arrows: tuple[Arrows, ...]
    order: NDArray[np.int64]
    start_up_s: float = 0.0
    mixer: Mixer = FREE

    def added_s(self) -> NDArray[np.float64]:
        """Seconds of adding that each arrow of all sets leaves to its receiver."""
        each = [np.where(arrows.pattern.reduces, arrows.size_bytes, 0.0) for arrows in self.arrows]
        return np.concatenate(each or [np.zeros(0)]) / self.mixer.rate

    @property
    def rounds(self) -> int:
        return len(self.order)

    @property
    def transfers(self) -> int:
        return int(sum(self.arrows[kind].transfers for kind in self.order))

    @property
    def shares_adders(self) -> bool:
        """Do several slots of a rank take turns at its adder? Slots that are alike may then be served apart."""
        return not self.mixer.free and any(arrows.lanes > 1 for arrows in self.arrows)

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
    program: Program, size_bytes: float, start_up_s: float = 0.0, hosts: NDArray[np.int32] | None = None,
    mixer: Mixer = FREE,
) -> Lockstep:  # fmt: skip
    """Put a program to work on a buffer of `size_bytes`; rank i runs on `hosts[i]` (host i where not given)."""
    host = np.arange(program.ranks, dtype=np.int32) if hosts is None else hosts
    if len(host) < program.ranks:
        raise GraphError(f"{program.name} has {program.ranks} ranks, but only {len(host)} hosts were given")
    lanes = program.lanes
    chunk_bytes = size_bytes / program.buffer_chunks
    arrows = tuple(Arrows(pattern, lanes, host[: program.ranks], chunk_bytes) for pattern in program.patterns)
    return Lockstep(program.name, program.ranks * lanes, arrows, program.pattern_of_round, start_up_s, mixer)


def unroll(rolled: Lockstep) -> TaskGraph:
    """Write all rounds out as a task graph."""
    if rolled.transfers > MOST_TASKS:
        raise GraphError(
            f"{rolled.name}: {rolled.transfers:.3g} transfers do not fit in one task graph: simulate with symmetry on"
        )
    ends, added_s = [(arrows.src_slot, arrows.dst_slot) for arrows in rolled.arrows], rolled.added_s()
    steps = write_out(rolled.slots, ends, rolled.order, added_s > 0)
    src, dst = rolled.all_pairs()
    size = np.concatenate([arrows.size_bytes for arrows in rolled.arrows])
    sends, adds = steps.sends, steps.adds
    return make_graph(
        steps.kind,
        np.where(sends, src[steps.arrow], np.where(adds, dst[steps.arrow], -1)),
        np.where(sends, dst[steps.arrow], -1),
        np.where(sends, size[steps.arrow], np.where(adds, added_s[steps.arrow], 0.0)),
        steps.dep_start,
        steps.dep,
        stream=np.where(adds, ADDER, 0),
        start_up=np.where(sends, rolled.start_up_s, 0.0),
        label=np.where(sends, 0, np.where(adds, 2, 1)),
        labels=(rolled.name, "join", "add") if adds.any() else (rolled.name, "join"),
    )


@dataclass(frozen=True)
class Steps:
    """Rounds written out: task i sends or adds arrow `arrow[i]` (counted through all sets) or is a marker (-1)."""

    arrow: NDArray[np.int64]
    dep_start: NDArray[np.int64]
    dep: NDArray[np.int64]
    adds: NDArray[np.bool_]
    """Which tasks add what their arrow brought."""

    @property
    def sends(self) -> NDArray[np.bool_]:
        return (self.arrow >= 0) & ~self.adds

    @property
    def kind(self) -> NDArray[np.int8]:
        return np.where(self.sends, TaskKind.TRANSFER, np.where(self.adds, TaskKind.COMPUTE, TaskKind.MARKER)).astype(
            np.int8
        )


Ends = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Source and destination slot of every arrow of one set."""


def write_out(slots: int, ends: list[Ends], order: NDArray[np.int64], added: NDArray[np.bool_] | None = None) -> Steps:
    """The dependencies of rounds in lockstep.

    A transfer waits for what its sender did since it last sent: for all those transfers directly, or through one
    marker where that needs fewer dependencies (a mesh round would otherwise have N·N² of them). `added` says which
    arrows of all sets bring something that has to be added up.
    """
    if not len(order):
        return Steps(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))
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
    arrow, deps = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("arrow", "deps"))
    dep, dep_start = np.concatenate([block.dep for block in blocks]), np.concatenate([[0], np.cumsum(deps)])
    if added is None or not added.any():
        return Steps(arrow, dep_start, dep, np.zeros(len(arrow), bool))
    return _with_adds(np.concatenate([block.slot for block in blocks]), arrow, deps, dep, ends, added)


def _with_adds(
    slot: NDArray[np.int64], arrow: NDArray[np.int64], deps: NDArray[np.int64], dep: NDArray[np.int64],
    ends: list[Ends], added: NDArray[np.bool_],
) -> Steps:  # fmt: skip
    """Behind each send that reduces its add; whoever waits at the receiving slot waits for the add.

    `slot` is the slot on whose behalf a task waits. An add waits for its send alone: what arrives early is added early.
    """
    receiver = np.concatenate([dst for _, dst in ends])
    reduces = (arrow >= 0) & added[arrow]
    own = np.arange(len(arrow)) + np.cumsum(reduces) - reduces  # tasks that stood before it, and their adds
    at_receiver = reduces[dep] & (receiver[arrow[dep]] == np.repeat(slot, deps))
    tasks, add = len(arrow) + int(reduces.sum()), own[reduces] + 1
    all_deps, all_arrow = np.ones(tasks, np.int64), np.empty(tasks, np.int64)
    all_deps[own], all_arrow[own], all_arrow[add] = deps, arrow, arrow[reduces]
    adds = np.zeros(tasks, bool)
    adds[add] = True
    dep_start = np.concatenate([[0], np.cumsum(all_deps)])
    all_dep = np.empty(int(dep_start[-1]), np.int64)
    all_dep[ranges(dep_start[own], deps)] = own[dep] + at_receiver
    all_dep[dep_start[add]] = add - 1
    return Steps(all_arrow, dep_start, all_dep, adds)


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
            deep = np.flatnonzero(self.depth[slots] > depth)
            for kind in np.unique(kinds[slots[deep]]).tolist():
                start, transfer = self.touching[kind]
                mine = deep[kinds[slots[deep]] == kind]
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
    """Consecutive tasks: the arrow of each (-1 for markers), how many tasks it waits for, and which; for whom."""

    arrow: NDArray[np.int64]
    deps: NDArray[np.int64]
    dep: NDArray[np.int64]
    slot: NDArray[np.int64]


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
        np.concatenate([sender[markers], src_slot]),
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
    arrow, deps, dep, slot = (np.tile(column, times) for column in (block.arrow, block.deps, block.dep, block.slot))
    return _Block(arrow, deps, dep + shift, slot)
