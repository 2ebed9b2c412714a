"""Fused collectives whose tensors stream: pieces follow each other along the arrows of any program, some rounds apart.

A fused buffer holds many tensors. Cut into one shard for each rank, no tensor is complete before the very end. Cut
tensor by tensor instead, every piece goes through the whole program on its own, and while one is broadcast the next is
already reduced: piece k enters `apart` rounds behind piece k-1. Whatever the program is (a ring, halving and doubling,
a hierarchy, a tree, a forest), the order of the pieces is an input, and the result says when each tensor is complete
on each rank. `Program.check` proves both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.collectives.program import Chunks, Fused, Pattern, Program, Round
from ropewalk.errors import ProgramError

Piece = tuple[int, int]
"""A tensor, and chunks that it has in this piece for each chunk of the program."""


def streamed_program(program: Program, pieces: Sequence[Piece], apart: int | None = None) -> Program:
    """The program on pieces of tensors in the given order, each `apart` rounds behind the one before.

    As many rounds apart as reductions take, a piece is reduced while the one before is broadcast; that is so unless
    `apart` is given. One round apart they follow each other like segments of a pipeline, all rounds apart they go one
    after the other.

    >>> from ropewalk.collectives.ring import ring_all_reduce
    >>> fused = streamed_program(ring_all_reduce([[0, 1, 2, 3]]), [(1, 2), (0, 1), (1, 1)])
    >>> fused.check(), len(fused.rounds), fused.chunks
    (None, 12, 16)
    >>> fused.fused.complete_after.max(axis=1).tolist()  # tensor 0 went second, tensor 1 first and last
    [9, 12]
    """
    _check(program, pieces)
    length = len(program.rounds)
    gap = reducing_rounds(program) if apart is None else apart
    if not 1 <= gap <= max(1, length):
        raise ProgramError(f"pieces of {program.name} {gap} rounds apart: give 1 to {length}, its rounds")
    places = _places(program, pieces)
    joint: dict[tuple[tuple[Pattern, int], ...], Pattern] = {}
    rounds = []
    for number in range(length + gap * (len(pieces) - 1)):
        # Pieces that are under way, the older one first: (piece, its own round).
        first = max(0, -(-(number - length + 1) // gap))
        parts = [(at, number - gap * at) for at in range(first, min(len(pieces), number // gap + 1))]
        steps = [(program.rounds[turn], places[at]) for at, turn in parts]
        key = tuple((step.pattern, place.shape[1]) for step, place in steps)
        if key not in joint:
            joint[key] = _joined(key)
        rounds.append(Round(joint[key], partial(_carried, tuple((step.chunks, place) for step, place in steps))))
    return _program(program, pieces, places, gap, tuple(rounds))


def reducing_rounds(program: Program) -> int:
    """Rounds until the last send that adds, at least one.

    >>> from ropewalk.collectives.ring import ring_all_reduce
    >>> reducing_rounds(ring_all_reduce([[0, 1, 2, 3]]))
    3
    """
    return max((1 + number for number, step in enumerate(program.rounds) if step.pattern.reduces.any()), default=1)


def _program(
    program: Program, pieces: Sequence[Piece], places: list[Ints], gap: int, rounds: tuple[Round, ...]
) -> Program:
    chunks = sum(place.size for place in places)
    origin, tensor = np.zeros(chunks, np.int64), np.zeros(chunks, np.int64)
    written = last_writes(program)
    complete = np.zeros((1 + max(tensor for tensor, _ in pieces), program.ranks), np.int64)
    for number, (place, (of, _)) in enumerate(zip(places, pieces, strict=True)):
        origin[place] = np.arange(program.chunks)[:, None]
        tensor[place] = of
        ends = written.max(axis=0)
        complete[of] = np.maximum(complete[of], np.where(ends > 0, ends + gap * number, 0))
    return Program(
        f"{program.name}, {len(pieces)} pieces {gap} rounds apart",
        program.ranks,
        chunks,
        rounds,
        pre=lambda chunk: program.pre(origin[chunk]),
        post=lambda chunk: program.post(origin[chunk]),
        own_chunks=program.own_chunks * (chunks // program.chunks),
        fused=Fused(tensor, complete),
    )


def last_writes(program: Program) -> Ints:
    """By chunk and rank: rounds after which nothing more is written there."""
    written = np.zeros((program.chunks, program.ranks), np.int64)
    for number, step in enumerate(program.rounds, 1):
        start, chunk = step.chunks()
        written[chunk, np.repeat(step.pattern.dst, np.diff(start))] = number
    return written


def _places(program: Program, pieces: Sequence[Piece]) -> list[Ints]:
    """For each piece, row c: the chunks of the fused buffer that chunk c of the program is for it.

    The buffer holds tensors one behind the other, and a tensor its pieces in their order.
    """
    width = np.array([width for _, width in pieces], np.int64)
    by_tensor = np.argsort([tensor for tensor, _ in pieces], kind="stable")
    first = np.empty(len(pieces), np.int64)
    first[by_tensor] = program.chunks * (np.cumsum(width[by_tensor]) - width[by_tensor])
    return [
        base + np.arange(program.chunks * wide).reshape(program.chunks, wide)
        for base, wide in zip(first.tolist(), width.tolist(), strict=True)
    ]


def _joined(parts: tuple[tuple[Pattern, int], ...]) -> Pattern:
    return Pattern(
        src=np.concatenate([one.src for one, _ in parts]),
        dst=np.concatenate([one.dst for one, _ in parts]),
        chunks=np.concatenate([one.chunks * width for one, width in parts]),
        reduces=np.concatenate([one.reduces for one, _ in parts]),
        lane=np.concatenate([one.lane for one, _ in parts]),
    )


def _carried(parts: tuple[tuple[Chunks, Ints], ...]) -> tuple[Ints, Ints]:
    counts, ids = [], []
    for chunks, place in parts:
        start, own = chunks()
        counts.append(np.diff(start) * place.shape[1])
        ids.append(place[own].ravel())
    return np.concatenate([[0], np.cumsum(np.concatenate(counts))]), np.concatenate(ids)


def _check(program: Program, pieces: Sequence[Piece]) -> None:
    if not pieces or any(width < 1 for _, width in pieces):
        raise ProgramError(f"{program.name}: give pieces of at least one chunk each, got {list(pieces)[:4]}")
    named = {tensor for tensor, _ in pieces}
    if named != set(range(len(named))):
        raise ProgramError(f"{program.name}: pieces name tensors {sorted(named)[:6]}: number them from 0 without gaps")
