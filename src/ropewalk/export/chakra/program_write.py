"""A collective program as Chakra execution traces: sends, receives and additions of every rank, in lockstep order.

ASTRA-sim runs such files as a custom collective (`all-reduce-implementation-custom` and its like in the system file;
ranks there are places in the communicator) or as a workload of their own, in which it starts one send of a rank at a
time. A node waits for what its rank did in earlier rounds of the same lane. Attributes that only ropewalk reads say
which chunks move, so that a trace can be proved to compute what the program promises (`replay`).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives import Program, Round
from ropewalk.collectives.mixer import FREE, Mixer
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import GraphError, InputError
from ropewalk.export.chakra import names
from ropewalk.export.chakra.chunk_runs import runs_text
from ropewalk.export.chakra.schema import Node, NodeType, Value, encode_metadata
from ropewalk.export.chakra.together import write_together
from ropewalk.export.chakra.wire import record
from ropewalk.export.chakra.write import et_path, group_path, rank_files

MOST_SENDS = 1 << 22
"""Sends that are written out node by node; a trace of more would fill disks."""
MOST_WAITS = 16
"""Nodes that a rank waits for one by one; of more, a joining node waits for all."""

Slot = tuple[int, int]
"""(rank, lane)."""


def write_program(schedule: Schedule, size_bytes: float, prefix: str | Path, *, mixer: Mixer = FREE) -> list[Path]:
    """Write PREFIX.<rank>.et for every rank and PREFIX.json; all files or none. Returns their paths."""
    target = Path(prefix)
    ranks = schedule.program.ranks
    left_over = [path for rank, path in rank_files(target) if rank >= ranks]
    if left_over:
        raise InputError(
            f"{left_over[0]} already exists and would be taken for a rank of this collective of {ranks} ranks: "
            "remove it or choose another prefix"
        )
    traces = program_traces(schedule, size_bytes, mixer=mixer)
    content = {et_path(target, rank): data for rank, data in enumerate(traces)}
    content[group_path(target)] = (json.dumps({"1": list(range(ranks))}) + "\n").encode()
    write_together(content)
    return list(content)


def program_traces(schedule: Schedule, size_bytes: float, *, mixer: Mixer = FREE) -> list[bytes]:
    """The file of every rank for a buffer of `size_bytes`.

    Adding what arrived takes as long as the `mixer` takes for it.
    """
    program = schedule.program
    if program.sends > MOST_SENDS:
        raise GraphError(
            f"{program.name} has {program.sends:.3g} sends, more than the {MOST_SENDS} that are written into a trace: "
            "use fewer segments or fewer ranks"
        )
    if not (math.isfinite(size_bytes) and size_bytes >= 0):
        raise GraphError(f"a collective of {size_bytes} bytes: give zero or more")
    draft = _Draft(program, size_bytes / program.buffer_chunks, mixer)
    for number, step in enumerate(program.rounds):
        draft.add_round(number, step)
    return draft.files()


class _Draft:
    """The nodes of every rank while rounds are added; numbers ascend in the order of rounds."""

    def __init__(self, program: Program, chunk_bytes: float, mixer: Mixer) -> None:
        self.program, self.chunk_bytes, self.mixer = program, chunk_bytes, mixer
        self.nodes: list[list[Node]] = [[] for _ in range(program.ranks)]
        self.tags: defaultdict[tuple[int, int], int] = defaultdict(int)
        # What a slot has done since the round in which it last sent, that round included: all else came before.
        self.since: defaultdict[Slot, list[int]] = defaultdict(list)

    def add_round(self, number: int, step: Round) -> None:
        pattern = step.pattern
        start, ids = step.chunks()
        # Sends of a round have no order; sorted, equal programs are equal files.
        order = np.lexsort((pattern.lane, pattern.dst, pattern.src))
        lanes, sources, targets = (column[order].tolist() for column in (pattern.lane, pattern.src, pattern.dst))
        users: defaultdict[Slot, int] = defaultdict(int)
        for lane, src, dst in zip(lanes, sources, targets, strict=True):
            users[src, lane] += 1
            users[dst, lane] += 1
        waits = {slot: self._waits(slot, count) for slot, count in users.items()}
        done: defaultdict[Slot, list[int]] = defaultdict(list)
        for at, lane, src, dst in zip(order.tolist(), lanes, sources, targets, strict=True):
            chunks = ids[start[at] : start[at + 1]]
            about = self._about(number, lane, src, dst, chunks)
            done[src, lane].append(self._add(src, NodeType.COMM_SEND, "send", waits[src, lane], about))
            done[dst, lane].append(
                self._arrival(dst, waits[dst, lane], about, bool(pattern.reduces[at]), len(chunks) * self.chunk_bytes)
            )
        senders = set(zip(sources, lanes, strict=True))
        for slot, nodes in done.items():
            self.since[slot] = nodes if slot in senders else self.since[slot] + nodes

    def _about(self, number: int, lane: int, src: int, dst: int, chunks: NDArray[np.int64]) -> dict[str, Value]:
        size = len(chunks) * self.chunk_bytes
        whole = max(round(size), int(size > 0))
        about: dict[str, Value] = {"is_cpu_op": False, "comm_size": whole}
        if whole != size:
            about[names.BYTES] = float(size)
        about |= {"comm_src": src, "comm_dst": dst, "comm_tag": self.tags[src, dst]}
        self.tags[src, dst] += 1
        return about | {names.ROUND: number, names.LANE: lane, names.CHUNKS: runs_text(chunks)}

    def _arrival(self, rank: int, waits: list[int], about: dict[str, Value], adds: bool, size: float) -> int:
        """A receive and, where the receiver adds, the addition; the number of the last of them."""
        more: dict[str, Value] = {names.IMPLIED: True, names.ADDS: True} if adds else {names.IMPLIED: True}
        received = self._add(rank, NodeType.COMM_RECV, "receive", waits, about | more)
        if not adds:
            return received
        seconds = self.mixer.seconds(size)
        extra: dict[str, Value] = {"is_cpu_op": False, names.ARRIVAL: received}
        if round(seconds * 1e6) / 1e6 != seconds:
            extra[names.SECONDS] = seconds
        return self._add(rank, NodeType.COMP, "add", [received, *waits], extra, round(seconds * 1e6))

    def _waits(self, slot: Slot, users: int) -> list[int]:
        """What nodes of a slot wait for; through one joining node where that takes fewer waits."""
        since = self.since[slot]
        if len(since) > MOST_WAITS or len(since) * users > len(since) + users:
            joined = self._add(slot[0], NodeType.COMP, "join", since, {"is_cpu_op": False})
            self.since[slot] = [joined]
        return self.since[slot]

    def _add(
        self, rank: int, kind: NodeType, name: str, waits: list[int], attributes: dict[str, Value], micros: int = 0
    ) -> int:
        number = len(self.nodes[rank]) + 1
        self.nodes[rank].append(Node(number, name, kind, [], sorted(waits), micros, dict(attributes)))
        return number

    def files(self) -> list[bytes]:
        program = self.program
        chunk = np.arange(program.chunks)
        holds, wants = program.pre(chunk), program.post(chunk)
        found = []
        for rank, nodes in enumerate(self.nodes):
            about: dict[str, Value] = {
                names.RANKS: program.ranks, names.PROGRAM: program.name, names.PROGRAM_CHUNKS: program.chunks,
                names.BUFFER_CHUNKS: program.buffer_chunks, names.HOLDS: runs_text(chunk[holds[rank]]),
                names.WANTS: runs_text(chunk[wants[rank]]),
            }  # fmt: skip
            # A simulator ends a collective when the last node of a rank ends, so every rank has one.
            written = nodes or [Node(1, "nothing to do", NodeType.COMP, attributes={"is_cpu_op": False})]
            found.append(b"".join([record(encode_metadata(about)), *(record(node.encoded()) for node in written)]))
        return found
