"""The kernels of the clock: rows of passes on devices, transfers on links.

With two directions to a link the order of transfers on each of them is the order of the row that sends them, so one
sweep in the order of dependencies gives every time (`settle`). With one direction at a time two devices compete for a
link, and events have to be taken in the order of time (`take_turns`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel

Times = tuple[Floats, Floats, Floats, Floats, Ints]


@kernel
def settle(
    row_start: Ints,
    device: NDArray[np.int32],
    paired: NDArray[np.bool_],
    source: Ints,
    consumer: Ints,
    seconds: Floats,
    link: Ints,
    send: Floats,
    links: int,
) -> Times:
    """Start, end, start of the transfer and arrival of every pass, and how far each row came before it got stuck."""
    passes, devices = len(source), len(row_start) - 1
    start, end = np.full(passes, np.nan), np.full(passes, np.nan)
    sent, arrived = np.full(passes, np.nan), np.full(passes, np.nan)
    done = np.zeros(passes, np.bool_)
    at = row_start[:-1].copy()
    device_free, link_free = np.zeros(devices), np.zeros(links)
    waiting = np.arange(devices)[::-1].copy()
    listed = np.ones(devices, np.bool_)
    left = devices
    while left > 0:
        left -= 1
        here = waiting[left]
        listed[here] = False
        while at[here] < row_start[here + 1]:
            first = at[here]
            behind = first + 2 if paired[first] else first + 1
            ready = device_free[here]
            stuck = False
            for one in range(first, behind):
                if source[one] >= 0:
                    if not done[source[one]]:
                        stuck = True
                        break
                    ready = max(ready, arrived[source[one]])
            if stuck:
                break
            over = ready + seconds[first]
            for one in range(first, behind):
                start[one], end[one], arrived[one] = ready, over, over
                done[one] = True
                if link[one] >= 0:
                    sent[one] = max(over, link_free[link[one]])
                    arrived[one] = sent[one] + send[one]
                    link_free[link[one]] = arrived[one]
                if consumer[one] >= 0:
                    there = device[consumer[one]]
                    if there != here and not listed[there]:
                        waiting[left] = there
                        listed[there] = True
                        left += 1
            device_free[here] = over
            at[here] = behind
    return start, end, sent, arrived, at


@kernel
def take_turns(
    row_start: Ints,
    device: NDArray[np.int32],
    paired: NDArray[np.bool_],
    source: Ints,
    consumer: Ints,
    seconds: Floats,
    link: Ints,
    send: Floats,
    links: int,
) -> Times:
    """The same for links that carry one transfer at a time: first ready, first sent; then the lower device first."""
    passes, devices = len(source), len(row_start) - 1
    start, end = np.full(passes, np.nan), np.full(passes, np.nan)
    sent, arrived = np.full(passes, np.nan), np.full(passes, np.nan)
    there_yet = np.zeros(passes, np.bool_)
    at = row_start[:-1].copy()
    running = np.full(devices, -1, np.int64)  # the pass that a device is busy with
    on_link = np.full(links, -1, np.int64)  # the pass whose output a link carries
    head, tail = np.full(links, -1, np.int64), np.full(links, -1, np.int64)
    queued_behind = np.full(passes, -1, np.int64)
    now = 0.0
    while True:
        # Start whatever can start now.
        for which in range(links):
            if on_link[which] < 0 and head[which] >= 0:
                one = head[which]
                head[which] = queued_behind[one]
                on_link[which] = one
                sent[one], arrived[one] = now, now + send[one]
        for here in range(devices):
            if running[here] >= 0 or at[here] == row_start[here + 1]:
                continue
            first = at[here]
            behind = first + 2 if paired[first] else first + 1
            ready = True
            for one in range(first, behind):
                if source[one] >= 0 and not there_yet[source[one]]:
                    ready = False
            if ready:
                for one in range(first, behind):
                    start[one], end[one] = now, now + seconds[first]
                running[here] = first
                at[here] = behind
        # Go to the next end of a pass or transfer.
        then = np.inf
        for here in range(devices):
            if running[here] >= 0:
                then = min(then, end[running[here]])
        for which in range(links):
            if on_link[which] >= 0:
                then = min(then, arrived[on_link[which]])
        if then == np.inf:
            break
        now = then
        for which in range(links):
            if on_link[which] >= 0 and arrived[on_link[which]] == now:
                there_yet[on_link[which]] = True
                on_link[which] = -1
        for here in range(devices):
            first = running[here]
            if first < 0 or end[first] != now:
                continue
            running[here] = -1
            for one in range(first, first + 2 if paired[first] else first + 1):
                if link[one] < 0:
                    arrived[one] = now
                    there_yet[one] = True
                else:
                    if head[link[one]] < 0:
                        head[link[one]] = one
                    else:
                        queued_behind[tail[link[one]]] = one
                    tail[link[one]] = one
    return start, end, sent, arrived, at
