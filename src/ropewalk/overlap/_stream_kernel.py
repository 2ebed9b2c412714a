"""The kernel of a symmetric ring: what one of its equal ranks sends, adds and launches when.

All ranks have the same gradients at the same times and take the same decisions, so what a rank sends in round k reaches
its neighbour when it receives the same round itself: one rank stands for all. It has a port that sends one message at a
time, an adder that mixes one message at a time, and a launcher. Whenever one of them is free it takes the most urgent
of what is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.compiled import kernel_ieee as kernel

UNIT_READY, CHUNK_READY, LAUNCHED, SENT, ARRIVED, ADDED = range(6)
"""Kinds of events."""
KINDS = 6
EVENTS, SENDS, ADDS, WAITING = range(4)
"""Heaps, by their place in the counts."""
SEQUENCE, QUEUED, CURRENT, IN_FLIGHT, PORT_BUSY, ADDER_BUSY, LAUNCHER_BUSY = range(4, 11)


class ResourceCosts(NamedTuple):
    """What a rank's resources take."""

    message_s: float
    wire_s_per_byte: float
    mix_s_per_byte: float
    latency_s: float
    launch_s: float


class LibraryRules(NamedTuple):
    """How a library runs its operations."""

    reduce_rounds: int
    gather_rounds: int
    window: int
    """Units that are handed over and not done, at most."""
    serial: bool
    """One unit at a time, in the order in which they were handed over."""
    hold_gathers: bool
    """Nothing of an operation is broadcast before all of it is reduced."""
    one_hand: bool
    """A rank either sends or mixes."""


READY, SHARD, UNIT, OP, REDUCE_KEY, GATHER_KEY, DONE = range(7)
"""Columns of a chunk: when it exists, bytes of a shard, its unit and operation, its urgency while it is reduced and
while it is broadcast (the smallest goes first), when it is complete."""
FIRST, BEHIND, UNIT_READY_S, UNIT_KEY, LEFT, RELEASED = range(6)
"""Columns of a unit, which is handed over as a whole: its chunks, when it may be, its urgency, chunks to complete."""
BEGIN, END = range(2)


@kernel
def _push(heap, counts, which, first, second, what):  # type: ignore[no-untyped-def]
    """Into one of the heaps, rows (first, second, what), smallest first."""
    at = counts[which]
    counts[which] += 1
    while at > 0:
        above = (at - 1) // 2
        if heap[which, above, 0] < first or (heap[which, above, 0] == first and heap[which, above, 1] <= second):
            break
        for column in range(3):
            heap[which, at, column] = heap[which, above, column]
        at = above
    heap[which, at, 0], heap[which, at, 1], heap[which, at, 2] = first, second, what


@kernel
def _pop(heap, counts, which):  # type: ignore[no-untyped-def]
    """Take the smallest row of a heap; returns what it is."""
    counts[which] -= 1
    found, last = int(heap[which, 0, 2]), counts[which]
    first, second, third = heap[which, last, 0], heap[which, last, 1], heap[which, last, 2]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and (
            heap[which, below + 1, 0] < heap[which, below, 0]
            or (
                heap[which, below + 1, 0] == heap[which, below, 0] and heap[which, below + 1, 1] < heap[which, below, 1]
            )
        ):
            below += 1
        if first < heap[which, below, 0] or (first == heap[which, below, 0] and second <= heap[which, below, 1]):
            break
        for column in range(3):
            heap[which, at, column] = heap[which, below, column]
        at = below
    heap[which, at, 0], heap[which, at, 1], heap[which, at, 2] = first, second, third
    return found


@kernel
def _later(heap, counts, time, kind, what):  # type: ignore[no-untyped-def]
    """An event; those of one moment happen in the order in which they were caused."""
    sequence = counts[SEQUENCE]
    counts[SEQUENCE] += 1
    _push(heap, counts, EVENTS, time, float(sequence), float(kind + KINDS * what))


@kernel
def _complete(chunks, units, counts, chunk, now):  # type: ignore[no-untyped-def]
    chunks[chunk, DONE] = now
    unit = int(chunks[chunk, UNIT])
    units[unit, LEFT] -= 1
    if units[unit, LEFT] == 0:
        counts[IN_FLIGHT] -= 1


@kernel
def _arrived(chunks, units, heap, counts, rules, message, now):  # type: ignore[no-untyped-def]
    """What arrives is mixed in while it is being reduced, and passed on while it is being broadcast."""
    rounds = rules.reduce_rounds + rules.gather_rounds
    chunk, turn = message // rounds, message % rounds
    if turn < rules.reduce_rounds:
        _push(heap, counts, ADDS, chunks[chunk, REDUCE_KEY], float(message), float(message))
    elif turn + 1 < rounds:
        _push(heap, counts, SENDS, chunks[chunk, GATHER_KEY], message + 1.0, message + 1.0)
    else:
        _complete(chunks, units, counts, chunk, now)


@kernel
def _added(chunks, units, unreduced, heap, counts, rules, message, now):  # type: ignore[no-untyped-def]
    """What is mixed goes on to the next rank; after the last round it is reduced, and its broadcast may begin."""
    rounds = rules.reduce_rounds + rules.gather_rounds
    chunk, turn = message // rounds, message % rounds
    if turn + 1 < rules.reduce_rounds:
        _push(heap, counts, SENDS, chunks[chunk, REDUCE_KEY], message + 1.0, message + 1.0)
    elif rules.gather_rounds == 0:
        _complete(chunks, units, counts, chunk, now)
    elif not rules.hold_gathers:
        _push(heap, counts, SENDS, chunks[chunk, GATHER_KEY], message + 1.0, message + 1.0)
    else:
        op = int(chunks[chunk, OP])
        unreduced[op] -= 1
        if unreduced[op] == 0:
            for other in range(len(chunks)):
                if chunks[other, OP] == op:
                    first = float(other * rounds + rules.reduce_rounds)
                    _push(heap, counts, SENDS, chunks[other, GATHER_KEY], first, first)


