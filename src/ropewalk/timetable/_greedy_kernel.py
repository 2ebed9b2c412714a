"""The kernel behind the automatic timetable: every device takes the best pass that is ready, within its memory."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel
from ropewalk.timetable.passes import Pass

FORWARD, INPUT, WEIGHT = int(Pass.FORWARD), int(Pass.INPUT), int(Pass.WEIGHT)


@kernel
def lay(
    home: Ints,
    forward: Floats,
    backward: Floats,
    weight: Floats,
    send_forward: Floats,
    send_backward: Floats,
    kept: Floats,
    limit: float,
    ahead: Ints,
    late: Ints,
    patient: bool,
    devices: int,
    batches: int,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Device, kind, piece and micro-batch of passes in the order in which they start.

    Gradients of inputs come first, then forward passes, then gradients of weights. `ahead` bounds forward passes of a
    piece that have no gradients yet, `late` the gradients of weights that a device puts off while it could go forward;
    a `patient` device would rather wait than start gradients of weights that hold up what arrives meanwhile.
    Fewer passes than there should be mean that memory ran full of micro-batches that block each other.
    """
    pieces = len(home)
    total = 3 * pieces * batches
    where, kinds = np.empty(total, np.int64), np.empty(total, np.int64)
    which, numbers = np.empty(total, np.int64), np.empty(total, np.int64)
    done = np.zeros((4, pieces), np.int64)
    arrival = np.full((2, pieces, batches), np.inf)
    arrival[0, 0, :] = 0.0
    free, decide = np.zeros(devices), np.zeros(devices)
    link_free = np.zeros((devices, devices))
    held = np.zeros(devices)
    laid = 0
    while True:
        here, now = 0, np.inf
        for device in range(devices):
            if decide[device] < now:
                here, now = device, decide[device]
        if now == np.inf:
            break
        best, kind, soonest, pending = -1, -1, np.inf, 0
        for piece in range(pieces):
            if home[piece] != here:
                continue
            pending += done[INPUT, piece] - done[WEIGHT, piece]
            behind = done[INPUT, piece]
            if behind < batches and behind < done[FORWARD, piece]:
                ready = arrival[1, piece, behind]
                if ready <= now:
                    best, kind = piece, INPUT
                else:
                    soonest = min(soonest, ready)
        if best < 0:
            for piece in range(pieces):
                front = done[FORWARD, piece]
                if home[piece] != here or front == batches:
                    continue
                room = held[here] + kept[piece] <= limit and front - done[INPUT, piece] < ahead[piece]
                ready = arrival[0, piece, front]
                if ready <= now and room and pending <= late[here]:
                    best, kind = piece, FORWARD
                elif room and ready > now:
                    soonest = min(soonest, ready)
        if best < 0 and pending > 0:
            for piece in range(pieces):
                if home[piece] == here and done[WEIGHT, piece] < done[INPUT, piece]:
                    # The piece that put off the most; the first of them where it is the same.
                    waiting = done[INPUT, piece] - done[WEIGHT, piece]
                    if best < 0 or waiting > done[INPUT, best] - done[WEIGHT, best]:
                        best = piece
            kind = WEIGHT
            if patient and soonest < now + 0.5 * weight[best]:
                best = -1
        if best < 0:
            decide[here] = soonest
            continue
        number = done[kind, best]
        done[kind, best] += 1
        where[laid], kinds[laid], which[laid], numbers[laid] = here, kind, best, number
        laid += 1
        if kind == FORWARD:
            over = now + forward[best]
            held[here] += kept[best]
        elif kind == INPUT:
            over = now + backward[best]
        else:
            over = now + weight[best]
            held[here] -= kept[best]
        free[here] = decide[here] = over
        if kind == WEIGHT:
            continue
        onward = kind == FORWARD
        if onward and best == pieces - 1:
            arrival[1, best, number] = over
            continue
        if not onward and best == 0:
            continue
        target = best + 1 if onward else best - 1
        there = home[target]
        if there != here:
            over = max(over, link_free[here, there]) + (send_forward[best] if onward else send_backward[target])
            link_free[here, there] = over
        arrival[0 if onward else 1, target, number] = over
        # A device that waits decides anew when something arrives.
        decide[there] = min(decide[there], max(free[there], over))
    return where[:laid], kinds[:laid], which[:laid], numbers[:laid]
