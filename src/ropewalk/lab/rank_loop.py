"""The loop of the ranks: what has arrived, whose time has come, what may begin; compiled, so that it keeps up.

Both ends of every connection are in this process, so messages need no headers: a connection carries them in the order
in which they were begun.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from ropewalk.lab.libc import (
    DO_NOT_WAIT,
    MORE_FOLLOWS,
    NO_SIGNAL,
    epoll_ctl,
    epoll_wait,
    free,
    malloc,
    numbers_at,
    ppoll,
    recv,
    seconds,
    send,
)
from ropewalk.lab.rank_state import LEFT, READY_FIRST, READY_LAST, SEQUENCE, STALLS, TIMERS, RankState
from ropewalk.pointer import point_at
from ropewalk.sim.flow.kernel import kernel
from ropewalk.task import TaskKind

DONE, TOO_LATE, ABANDONED, CLOSED = range(4)
"""How a run ends."""
_COMPUTE, _TRANSFER = int(TaskKind.COMPUTE), int(TaskKind.TRANSFER)
_ADD, _REMOVE, _MAY_SEND, _BROKEN = 1, 2, 0x004, 0x018
"""Of epoll: to add and remove a socket; room to send; errors and hang-ups."""
EVENT_WORDS, EVENT_NUMBER = (3, 1) if platform.machine() == "x86_64" else (4, 2)
"""Words of 32 bits of an event of epoll, and where the number stands under which a socket was registered."""
_EVENTS_AT_ONCE = 256
_ZEROS = 1 << 18
_STALL_S = 0.3
"""A connection that brings nothing for so long, although something is under way on it, has stalled."""
ABANDONED_NUMBER = 0xFFFFFFFF
"""The number of those who asked for the run; connection n has the number 2n, and 2n + 1 where it waits to send."""


@kernel
def run(owned: RankState, epoll: int, limit_s: float) -> tuple[int, float]:
    """Run a job until it is done or cannot be; how it ended, and the clock when it began."""
    state = point_at(owned)
    words, nothing = np.zeros(2, np.int64), np.zeros(_ZEROS, np.uint8)
    events = np.zeros(_EVENTS_AT_ONCE * EVENT_WORDS, np.uint32)
    began = seconds(words)
    status = DONE
    _begin_ready(state, epoll, began, words, nothing)
    while state.counts[LEFT] > 0 and status == DONE:
        found = _wait(state, epoll, began, words, events)
        for at in range(found):
            kind = np.int64(events[at * EVENT_WORDS])
            number = np.int64(events[at * EVENT_WORDS + EVENT_NUMBER])
            if number == ABANDONED_NUMBER:
                status = ABANDONED
            elif kind & _BROKEN:
                status = CLOSED
            elif number & 1:
                _write(state, epoll, number >> 1, nothing)
            else:
                _read(state, number >> 1, began, words, nothing)
        _timers(state, epoll, began, words, nothing)
        _begin_ready(state, epoll, began, words, nothing)
        if seconds(words) - began > limit_s:
            status = TOO_LATE
    return status, began


@kernel
def _wait(state: Any, epoll: int, began: float, words: Any, events: Any) -> int:
    """Wait until something arrives, or until the first timer, which epoll alone would round to milliseconds."""
    if state.counts[TIMERS] == 0:
        return int(epoll_wait(epoll, events.ctypes.data, _EVENTS_AT_ONCE, 1000))
    left = min(max(state.timer_s[0] - (seconds(words) - began), 0.0), 1.0)
    words[0], words[1] = 0, np.int64(left * 1e9)
    if words[1] >= 1_000_000_000:
        words[0], words[1] = 1, 0
    watched = np.zeros(1, np.int64)
    watched[0] = epoll | (1 << 32)  # its number, and that there may be something to read
    if left > 0:
        ppoll(watched.ctypes.data, 1, words.ctypes.data, 0)
    return int(epoll_wait(epoll, events.ctypes.data, _EVENTS_AT_ONCE, 0))


@kernel
def _begin_ready(state: Any, epoll: int, began: float, words: Any, nothing: Any) -> None:
    while state.counts[READY_FIRST] < state.counts[READY_LAST]:
        task = state.ready[state.counts[READY_FIRST]]
        state.counts[READY_FIRST] += 1
        now = seconds(words) - began
        if state.kind[task] == _TRANSFER:
            if state.start_up[task] > 0:
                _push_timer(state, now + state.start_up[task], task)
            else:
                _send_task(state, epoll, task, now, nothing)
        elif state.kind[task] == _COMPUTE:
            _queue_up(state, task)
            _compute(state, state.engine[task], now)
        else:
            state.start[task] = now
            _finish(state, task, now)


@kernel
def _timers(state: Any, epoll: int, began: float, words: Any, nothing: Any) -> None:
    """Start-ups that are over, and passes that have computed."""
    while state.counts[TIMERS] > 0 and state.timer_s[0] <= seconds(words) - began:
        task = _pop_timer(state)
        now = seconds(words) - began
        if state.kind[task] == _TRANSFER:
            _send_task(state, epoll, task, now, nothing)
        else:
            engine = state.engine[task]
            state.busy[engine] = 0
            _finish(state, task, now)
            _compute(state, engine, now)


@kernel
def _queue_up(state: Any, task: int) -> None:
    """Behind everything that is as urgent on its stream."""
    engine, before = state.engine[task], np.int64(-1)
    after = state.queue[engine]
    while after >= 0 and state.priority[after] <= state.priority[task]:
        before, after = after, state.behind[after]
    state.behind[task] = after
    if before < 0:
        state.queue[engine] = task
    else:
        state.behind[before] = task


@kernel
def _compute(state: Any, engine: int, now: float) -> None:
    """Let the most urgent task of a stream compute, if the stream is free."""
    task = state.queue[engine]
    if state.busy[engine] == 1 or task < 0:
        return
    state.queue[engine] = state.behind[task]
    state.busy[engine] = 1
    state.start[task] = now
    _push_timer(state, now + state.seconds[task], task)


@kernel
def _send_task(state: Any, epoll: int, task: int, now: float, nothing: Any) -> None:
    """Put the parts of a transfer behind what their connections have to send."""
    state.start[task] = now
    for part in range(state.part_first[task], state.part_first[task + 1]):
        connection = state.part_connection[part]
        last = state.last[connection]
        if last >= 0:
            state.part_next[last] = part
        state.last[connection] = part
        if state.receiving[connection] < 0:
            state.receiving[connection] = part
            state.heard[connection] = now
        if state.sending[connection] < 0:
            state.sending[connection] = part
            _write(state, epoll, connection, nothing)


@kernel
def _write(state: Any, epoll: int, connection: int, nothing: Any) -> None:
    """Hand over as much as the kernel takes; where something is left, it says when there is room."""
    part = state.sending[connection]
    while part >= 0:
        left = state.part_bytes[part] - state.sent[connection]
        address, some = _piece(state, part, state.sent[connection], nothing)
        some = min(some, left)
        flags = DO_NOT_WAIT | NO_SIGNAL | (MORE_FOLLOWS if some < left else 0)
        taken = send(state.out_socket[connection], address, some, flags)
        if taken > 0:
            state.sent[connection] += taken
        if taken < some:
            break
        if state.sent[connection] == state.part_bytes[part]:
            part = state.part_next[part]
            state.sending[connection] = part
            state.sent[connection] = 0
    if (part >= 0) != (state.watched[connection] == 1):
        state.watched[connection] = 1 - state.watched[connection]
        event = np.zeros(EVENT_WORDS, np.uint32)
        event[0], event[EVENT_NUMBER] = _MAY_SEND, 2 * connection + 1
        verb = _ADD if state.watched[connection] == 1 else _REMOVE
        epoll_ctl(epoll, verb, state.out_socket[connection], event.ctypes.data)


@kernel
def _piece(state: Any, part: int, sent: int, nothing: Any) -> tuple[np.int64, np.int64]:
    """Where the next bytes of a part stand, and how many do; zeros for what is no data."""
    task = state.part_task[part]
    at = state.part_offset[part] + sent
    for piece in range(state.piece_first[task], state.piece_first[task + 1]):
        if at < state.piece_bytes[piece]:
            return np.int64(state.held.ctypes.data) + state.piece_at[piece] + at, state.piece_bytes[piece] - at
        at -= state.piece_bytes[piece]
    return np.int64(nothing.ctypes.data), np.int64(_ZEROS)


@kernel
def _read(state: Any, connection: int, began: float, words: Any, nothing: Any) -> None:
    """Take in what has arrived, message by message."""
    part = state.receiving[connection]
    while part >= 0:
        task = state.part_task[part]
        left = state.part_bytes[part] - state.got[connection]
        if state.turn_of_receiver[task] >= 0:
            if state.staged[task] == 0:
                state.staged[task] = np.int64(malloc(_bytes(state, task)))
            address = state.staged[task] + state.part_offset[part] + state.got[connection]
        else:
            left, address = min(left, _ZEROS), np.int64(nothing.ctypes.data)
        taken = recv(state.in_socket[connection], address, left, DO_NOT_WAIT)
        if taken <= 0:
            return
        _hear(state, connection, task, seconds(words) - began)
        state.got[connection] += taken
        if state.got[connection] < state.part_bytes[part]:
            if taken < left:
                return
            continue
        state.got[connection] = 0
        part = state.part_next[part]
        state.receiving[connection] = part
        if part < 0:
            state.last[connection] = -1
        state.parts_left[task] -= 1
        if state.parts_left[task] == 0:
            _finish(state, task, seconds(words) - began)
            if state.turn_of_receiver[task] >= 0:
                _count_down(state, state.turn_of_sender[task])
                _count_down(state, state.turn_of_receiver[task])


@kernel
def _hear(state: Any, connection: int, task: int, now: float) -> None:
    """Something arrived: was it quiet for long before?"""
    if now - state.heard[connection] > _STALL_S and state.counts[STALLS] < len(state.stall_task):
        at = state.counts[STALLS]
        state.counts[STALLS] += 1
        state.stall_task[at], state.stall_since[at], state.stall_until[at] = task, state.heard[connection], now
    state.heard[connection] = now


@kernel
def _bytes(state: Any, task: int) -> np.int64:
    last = state.part_first[task + 1] - 1
    return np.int64(state.part_offset[last] + state.part_bytes[last])


@kernel
def _count_down(state: Any, turn: int) -> None:
    """A transfer of a turn is done. When all are, its slot takes what it was sent, and its next turn may close."""
    state.open[turn] -= 1
    while turn >= 0 and state.open[turn] == 0:
        for at in range(state.receipt_first[turn], state.receipt_first[turn + 1]):
            _take(state, state.receipt[at])
        turn = state.next_turn[turn]
        if turn >= 0:
            state.open[turn] -= 1


@kernel
def _take(state: Any, task: int) -> None:
    """Add what a transfer has brought to what its receiver holds, or put it there."""
    items = state.chunk_items[task]
    came = numbers_at(state.staged[task], items * (state.chunk_first[task + 1] - state.chunk_first[task]))
    at = 0
    for entry in range(state.chunk_first[task], state.chunk_first[task + 1]):
        number = state.chunk[entry]
        first = state.chunk_at[number]
        if state.adds[task] == 1 and state.present[number] == 1:
            for item in range(items):
                state.held[first + item] += came[at + item]
        else:
            for item in range(items):
                state.held[first + item] = came[at + item]
        state.present[number] = 1
        at += items
    free(state.staged[task])
    state.staged[task] = 0


@kernel
def _finish(state: Any, task: int, now: float) -> None:
    state.end[task] = now
    state.counts[LEFT] -= 1
    for at in range(state.after_first[task], state.after_first[task + 1]):
        later = state.after[at]
        state.waits[later] -= 1
        if state.waits[later] == 0:
            state.ready[state.counts[READY_LAST]] = later
            state.counts[READY_LAST] += 1


@kernel
def _earlier(state: Any, one: int, other: int) -> bool:
    if state.timer_s[one] != state.timer_s[other]:
        return bool(state.timer_s[one] < state.timer_s[other])
    return bool(state.timer_order[one] < state.timer_order[other])


@kernel
def _swap(state: Any, one: int, other: int) -> None:
    state.timer_s[one], state.timer_s[other] = state.timer_s[other], state.timer_s[one]
    state.timer_order[one], state.timer_order[other] = state.timer_order[other], state.timer_order[one]
    state.timer_task[one], state.timer_task[other] = state.timer_task[other], state.timer_task[one]


@kernel
def _push_timer(state: Any, when: float, task: int) -> None:
    place = state.counts[TIMERS]
    state.counts[TIMERS] += 1
    state.counts[SEQUENCE] += 1
    state.timer_s[place], state.timer_order[place], state.timer_task[place] = when, state.counts[SEQUENCE], task
    while place > 0 and _earlier(state, place, (place - 1) >> 1):
        _swap(state, place, (place - 1) >> 1)
        place = (place - 1) >> 1


@kernel
def _pop_timer(state: Any) -> np.int64:
    task = state.timer_task[0]
    state.counts[TIMERS] -= 1
    size, place = state.counts[TIMERS], 0
    _swap(state, 0, size)
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _earlier(state, child + 1, child):
            child += 1
        if not _earlier(state, child, place):
            break
        _swap(state, place, child)
        place = child
    return np.int64(task)