@kernel
def _happens(chunks, units, unreduced, queue, heap, counts, costs, rules, now):  # type: ignore[no-untyped-def]
    """The next event."""
    code = _pop(heap, counts, EVENTS)
    kind, what = code % KINDS, code // KINDS
    if kind == UNIT_READY:
        _push(heap, counts, WAITING, units[what, UNIT_KEY], float(what), float(what))
    elif kind == LAUNCHED:
        counts[LAUNCHER_BUSY] = 0
        queue[counts[QUEUED]] = what
        counts[QUEUED] += 1
    elif kind == CHUNK_READY:
        key = chunks[what, REDUCE_KEY] if rules.reduce_rounds else chunks[what, GATHER_KEY]
        first = float(what * (rules.reduce_rounds + rules.gather_rounds))
        _push(heap, counts, SENDS, key, first, first)
    elif kind == SENT:
        counts[PORT_BUSY] = 0
        _later(heap, counts, now + costs.latency_s, ARRIVED, what)
    elif kind == ARRIVED:
        _arrived(chunks, units, heap, counts, rules, what, now)
    else:
        counts[ADDER_BUSY] = 0
        _added(chunks, units, unreduced, heap, counts, rules, what, now)


@kernel
def _hand_over(chunks, units, queue, heap, counts, costs, rules, now):  # type: ignore[no-untyped-def]
    """Units that may run: the oldest that is not done where they are serial, all of them otherwise; then a launch."""
    while counts[CURRENT] < counts[QUEUED]:
        unit = queue[counts[CURRENT]]
        if units[unit, RELEASED] == 0:
            units[unit, RELEASED] = 1
            for chunk in range(int(units[unit, FIRST]), int(units[unit, BEHIND])):
                _later(heap, counts, max(now, chunks[chunk, READY]), CHUNK_READY, chunk)
        if rules.serial and units[unit, LEFT] > 0:
            break
        counts[CURRENT] += 1
    if not counts[LAUNCHER_BUSY] and counts[WAITING] and counts[IN_FLIGHT] < rules.window:
        counts[LAUNCHER_BUSY] = 1
        counts[IN_FLIGHT] += 1
        _later(heap, counts, now + costs.launch_s, LAUNCHED, _pop(heap, counts, WAITING))


@kernel
def _add(chunks, heap, counts, costs, rules, now, added_s):  # type: ignore[no-untyped-def]
    """The adder takes the most urgent of what has arrived."""
    if counts[ADDER_BUSY] or not counts[ADDS] or (rules.one_hand and counts[PORT_BUSY]):
        return
    counts[ADDER_BUSY] = 1
    message = _pop(heap, counts, ADDS)
    shard = chunks[message // (rules.reduce_rounds + rules.gather_rounds), SHARD]
    end = now + shard * costs.mix_s_per_byte
    if len(added_s):
        added_s[message, BEGIN], added_s[message, END] = now, end
    _later(heap, counts, end, ADDED, message)


@kernel
def _send(chunks, heap, counts, costs, rules, now, sent_s):  # type: ignore[no-untyped-def]
    """The port takes the most urgent message."""
    if counts[PORT_BUSY] or not counts[SENDS] or (rules.one_hand and counts[ADDER_BUSY]):
        return
    counts[PORT_BUSY] = 1
    message = _pop(heap, counts, SENDS)
    shard = chunks[message // (rules.reduce_rounds + rules.gather_rounds), SHARD]
    end = now + costs.message_s + shard * costs.wire_s_per_byte
    if len(sent_s):
        sent_s[message, BEGIN], sent_s[message, END] = now, end
    _later(heap, counts, end, SENT, message)


@kernel
def run_ring(chunks, units, unreduced, costs, rules, sent_s, added_s):  # type: ignore[no-untyped-def]
    """When every chunk is complete at every rank: fills their column DONE; what the rules never let through keeps nan.

    `chunks` and `units` have a row for each, `unreduced` counts the chunks of every operation. `sent_s` and `added_s`
    get begin and end of every message and addition, rows chunk * rounds + round, unless they are empty.
    """
    # A chunk is in one place at a time, so that no heap holds more than all chunks and units.
    heap = np.empty((4, len(chunks) + len(units) + 1, 3))
    counts = np.zeros(11, np.int64)
    queue = np.zeros(len(units), np.int64)
    for unit in range(len(units)):
        _later(heap, counts, units[unit, UNIT_READY_S], UNIT_READY, unit)
    while counts[EVENTS]:
        now = heap[EVENTS, 0, 0]
        # All that happens at this moment comes before resources choose; what is mixed at once happens now, too.
        while counts[EVENTS] and heap[EVENTS, 0, 0] == now:
            _happens(chunks, units, unreduced, queue, heap, counts, costs, rules, now)
            if not counts[EVENTS] or heap[EVENTS, 0, 0] > now:
                _hand_over(chunks, units, queue, heap, counts, costs, rules, now)
            if not counts[EVENTS] or heap[EVENTS, 0, 0] > now:
                _add(chunks, heap, counts, costs, rules, now, added_s)
        _send(chunks, heap, counts, costs, rules, now, sent_s)
