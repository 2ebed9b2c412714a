"""A plain event loop over a timetable, pass by pass: the contract of the clock's kernels without their tricks."""

from __future__ import annotations

import heapq

from ropewalk.timetable.clock import StageTimes
from ropewalk.timetable.table import Entry, Pass, Timetable

Key = tuple[Pass, int, int]


def played(table: Timetable, times: StageTimes, *, half_duplex: bool = False) -> dict[Key, tuple[float, float]]:
    """Start and end of every pass; events in the order of time, then of what they are, then of devices."""
    rows = [_slots(row) for row in table.rows()]
    at = [0] * len(rows)
    busy = [False] * len(rows)
    inputs: set[tuple[bool, int, int]] = set()  # forward?, piece that takes it in, micro-batch
    queues: dict[tuple[int, int], list[tuple[float, tuple[bool, int, int]]]] = {}
    carrying: set[tuple[int, int]] = set()
    events: list[tuple[float, int, int, object]] = []
    seen: dict[Key, tuple[float, float]] = {}
    now = 0.0

    def begin() -> None:
        for way, queue in sorted(queues.items()):
            if queue and way not in carrying:
                seconds, message = queue.pop(0)
                carrying.add(way)
                heapq.heappush(events, (now + seconds, 0, way[0] * len(rows) + way[1], (way, message)))
        for device, row in enumerate(rows):
            if busy[device] or at[device] == len(row):
                continue
            slot = row[at[device]]
            if all(_starts(entry, table) or _needs(entry) in inputs for entry in slot):
                busy[device] = True
                seconds = _seconds(slot, table, times)
                for entry in slot:
                    seen[entry.kind, entry.piece, entry.micro_batch] = (now, now + seconds)
                heapq.heappush(events, (now + seconds, 1, device, None))

    begin()
    while events:
        now = events[0][0]
        while events and events[0][0] == now:
            _, what, device, extra = heapq.heappop(events)
            if what == 0:
                way, message = extra  # type: ignore[misc]
                carrying.discard(way)
                inputs.add(message)
                continue
            busy[device] = False
            for entry in rows[device][at[device]]:
                _hand_on(entry, device, table, times, half_duplex, inputs, queues)
            at[device] += 1
        begin()
    assert at == [len(row) for row in rows]
    return seen


def _slots(row: list[Entry]) -> list[list[Entry]]:
    slots: list[list[Entry]] = []
    for entry in row:
        if slots and slots[-1][-1].paired:
            slots[-1].append(entry)
        else:
            slots.append([entry])
    return slots


def _starts(entry: Entry, table: Timetable) -> bool:
    inner = entry.piece % table.pieces
    if entry.kind == Pass.FORWARD:
        return inner == 0
    return entry.kind == Pass.WEIGHT or inner == table.pieces - 1


def _needs(entry: Entry) -> tuple[bool, int, int]:
    return entry.kind == Pass.FORWARD, entry.piece, entry.micro_batch


def _seconds(slot: list[Entry], table: Timetable, times: StageTimes) -> float:
    took = []
    for entry in slot:
        piece = entry.piece % table.pieces
        forward, whole = times.forward[piece], times.backward[piece] + times.weight[piece]
        took.append([forward, whole, times.backward[piece], times.weight[piece]][entry.kind])
    return float(took[0] if len(took) == 1 else max(took) + (1 - times.overlap) * min(took))


def _hand_on(entry, device, table, times, half_duplex, inputs, queues) -> None:  # type: ignore[no-untyped-def]
    inner, forward = entry.piece % table.pieces, entry.kind == Pass.FORWARD
    if entry.kind == Pass.WEIGHT or inner == (table.pieces - 1 if forward else 0):
        return
    taker = entry.piece + 1 if forward else entry.piece - 1
    message = forward, taker, entry.micro_batch
    there = int(table.device_of_piece[taker])
    if there == device:
        inputs.add(message)
        return
    seconds = times.send_forward[inner] if forward else times.send_backward[inner - 1]
    way = (min(device, there), max(device, there)) if half_duplex else (device, there)
    queues.setdefault(way, []).append((float(seconds), message))
