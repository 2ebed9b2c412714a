"""The kernel of the rule of the largest tail: at every moment the network works on the job with the most behind it."""

from __future__ import annotations

from ropewalk.compiled import kernel_ieee as kernel

HARDLY = 1e-12
"""A rest that is this small a part of the clock is rounding, and is not worth a piece of its own."""


@kernel
def _before(tail, one, other):  # type: ignore[no-untyped-def]
    """Jobs are numbered in the order of their heads, so that of equal tails the one that was there first goes on."""
    return tail[one] > tail[other] or (tail[one] == tail[other] and one < other)


@kernel
def _push(heap, count, job, tail):  # type: ignore[no-untyped-def]
    at = count
    while at > 0:
        above = (at - 1) // 2
        if not _before(tail, job, heap[above]):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = job


@kernel
def _drop_first(heap, count, tail):  # type: ignore[no-untyped-def]
    job = heap[count - 1]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= count - 1:
            break
        if below + 1 < count - 1 and _before(tail, heap[below + 1], heap[below]):
            below += 1
        if not _before(tail, heap[below], job):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = job


@kernel
def largest_tail_first(head, seconds, tail, count, heap, left, end, piece_job, piece_begin, piece_end):  # type: ignore[no-untyped-def]
    """Run the first `count` jobs, which stand in the order of their heads.

    Fills `end` with when each is done and the pieces with what ran when (2 · count of them at most); returns the
    latest end with its tail, and the number of pieces. `heap` and `left` are room to work in.
    """
    left[:count] = seconds[:count]
    waiting, arrived, pieces = 0, 0, 0
    now, value = 0.0, 0.0
    while arrived < count or waiting:
        if not waiting:
            now = max(now, head[arrived])
        while arrived < count and head[arrived] <= now:
            _push(heap, waiting, arrived, tail)
            waiting += 1
            arrived += 1
        job = heap[0]
        stop = now + left[job]
        if arrived < count and head[arrived] < stop - HARDLY * stop:
            stop = head[arrived]
            left[job] -= stop - now
        else:
            left[job] = 0.0
            _drop_first(heap, waiting, tail)
            waiting -= 1
            end[job] = stop
            value = max(value, stop + tail[job])
        if pieces and piece_job[pieces - 1] == job and piece_end[pieces - 1] == now:
            piece_end[pieces - 1] = stop
        else:
            piece_job[pieces], piece_begin[pieces], piece_end[pieces] = job, now, stop
            pieces += 1
        now = stop
    return value, pieces
