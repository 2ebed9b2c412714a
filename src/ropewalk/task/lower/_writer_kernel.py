"""The gang of a step, written pass by pass, as a kernel: what each stage runs in order, what runs beside it."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ropewalk.pointer import point_at
from ropewalk.task.lower._book_kernel import (
    FULL,
    NOTHING,
    Book,
    add_to,
    both_lists,
    in_turn,
    wait_for,
    wait_for_all,
    write,
)
from ropewalk.task.lower.columns import Desk, Ending, Hops, Legs, Rows

Ints = NDArray[np.int64]

FORWARD, WEIGHT = 0, 3
"""As in `Pass`."""
DATA, ZERO, TIED, TO = 0, 1, 2, 3
"""Streams that keep their own order: gradients, weights, tied embeddings, and from `TO` on sends to each stage."""
OVERLAP, SHARED_OUT, PREFETCH, TWO_COPIES = 0, 1, 2, 3
"""Flags of a strategy."""


@njit(cache=True, nogil=True)
def write_gang(book: Book, desk: Desk, rows: Rows, legs: Legs, hops: Hops, ending: Ending, flags: Ints) -> bool:
    """Write all passes of all stages and what comes behind them; False where the timetable waits for itself."""
    book, desk, rows = point_at(book), point_at(desk), point_at(rows)
    legs, hops, ending = point_at(legs), point_at(hops), point_at(ending)
    stages = len(rows.row_start) - 1
    moving = True
    while moving:
        moving = False
        for stage in range(stages):
            while desk.at[stage] < rows.row_start[stage + 1] and _try_slot(book, desk, rows, legs, hops, flags, stage):
                moving = True
                if book.size[FULL]:
                    return True
    for stage in range(stages):
        if desk.at[stage] < rows.row_start[stage + 1]:
            return False
    _finish(book, desk, legs, ending, flags, stages)
    return True


@njit(cache=True, nogil=True)
def _try_slot(book: Book, desk: Desk, rows: Rows, legs: Legs, hops: Hops, flags: Ints, stage: int) -> bool:
    """Write the next pass of a stage, or the next two side by side, if all that they need is written."""
    first = desk.at[stage]
    behind = first + 1 + rows.paired[first]
    for entry in range(first, behind):
        if not _has_all(desk, rows, hops, entry):
            return False
    for entry in range(first, behind):
        _receive(book, desk, rows, hops, stage, entry)
    if behind - first == 1:
        _run(book, desk, rows, legs, flags, stage, stage, first)
    else:
        # Each of two passes side by side has a thread of its own.
        one, other = len(desk.cursor) - 2, len(desk.cursor) - 1
        for thread in (one, other):
            desk.cursor[thread], desk.arrived[thread] = desk.cursor[stage], desk.arrived[stage]
            desk.before[thread], desk.gathered[thread] = desk.before[stage], desk.gathered[stage]
        _run(book, desk, rows, legs, flags, stage, one, first)
        _run(book, desk, rows, legs, flags, stage, other, first + 1)
        desk.cursor[stage] = both_lists(book, desk.cursor[one], desk.cursor[other])
        desk.arrived[stage] = both_lists(book, desk.arrived[one], desk.arrived[other])
        desk.before[stage], desk.gathered[stage] = desk.before[other], desk.gathered[other]
    for entry in range(first, behind):
        _send(book, desk, rows, hops, stage, entry)
    desk.at[stage] = behind
    return True


@njit(cache=True, nogil=True)
def _has_all(desk: Desk, rows: Rows, hops: Hops, entry: int) -> bool:
    """Is all written that a pass takes from other pieces? Gradients of weights take nothing."""
    if rows.kind[entry] == WEIGHT:
        return True
    back = int(rows.kind[entry] != FORWARD)
    row = back * (len(hops.take_start) // 2) + rows.piece[entry]
    for at in range(hops.take_start[row], hops.take_start[row + 1]):
        if not desk.done[back, hops.giver[hops.take[at]], rows.micro_batch[entry]]:
            return False
    return True


@njit(cache=True, nogil=True)
def _receive(book: Book, desk: Desk, rows: Rows, hops: Hops, stage: int, entry: int) -> None:
    """Wait for what was sent to a pass, in the order in which it was; parts are gathered by the tensor ranks."""
    if rows.kind[entry] == WEIGHT:
        return
    number = rows.micro_batch[entry]
    row = int(rows.kind[entry] != FORWARD) * (len(hops.take_start) // 2) + rows.piece[entry]
    taken = -1
    while True:
        hop = NOTHING
        for at in range(hops.take_start[row], hops.take_start[row + 1]):
            sent = desk.sent[hops.take[at], number]
            if sent > taken and (hop < 0 or sent < desk.sent[hop, number]):
                hop = hops.take[at]
        if hop < 0:
            return
        taken = desk.sent[hop, number]
        desk.arrived[stage] = add_to(book, desk.arrived[stage], taken)
        if hops.gathered[hop] >= 0:
            _in_order(book, desk, stage, stage, hops.gathered[hop])


@njit(cache=True, nogil=True)
def _send(book: Book, desk: Desk, rows: Rows, hops: Hops, stage: int, entry: int) -> None:
    """Hand the result of a pass to the pieces that need it; on the same stage its order is enough."""
    if rows.kind[entry] == WEIGHT:
        return
    back, piece, number = int(rows.kind[entry] != FORWARD), rows.piece[entry], rows.micro_batch[entry]
    row = back * (len(hops.give_start) // 2) + piece
    for at in range(hops.give_start[row], hops.give_start[row + 1]):
        hop = hops.give[at]
        peer = hops.to_stage[hop]
        if peer != stage:
            cursor, arrived = desk.cursor[stage], desk.arrived[stage]
            desk.sent[hop, number] = _beside(book, desk, stage, TO + peer, hops.sent[hop], cursor, arrived, peer)
    desk.done[back, piece, number] = True


@njit(cache=True, nogil=True)
def _run(book: Book, desk: Desk, rows: Rows, legs: Legs, flags: Ints, stage: int, thread: int, entry: int) -> None:
    """Write one pass."""
    reduces = int(flags[SHARED_OUT] or rows.is_last[entry])
    which = (rows.piece[entry] * 4 + rows.kind[entry]) * 2 + reduces
    for leg in range(legs.first[which], legs.behind[which]):
        _run_leg(book, desk, legs, flags, stage, thread, leg)
        for row in range(legs.reduce_start[leg], legs.reduce_start[leg + 1]):
            if flags[OVERLAP]:
                _reduce(book, desk, legs, flags, stage, row, desk.cursor[thread], desk.arrived[thread])
            else:
                desk.owed[stage] = add_to(book, desk.owed[stage], row)
    if flags[SHARED_OUT]:
        # Gradients that are shared out have no place to wait for the end of the step.
        desk.arrived[thread] = _reduce_left(book, desk, legs, flags, stage, desk.arrived[thread])


@njit(cache=True, nogil=True)
def _run_leg(book: Book, desk: Desk, legs: Legs, flags: Ints, stage: int, thread: int, leg: int) -> None:
    """Gather the weights of a leg, ahead of the one before where they may be, and run it."""
    begin, behind = legs.gather_start[leg], legs.gather_start[leg + 1]
    if behind > begin and legs.layer[leg] != desk.gathered[thread]:
        cursor, arrived = desk.cursor[thread], desk.arrived[thread]
        if flags[PREFETCH]:
            cursor, arrived = desk.before[thread], NOTHING
        for at in range(begin, behind):
            made = _beside(book, desk, stage, ZERO, legs.gather[at], cursor, arrived, NOTHING)
            desk.arrived[thread] = add_to(book, desk.arrived[thread], made)
        desk.gathered[thread] = legs.layer[leg]
    desk.before[thread] = desk.cursor[thread]
    for at in range(legs.move_start[leg], legs.move_start[leg + 1]):
        _in_order(book, desk, stage, thread, legs.move[at])


@njit(cache=True, nogil=True)
def _reduce_left(book: Book, desk: Desk, legs: Legs, flags: Ints, stage: int, arrived: int) -> int:
    """Reduce the gradients that wait for the end of the pass; the list with all that was written for it."""
    count = in_turn(book, desk.owed[stage])
    rows = book.scratch[:count].copy()
    desk.owed[stage] = NOTHING
    since, besides = desk.cursor[stage], desk.arrived[stage]
    for row in rows:
        made = _reduce(book, desk, legs, flags, stage, row, since, besides)
        if made >= 0:
            arrived = add_to(book, arrived, made)
    return arrived


@njit(cache=True, nogil=True)
def _reduce(
    book: Book, desk: Desk, legs: Legs, flags: Ints, stage: int, row: int, cursor: int, arrived: int
) -> int:  # fmt: skip
    """Reduce gradients; where stages keep two copies of the model, once both of them have got there."""
    move = legs.reduce[row]
    made: int
    if not flags[TWO_COPIES]:
        made = _beside(book, desk, stage, DATA, move, cursor, arrived, NOTHING)
        return made
    piece, place = legs.reduce_piece[row], legs.reduce_place[row]
    other = desk.half_done[piece, place, 0]
    if other < 0:
        desk.half_done[piece, place] = stage, cursor, arrived
        return NOTHING
    wait_for_all(book, desk.half_done[piece, place, 1])
    wait_for_all(book, desk.half_done[piece, place, 2])
    desk.half_done[piece, place, 0] = NOTHING
    wait_for_all(book, cursor)
    wait_for_all(book, arrived)
    made = _between(book, desk, other, stage, DATA, move)
    return made


@njit(cache=True, nogil=True)
def _in_order(book: Book, desk: Desk, stage: int, thread: int, move: int) -> None:
    """An operation that the stage cannot go on without."""
    wait_for_all(book, desk.cursor[thread])
    wait_for_all(book, desk.arrived[thread])
    desk.cursor[thread] = add_to(book, NOTHING, write(book, move, stage, NOTHING))
    desk.arrived[thread] = NOTHING


@njit(cache=True, nogil=True)
def _beside(
    book: Book, desk: Desk, stage: int, stream: int, move: int, cursor: int, arrived: int, peer: int
) -> int:  # fmt: skip
    """An operation beside the computation, behind the last one on its own stream."""
    wait_for_all(book, cursor)
    wait_for_all(book, arrived)
    wait_for(book, desk.last[stage, stream])
    made: int = write(book, move, stage, peer)
    desk.last[stage, stream] = made
    return made


@njit(cache=True, nogil=True)
def _between(book: Book, desk: Desk, one: int, other: int, stream: int, move: int) -> int:
    """An operation of two stages, behind all that was named and the last one of both on this stream."""
    wait_for(book, desk.last[one, stream])
    wait_for(book, desk.last[other, stream])
    made: int = write(book, move, one, other)
    desk.last[one, stream] = desk.last[other, stream] = made
    return made


@njit(cache=True, nogil=True)
def _finish(book: Book, desk: Desk, legs: Legs, ending: Ending, flags: Ints, stages: int) -> None:
    """How a step ends: gradients that are left, tied embeddings, the update, weights gathered again."""
    for stage in range(stages):
        _reduce_left(book, desk, legs, flags, stage, NOTHING)
    for row in range(len(ending.tie)):
        _tie(book, desk, ending.tie_owner[row], ending.tie_other[row], ending.tie[row])
    for stage in range(stages):
        for stream in (DATA, TIED):
            if desk.last[stage, stream] >= 0:
                desk.arrived[stage] = add_to(book, desk.arrived[stage], desk.last[stage, stream])
        _in_order(book, desk, stage, stage, ending.update[stage])
        other = ending.twin[stage]
        for at in range(ending.gather_start[stage], ending.gather_start[stage + 1]):
            if other < 0:
                _beside(book, desk, stage, ZERO, ending.gather[at], desk.cursor[stage], NOTHING, NOTHING)
            elif other < stage:
                wait_for_all(book, desk.cursor[other])
                wait_for_all(book, desk.cursor[stage])
                _between(book, desk, other, stage, ZERO, ending.gather[at])


@njit(cache=True, nogil=True)
def _tie(book: Book, desk: Desk, owner: int, other: int, move: int) -> None:
    """Sum the gradients of an embedding that two stages hold between the two."""
    for stage in (owner, other):
        wait_for_all(book, desk.cursor[stage])
        wait_for_all(book, desk.arrived[stage])
    for stage in (owner, other):
        wait_for(book, desk.last[stage, DATA])
    made = write(book, move, owner, other)
    desk.last[owner, TIED] = desk.last[other, TIED] = made
