"""Rows of timetables without writing them down: the n-th pass of a device by arithmetic."""

from __future__ import annotations

from ropewalk.compiled import kernel

EARLY, DEEP, GPIPE, INTERLEAVED, WRITTEN = range(5)
"""How rows are found: by these rules, or in columns that somebody wrote."""
FORWARD, BACKWARD = 0, 1


@kernel
def ahead_of(rule: int, stages: int, stage: int, micro_batches: int, pieces_each: int) -> int:
    """Forward passes that a stage runs before its first backward pass."""
    if rule == EARLY:
        return min(stages - stage, micro_batches)
    if rule == DEEP:
        return min(2 * (stages - stage) - 1, micro_batches)
    if rule == GPIPE:
        return micro_batches
    size = micro_batches // max(1, micro_batches // stages)
    return min((pieces_each - 1) * size + 2 * (stages - 1 - stage), micro_batches * pieces_each)


@kernel
def entry(
    rule: int, stages: int, stage: int, micro_batches: int, pieces_each: int, ahead: int, at: int
) -> tuple[int, int, int]:
    """Kind, piece and micro-batch of pass `at` in the row of a stage."""
    many = micro_batches * pieces_each
    if at < ahead:
        kind, number = FORWARD, at
    else:
        left, turn = many - ahead, at - ahead
        if turn >= 2 * left:
            kind, number = BACKWARD, turn - left
        else:
            first = FORWARD if rule == INTERLEAVED else BACKWARD
            kind = first if turn % 2 == 0 else 1 - first
            number = turn // 2 + (ahead if kind == FORWARD else 0)
    if rule != INTERLEAVED:
        return kind, stage, number
    size = micro_batches // max(1, micro_batches // stages)
    group, within = divmod(number, size * pieces_each)
    turn, place = divmod(within, size)
    piece = turn * stages + stage if kind == FORWARD else (pieces_each - 1 - turn) * stages + stage
    return kind, piece, group * size + place
