"""The gang of a step, written pass by pass, as a kernel: what each stage runs in order, what runs beside it."""

from __future__ import annotations

from ropewalk.arrays import Ints
from ropewalk.compiled import kernel
from ropewalk.pointer import point_at
from ropewalk.task.lower._book_kernel import (
    FULL,
    NOTHING,
    GangBook,
    add_to,
    both_lists,
    in_turn,
    wait_for,
    wait_for_all,
    write,
)
from ropewalk.task.lower.columns import SPARE_THREADS, Ending, Hops, Legs, TimetableRows, WriterState

FORWARD, WEIGHT = 0, 3
"""As in `Pass`."""
DATA, ZERO, TIED, TO = 0, 1, 2, 3
"""Streams that keep their own order: gradients, weights, tied embeddings, and from `TO` on sends to each stage."""
OVERLAP, SHARED_OUT, PREFETCH, TWO_COPIES, IN_LINE, UPDATED_AHEAD = 0, 1, 2, 3, 4, 5
"""Flags of a strategy."""
Seat = tuple[int, int, int]
"""A stage, its thread, and a pass of its row."""
NOBODY = (NOTHING, NOTHING, NOTHING)


@kernel
def write_gang(
    book: GangBook, desk: WriterState, rows: TimetableRows, legs: Legs, hops: Hops, ending: Ending, flags: Ints
) -> bool:
    """Write all passes of all stages and what comes behind them; False where the timetable waits for itself."""
    book, desk, rows = point_at(book), point_at(desk), point_at(rows)
    legs, hops, ending = point_at(legs), point_at(hops), point_at(ending)
    every = len(rows.row_start) - 1
    together = flags[SHARED_OUT] and flags[TWO_COPIES]
    moving = True
    while moving:
        moving = False
        for row in range(every):
            twin = ending.twin[row] if together else NOTHING
            if twin > row or not together:
                while desk.at[row] < rows.row_start[row + 1] and _try_slot(
                    book, desk, rows, legs, hops, flags, row, twin
                ):
                    moving = True
                    if book.size[FULL]:
                        return True
    for row in range(every):
        if desk.at[row] < rows.row_start[row + 1]:
            return False
    _finish(book, desk, rows, legs, ending, flags)
    return True


@kernel
def _try_slot(
    book: GangBook, desk: WriterState, rows: TimetableRows, legs: Legs, hops: Hops, flags: Ints, row: int, twin: int
) -> bool:
    """Write the next pass of a row, or the next two side by side, if all that they need is written.

    With a twin, also the same passes of that row, in the other copy of the model: they share weights out together.
    """
    many = 1 + rows.paired[desk.at[row]]
    for here in (row, twin):
        for entry in range(desk.at[here], desk.at[here] + many) if here >= 0 else range(0):
            if not _has_all(desk, rows, hops, entry):
                return False
    for here in (row, twin):
        for entry in range(desk.at[here], desk.at[here] + many) if here >= 0 else range(0):
            _receive(book, desk, rows, hops, here, entry)
    spare = len(desk.cursor) - SPARE_THREADS
    if many == 1:
        mate = (twin, twin, desk.at[twin]) if twin >= 0 else NOBODY
        _run(book, desk, rows, legs, flags, (rows.home[rows.piece[desk.at[row]]], row, desk.at[row]), mate)
    else:
        # Each of two passes side by side has a thread of its own.
        _fork(desk, row, spare)
        _fork(desk, twin, spare + 2)
        for place in range(2):
            mate = (twin, spare + 2 + place, desk.at[twin] + place) if twin >= 0 else NOBODY
            _run(book, desk, rows, legs, flags, (row, spare + place, desk.at[row] + place), mate)
        _join(book, desk, row, spare)
        _join(book, desk, twin, spare + 2)
    for here in (row, twin):
        for entry in range(desk.at[here], desk.at[here] + many) if here >= 0 else range(0):
            _send(book, desk, rows, hops, flags, here, entry)
        if here >= 0:
            desk.at[here] += many
    return True


@kernel
def _fork(desk: WriterState, row: int, spare: int) -> None:
    """Two threads that begin where the row stands."""
    if row >= 0:
        for thread in (spare, spare + 1):
            desk.cursor[thread], desk.arrived[thread] = desk.cursor[row], desk.arrived[row]
            desk.before[thread], desk.gathered[thread] = desk.before[row], desk.gathered[row]


@kernel
def _join(book: GangBook, desk: WriterState, row: int, spare: int) -> None:
    """The row goes on when both threads have come to their ends."""
    if row >= 0:
        one, other = spare, spare + 1
        desk.cursor[row] = both_lists(book, desk.cursor[one], desk.cursor[other])
        desk.arrived[row] = both_lists(book, desk.arrived[one], desk.arrived[other])
        desk.before[row], desk.gathered[row] = desk.before[other], desk.gathered[other]


