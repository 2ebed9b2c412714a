"""Everything that the ranks of a job know, as arrays: tasks, messages on connections, chunks of data, timers.

A rank in one lane, a *slot*, goes through its rounds in order: what it receives in a round is added when everything
that it sends and receives in that round is done. So no data changes while it is being sent, and results do not depend
on the order of arrivals.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints, Ints32
from ropewalk.lab.job import ITEM_BYTES, Data, LabJob
from ropewalk.routing.routes import starts
from ropewalk.task import TaskGraph

MOST_NAMED = 5
MOST_STALLS = 4096
LEFT, READY_FIRST, READY_LAST, TIMERS, SEQUENCE, STALLS = range(6)
"""What the counts of a run are."""
_FLOATS = {"seconds", "start_up", "start", "end", "timer_s", "heard", "stall_since", "stall_until"}


class RankState(NamedTuple):
    """The arrays of a run; what the loop changes is made anew for each."""

    # Tasks.
    kind: Ints
    seconds: Floats
    start_up: Floats
    priority: Ints
    engine: Ints
    waits: Ints
    after_first: Ints
    after: Ints
    start: Floats
    end: Floats
    # Messages: parts of a transfer, in the order in which connections carry them.
    part_first: Ints
    part_connection: Ints
    part_bytes: Ints
    part_offset: Ints
    part_task: Ints
    part_next: Ints
    parts_left: Ints
    # Connections.
    out_socket: Ints
    in_socket: Ints
    sending: Ints
    receiving: Ints
    last: Ints
    sent: Ints
    got: Ints
    watched: Ints
    heard: Floats
    stall_task: Ints
    stall_since: Floats
    stall_until: Floats
    # Data: what a transfer sends as pieces of memory, what it changes as chunks.
    piece_first: Ints
    piece_at: Ints
    piece_bytes: Ints
    chunk_first: Ints
    chunk: Ints
    chunk_at: Ints
    chunk_items: Ints
    adds: Ints
    held: Ints32
    present: Ints
    staged: Ints
    # Rounds of slots.
    turn_of_sender: Ints
    turn_of_receiver: Ints
    open: Ints
    next_turn: Ints
    receipt_first: Ints
    receipt: Ints
    # Streams that compute, timers, and tasks that may begin.
    busy: Ints
    queue: Ints
    behind: Ints
    timer_s: Floats
    timer_order: Ints
    timer_task: Ints
    ready: Ints
    counts: Ints


class ChunkMemory:
    """Where every rank has every chunk that it ever holds, and what is in it."""

    def __init__(self, data: tuple[Data, ...]) -> None:
        self.data = data
        self.place: list[dict[tuple[int, int], int]] = []
        """By group: the number of a (rank, chunk)."""
        self.at: list[int] = []
        """Of each number: where its chunk begins, in whole numbers."""
        self.items: list[int] = []
        end = 0
        for one in data:
            held = {(rank, chunk) for rank, chunk in np.argwhere(one.has | one.gets).tolist()}
            for carried in one.carried.values():
                held |= {(slot // one.lanes, chunk) for slot in (carried.src_slot, carried.dst_slot)
                         for chunk in carried.chunks}  # fmt: skip
            self.place.append({key: len(self.at) + number for number, key in enumerate(sorted(held))})
            for _ in held:
                self.at.append(end)
                self.items.append(one.chunk_items)
                end += one.chunk_items
        self.size = end

    def filled(self) -> tuple[Ints32, Ints]:
        """What ranks bring, and whether a rank has something of a chunk yet."""
        held, present = np.zeros(max(self.size, 1), np.int32), np.zeros(len(self.at) + 1, np.int64)
        for data, place in zip(self.data, self.place, strict=True):
            for rank, chunk in np.argwhere(data.has).tolist():
                number = place[rank, chunk]
                present[number] = 1
                held[self.at[number] : self.at[number] + data.chunk_items] = brought(data, chunk, rank + 1)
        return held, present

    def wrong(self, held: Ints32, present: Ints) -> list[str]:
        """Ranks that do not end with the sum of exactly what was brought, the first few by name."""
        found = []
        for data, place in zip(self.data, self.place, strict=True):
            factor = data.has.T.astype(np.int64) @ np.arange(1, data.ranks + 1)
            for rank, chunk in np.argwhere(data.gets).tolist():
                number = place[rank, chunk]
                seen = held[self.at[number] : self.at[number] + data.chunk_items]
                if not present[number] or not np.array_equal(seen, brought(data, chunk, int(factor[chunk]))):
                    found.append(f"rank {rank} has a wrong result for chunk {chunk}")
        return found[:MOST_NAMED]


def brought(data: Data, chunk: int, factor: int) -> Ints32:
    """What a rank brings to a chunk is a pattern times its number, so the sum is the pattern times a sum."""
    pattern = np.arange(data.chunk_items, dtype=np.int32) % 97 + 1
    return np.asarray((pattern + chunk % 89) * np.int32(factor), np.int32)


def state_of(job: LabJob, memory: ChunkMemory, outgoing: list[int], incoming: list[int]) -> RankState:
    """The ranks of a job before they begin, with the sockets of its connections."""
    graph, tasks, connections = job.graph, job.graph.tasks, len(job.connections)
    after = _after(job)
    engines, engine = np.unique(np.stack([graph.place, graph.stream], axis=1), axis=0, return_inverse=True)
    held, present = memory.filled()
    whole: dict[str, Any] = {
        "kind": graph.kind, "seconds": graph.amount.astype(np.float64), "start_up": graph.start_up.astype(np.float64),
        "priority": graph.priority, "engine": engine.reshape(-1), "waits": np.diff(graph.dep_start),
        **after, "start": np.full(tasks, -1.0), "end": np.full(tasks, -1.0),
        **_parts(job), "out_socket": outgoing, "in_socket": incoming,
        "sending": np.full(connections, -1), "receiving": np.full(connections, -1), "last": np.full(connections, -1),
        "sent": np.zeros(connections), "got": np.zeros(connections), "watched": np.zeros(connections),
        "heard": np.zeros(connections), "stall_task": np.zeros(MOST_STALLS), "stall_since": np.zeros(MOST_STALLS),
        "stall_until": np.zeros(MOST_STALLS),
        **_data(job, memory), "held": held, "present": present, "staged": np.zeros(tasks), **_rounds(job),
        "busy": np.zeros(len(engines)), "queue": np.full(len(engines), -1), "behind": np.full(tasks, -1),
        "timer_s": np.zeros(tasks + 1), "timer_order": np.zeros(tasks + 1), "timer_task": np.zeros(tasks + 1),
        **_ready(job),
    }  # fmt: skip
    kinds = {name: np.float64 if name in _FLOATS else np.int32 if name == "held" else np.int64 for name in whole}
    columns: dict[str, Any] = {name: np.ascontiguousarray(whole[name], kinds[name]) for name in RankState._fields}
    return RankState(**columns)


def fresh(state: RankState) -> RankState:
    """The same before it begins, for one run."""
    columns: list[Any] = [column.copy() for column in state]
    return RankState(*columns)


def longest_chain(graph: TaskGraph) -> int:
    """Tasks of the longest chain in which each waits for the one before.

    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> first = sketch.compute(0, 1.0)
    >>> second = sketch.compute(1, 1.0, after=[first])
    >>> _ = sketch.compute(0, 1.0, after=[first, second])
    >>> longest_chain(sketch.graph())
    3
    """
    later, waits = dict[int, list[int]](), np.diff(graph.dep_start).tolist()
    for task, before in zip(np.repeat(np.arange(graph.tasks), waits).tolist(), graph.dep.tolist(), strict=True):
        later.setdefault(before, []).append(task)
    wave, length = [task for task, count in enumerate(waits) if not count], 0
    while wave:
        length, done, wave = length + 1, wave, []
        for task in done:
            for after in later.get(task, ()):
                waits[after] -= 1
                if not waits[after]:
                    wave.append(after)
    return length


def _ready(job: LabJob) -> dict[str, Any]:
    """What may begin at once, in the order of connections, in which no two hosts begin with the same third."""
    waits, ready = np.diff(job.graph.dep_start), np.zeros(job.graph.tasks + 1)
    first = sorted(np.flatnonzero(waits == 0).tolist(), key=lambda task: job.parts.get(task, ((-1, 0),))[0][0])
    ready[: len(first)] = first
    counts = np.zeros(6)
    counts[LEFT], counts[READY_LAST] = job.graph.tasks, len(first)
    return {"ready": ready, "counts": counts}


def _after(job: LabJob) -> dict[str, Any]:
    """What may begin when a task is done."""
    graph = job.graph
    later = np.repeat(np.arange(graph.tasks), np.diff(graph.dep_start))
    order = np.argsort(graph.dep, kind="stable")
    return {"after_first": starts(np.bincount(graph.dep, minlength=graph.tasks)), "after": later[order]}


def _parts(job: LabJob) -> dict[str, Any]:
    rows = [job.parts.get(task, ()) for task in range(job.graph.tasks)]
    size = [max(one, 1) for row in rows for _, one in row]  # nothing at all could not be seen to arrive
    offset = [sum(one for _, one in row[:at]) for row in rows for at in range(len(row))]
    return {
        "part_first": starts([len(row) for row in rows]),
        "part_connection": [one for row in rows for one, _ in row],
        "part_bytes": size,
        "part_offset": offset,
        "part_task": np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
        "part_next": np.full(len(size), -1),
        "parts_left": [len(row) for row in rows],
    }


def _data(job: LabJob, memory: ChunkMemory) -> dict[str, Any]:
    """Pieces of memory that transfers send, neighbours joined; and the chunks that they change."""
    pieces: list[list[tuple[int, int]]] = [[] for _ in range(job.graph.tasks)]
    chunks: list[list[int]] = [[] for _ in range(job.graph.tasks)]
    items, adds = np.zeros(job.graph.tasks), np.zeros(job.graph.tasks)
    for data, place in zip(job.data, memory.place, strict=True):
        for task, one in data.carried.items():
            items[task], adds[task] = data.chunk_items, one.adds
            for chunk in one.chunks:
                begin, size = memory.at[place[one.src_slot // data.lanes, chunk]], data.chunk_items
                if pieces[task] and sum(pieces[task][-1]) == begin:
                    begin, size = pieces[task][-1][0], pieces[task].pop()[1] + size
                pieces[task].append((begin, size))
                chunks[task].append(place[one.dst_slot // data.lanes, chunk])
    flat = [piece for row in pieces for piece in row]
    return {
        "piece_first": starts([len(row) for row in pieces]),
        "piece_at": [ITEM_BYTES * at for at, _ in flat],
        "piece_bytes": [ITEM_BYTES * size for _, size in flat],
        "chunk_first": starts([len(row) for row in chunks]),
        "chunk": [one for row in chunks for one in row],
        "chunk_at": memory.at or [0],
        "chunk_items": items,
        "adds": adds,
    }


def _rounds(job: LabJob) -> dict[str, Any]:
    """A turn is a slot in one of its rounds: it knows the next one, and what it receives in the order of tasks."""
    number: dict[tuple[int, int, int], int] = {}
    sender, receiver = np.full(job.graph.tasks, -1), np.full(job.graph.tasks, -1)
    receipts: dict[int, list[int]] = defaultdict(list)
    every = sorted(
        (group, slot, one.round)
        for group, data in enumerate(job.data)
        for one in data.carried.values()
        for slot in (one.src_slot, one.dst_slot)
    )
    for key in every:
        number.setdefault(key, len(number))
    open_transfers = np.zeros(len(number))
    for group, data in enumerate(job.data):
        for task, one in sorted(data.carried.items()):
            sender[task], receiver[task] = (
                number[group, one.src_slot, one.round],
                number[group, one.dst_slot, one.round],
            )
            open_transfers[[sender[task], receiver[task]]] += 1
            receipts[int(receiver[task])].append(task)
    keys = list(number)
    follows = [at + 1 if at + 1 < len(keys) and keys[at + 1][:2] == keys[at][:2] else -1 for at in range(len(keys))]
    # Those behind an earlier turn of their slot cannot close before it does.
    blocked = [int(at > 0 and keys[at - 1][:2] == keys[at][:2]) for at in range(len(keys))]
    return {
        "turn_of_sender": sender,
        "turn_of_receiver": receiver,
        "open": open_transfers + np.array(blocked, np.float64),
        "next_turn": follows,
        "receipt_first": starts([len(receipts[at]) for at in range(len(keys))]),
        "receipt": [task for at in range(len(keys)) for task in receipts[at]],
    }
