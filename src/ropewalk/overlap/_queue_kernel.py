"""The event loop of a queue of pieces before a network that carries them one after the other.

Pieces are numbered in the order in which the queue prefers them, so the smallest waiting number goes next. The network
is a first-in-first-out pipe, and a server answers in the order of its sums: when a piece is handed over, all its times
are known. What is left are two kinds of events: a gradient appears, and credit comes back.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.flow.kernel import kernel


@kernel
def _push(heap: Ints, count: int, value: int) -> int:
    """Put a number on a binary heap of `count` numbers; gives the new count."""
    at = count
    while at > 0:
        above = (at - 1) >> 1
        if heap[above] <= value:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = value
    return count + 1


@kernel
def _pop(heap: Ints, count: int) -> int:
    """Take the smallest number, which the caller has read at heap[0], off; gives the new count."""
    count -= 1
    value = heap[count]
    at = 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= value:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = value
    return count


@kernel
def run_queue(
    size: Floats,
    ready: Floats,
    by_ready: Ints,
    bandwidth: tuple[float, float],
    start_up: float,
    latency: float,
    duplex: bool,
    credit: float,
    skip: bool,
    credit_after_pull: bool,
) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    """Pieces in the order on the network; start and end of every push (or all-reduce), start and end of every pull.

    `bandwidth` is that of pushes, which are added up, and that of pulls. `by_ready` lists pieces by the time at which
    they may be handed over. A credit of 0 is one piece at a time.
    """
    pieces = len(size)
    push_start, push_end = np.full(pieces, np.nan), np.full(pieces, np.nan)
    pull_start, pull_end = np.full(pieces, np.nan), np.full(pieces, np.nan)
    waiting, passed_over = np.empty(pieces, np.int64), np.empty(pieces, np.int64)
    handed, credit_back = np.empty(pieces, np.int64), np.empty(pieces)  # in the order of handing over
    waiting_count = handed_count = appeared = returned = 0
    in_flight, pipe_free, pull_free, now = 0.0, 0.0, 0.0, 0.0
    while True:
        # What has happened by now.
        while appeared < pieces and ready[by_ready[appeared]] <= now:
            waiting_count = _push(waiting, waiting_count, by_ready[appeared])
            appeared += 1
        while returned < handed_count and credit_back[returned] <= now:
            in_flight -= size[handed[returned]]
            returned += 1
            if returned == handed_count:
                in_flight = 0.0  # exactly, whatever the sums have lost to rounding

        # Hand over what the credit allows.
        while waiting_count > 0:
            left = credit - in_flight
            piece = -1
            if skip and credit > 0.0:
                over = 0
                while waiting_count > 0 and size[waiting[0]] > left:
                    passed_over[over] = waiting[0]
                    waiting_count = _pop(waiting, waiting_count)
                    over += 1
                if waiting_count > 0:
                    piece = waiting[0]
                    waiting_count = _pop(waiting, waiting_count)
                for at in range(over):
                    waiting_count = _push(waiting, waiting_count, passed_over[at])
            elif left > 0.0 or returned == handed_count:
                piece = waiting[0]
                waiting_count = _pop(waiting, waiting_count)
            if piece < 0:
                break
            busy = start_up + size[piece] / bandwidth[0]
            push_start[piece] = max(now, pipe_free)
            push_end[piece] = pipe_free = push_start[piece] + busy
            known = push_end[piece] + latency
            if duplex:
                # The server answers in the order of its sums.
                pull_start[piece] = max(known, pull_free)
                pull_end[piece] = pull_free = pull_start[piece] + (start_up + size[piece] / bandwidth[1])
                if credit_after_pull:
                    known = pull_end[piece] + latency
            handed[handed_count] = piece
            credit_back[handed_count] = known
            handed_count += 1
            in_flight += size[piece]

        # When something happens next.
        if appeared == pieces and waiting_count == 0:
            return handed, push_start, push_end, pull_start, pull_end
        now = np.inf
        if appeared < pieces:
            now = ready[by_ready[appeared]]
        if returned < handed_count:
            now = min(now, credit_back[returned])