@kernel
def _has_all(desk: WriterState, rows: TimetableRows, hops: Hops, entry: int) -> bool:
    """Is all written that a pass takes from other pieces? Gradients of weights take nothing."""
    if rows.kind[entry] == WEIGHT:
        return True
    back = int(rows.kind[entry] != FORWARD)
    row = back * (len(hops.take_start) // 2) + rows.piece[entry]
    for at in range(hops.take_start[row], hops.take_start[row + 1]):
        if not desk.done[back, hops.giver[hops.take[at]], rows.micro_batch[entry]]:
            return False
    return True


@kernel
def _receive(book: GangBook, desk: WriterState, rows: TimetableRows, hops: Hops, thread: int, entry: int) -> None:
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
        desk.arrived[thread] = add_to(book, desk.arrived[thread], taken)
        if hops.gathered[hop] >= 0:
            _in_order(book, desk, rows.home[rows.piece[entry]], thread, hops.gathered[hop])


@kernel
def _send(
    book: GangBook, desk: WriterState, rows: TimetableRows, hops: Hops, flags: Ints, thread: int, entry: int
) -> None:
    """Hand the result of a pass to the pieces that need it, where their ranks do not have it."""
    if rows.kind[entry] == WEIGHT:
        return
    back, piece, number = int(rows.kind[entry] != FORWARD), rows.piece[entry], rows.micro_batch[entry]
    row = back * (len(hops.give_start) // 2) + piece
    stage, cursor, arrived = rows.home[piece], desk.cursor[thread], desk.arrived[thread]
    for at in range(hops.give_start[row], hops.give_start[row + 1]):
        hop = hops.give[at]
        peer = hops.to_stage[hop]
        if hops.sent[hop] < 0:
            continue
        if flags[IN_LINE]:
            desk.sent[hop, number] = _beside(book, desk, stage, TO + peer, hops.sent[hop], cursor, arrived, peer)
        else:
            wait_for_all(book, cursor)
            wait_for_all(book, arrived)
            desk.sent[hop, number] = write(book, hops.sent[hop], stage, peer)
    desk.done[back, piece, number] = True


@kernel
def _run(
    book: GangBook, desk: WriterState, rows: TimetableRows, legs: Legs, flags: Ints, seat: Seat, twin: Seat
) -> None:
    """Write one pass, and beside it the one of a twin, which has the same legs."""
    stage, thread, entry = seat
    first, behind = _legs_of(rows, legs, flags, entry)
    shift = _legs_of(rows, legs, flags, twin[2])[0] - first if twin[0] >= 0 else 0
    for leg in range(first, behind):
        _gather(book, desk, legs, flags, seat, twin, leg)
        _run_leg(book, desk, legs, flags, seat, leg)
        if twin[0] >= 0:
            desk.gathered[twin[1]] = desk.gathered[thread]
            _run_leg(book, desk, legs, flags, twin, leg + shift)
    if flags[SHARED_OUT]:
        # Gradients that are shared out have no place to wait for the end of the step.
        made = _reduce_left(book, desk, legs, flags, stage, thread)
        if twin[0] >= 0:
            made = _reduce_left(book, desk, legs, flags, twin[0], twin[1])
        for waiting in (thread, twin[1]):
            if made >= 0 and waiting >= 0:
                desk.arrived[waiting] = both_lists(book, desk.arrived[waiting], made)


@kernel
def _legs_of(rows: TimetableRows, legs: Legs, flags: Ints, entry: int) -> tuple[int, int]:
    """The first leg of a pass, and the one behind its last."""
    marked = int(flags[SHARED_OUT] or rows.marked[entry])
    which = (rows.piece[entry] * 4 + rows.kind[entry]) * 2 + marked
    return legs.first[which], legs.behind[which]


@kernel
def _gather(book: GangBook, desk: WriterState, legs: Legs, flags: Ints, seat: Seat, twin: Seat, leg: int) -> None:
    """Gather the weights of a leg, ahead of the one before where they may be, among the ranks of a twin as well."""
    begin, behind = legs.gather_start[leg], legs.gather_start[leg + 1]
    if behind == begin or legs.layer[leg] == desk.gathered[seat[1]]:
        return
    since = desk.before if flags[PREFETCH] else desk.cursor
    cursor, arrived = since[seat[1]], NOTHING if flags[PREFETCH] else desk.arrived[seat[1]]
    if flags[UPDATED_AHEAD]:
        cursor, arrived = NOTHING, NOTHING
    for at in range(begin, behind):
        if twin[0] < 0:
            made = _beside(book, desk, seat[0], ZERO, legs.gather[at], cursor, arrived, NOTHING)
        else:
            wait_for_all(book, cursor)
            wait_for_all(book, arrived)
            wait_for_all(book, since[twin[1]])
            if not flags[PREFETCH]:
                wait_for_all(book, desk.arrived[twin[1]])
            made = _between(book, desk, seat[0], twin[0], ZERO, legs.gather[at])
            desk.arrived[twin[1]] = add_to(book, desk.arrived[twin[1]], made)
        desk.arrived[seat[1]] = add_to(book, desk.arrived[seat[1]], made)
    desk.gathered[seat[1]] = legs.layer[leg]


@kernel
def _run_leg(book: GangBook, desk: WriterState, legs: Legs, flags: Ints, seat: Seat, leg: int) -> None:
    """Run a leg, and reduce the gradients that it completes."""
    stage, thread, _ = seat
    desk.before[thread] = desk.cursor[thread]
    running = NOTHING
    for at in range(legs.move_start[leg], legs.move_start[leg + 1]):
        if legs.beside[at]:
            wait_for_all(book, desk.cursor[thread])
            wait_for_all(book, desk.arrived[thread])
            running = add_to(book, running, write(book, legs.move[at], stage, NOTHING))
        else:
            _in_order(book, desk, stage, thread, legs.move[at])
            desk.arrived[thread], running = running, NOTHING
    for row in range(legs.reduce_start[leg], legs.reduce_start[leg + 1]):
        if flags[OVERLAP]:
            _reduce(book, desk, legs, flags, stage, row, desk.cursor[thread], desk.arrived[thread])
        else:
            desk.owed[stage] = add_to(book, desk.owed[stage], row)


@kernel
def _reduce_left(book: GangBook, desk: WriterState, legs: Legs, flags: Ints, stage: int, thread: int) -> int:
    """Reduce the gradients that wait for the end of the pass; a list of what was written."""
    count = in_turn(book, desk.owed[stage])
    rows = book.scratch[:count].copy()
    desk.owed[stage] = NOTHING
    since, besides, written = desk.cursor[thread], desk.arrived[thread], NOTHING
    for row in rows:
        made = _reduce(book, desk, legs, flags, stage, row, since, besides)
        if made >= 0:
            written = add_to(book, written, made)
    return written


@kernel
def _reduce(
    book: GangBook, desk: WriterState, legs: Legs, flags: Ints, stage: int, row: int, cursor: int, arrived: int
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


@kernel
def _in_order(book: GangBook, desk: WriterState, stage: int, thread: int, move: int) -> None:
    """An operation that the stage cannot go on without."""
    wait_for_all(book, desk.cursor[thread])
    wait_for_all(book, desk.arrived[thread])
    desk.cursor[thread] = add_to(book, NOTHING, write(book, move, stage, NOTHING))
    desk.arrived[thread] = NOTHING


@kernel
def _beside(
    book: GangBook, desk: WriterState, stage: int, stream: int, move: int, cursor: int, arrived: int, peer: int
) -> int:  # fmt: skip
    """An operation beside the computation, behind the last one on its own stream."""
    wait_for_all(book, cursor)
    wait_for_all(book, arrived)
    wait_for(book, desk.last[desk.line[stage], stream])
    made: int = write(book, move, stage, peer)
    desk.last[desk.line[stage], stream] = made
    return made


@kernel
def _between(book: GangBook, desk: WriterState, one: int, other: int, stream: int, move: int) -> int:
    """An operation of two stages, behind all that was named and the last one of both on this stream."""
    lines = desk.line[one], desk.line[other]
    wait_for(book, desk.last[lines[0], stream])
    wait_for(book, desk.last[lines[1], stream])
    made: int = write(book, move, one, other)
    desk.last[lines[0], stream] = desk.last[lines[1], stream] = made
    return made


@kernel
def _finish(book: GangBook, desk: WriterState, rows: TimetableRows, legs: Legs, ending: Ending, flags: Ints) -> None:
    """How a step ends: gradients that are left, tied embeddings, the update, weights gathered again."""
    stages = len(ending.update)
    for stage in range(stages):
        _reduce_left(book, desk, legs, flags, stage, rows.row_of_stage[stage])
    for tie in range(len(ending.tie)):
        _tie(book, desk, rows, ending.tie_owner[tie], ending.tie_other[tie], ending.tie[tie])
    for stage in range(stages):
        thread = rows.row_of_stage[stage]
        for at in range(ending.line_start[stage], ending.line_start[stage + 1]):
            for stream in (DATA, TIED):
                if desk.last[ending.line[at], stream] >= 0:
                    desk.arrived[thread] = add_to(book, desk.arrived[thread], desk.last[ending.line[at], stream])
        _in_order(book, desk, stage, thread, ending.update[stage])
        other = ending.twin[stage]
        for at in range(ending.gather_start[stage], ending.gather_start[stage + 1]):
            if other < 0:
                _beside(book, desk, stage, ZERO, ending.gather[at], desk.cursor[thread], NOTHING, NOTHING)
            elif other < stage:
                wait_for_all(book, desk.cursor[rows.row_of_stage[other]])
                wait_for_all(book, desk.cursor[thread])
                _between(book, desk, other, stage, ZERO, ending.gather[at])


@kernel
def _tie(book: GangBook, desk: WriterState, rows: TimetableRows, owner: int, other: int, move: int) -> None:
    """Sum the gradients of an embedding that two stages hold between the two."""
    for stage in (owner, other):
        wait_for_all(book, desk.cursor[rows.row_of_stage[stage]])
        wait_for_all(book, desk.arrived[rows.row_of_stage[stage]])
    for stage in (owner, other):
        wait_for(book, desk.last[desk.line[stage], DATA])
    made = write(book, move, owner, other)
    desk.last[desk.line[owner], TIED] = desk.last[desk.line[other], TIED] = made
