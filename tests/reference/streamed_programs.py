"""Fused sums whose tensors arrive one after the other: the layout of the buffer decides whether they do.

A fused buffer holds tensors one behind the other. A collective that cuts the *whole buffer* into one shard for each
rank (rank-major) hands out shards, and the last shard that reaches some rank may be of any tensor: every tensor is
complete everywhere only at the very end. Cut *each tensor* into shards instead (tensor-major) and let tensors follow
each other through the same arrows, and each is complete everywhere when its own last round is over. It is one launch
and the same bytes; there are as many rounds for each tensor as there were for all.

Here these are transformations of programs: `rank_major` is the plain fused collective, `tensor_after_tensor` takes
every tensor through the whole program in turn, `gathered_in_turn` reduces all and then gathers tensor after tensor.
What they make are programs like all others: they prove themselves, run on the simulator, and can be executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.fused import streamed_program
from ropewalk.collectives.program import Chunks, Condition, Pattern, Program, Round
from ropewalk.errors import ProgramError


def rank_major(program: Program, widths: Sequence[int]) -> Program:
    """The program on a buffer that holds tensors one behind the other, cut without regard to where they end.

    Tensor t has `widths[t]` chunks for each chunk of the program; tensor t of the result is its chunks from
    C · (widths[0] + … + widths[t-1]) on, with C the chunks of the program, whatever the layout.
    """
    width = int(_checked(widths).sum())
    place = np.arange(program.chunks * width).reshape(program.chunks, width)
    return _fused(f"{program.name}, fused rank-major", [(program, place)])


def tensor_after_tensor(program: Program, widths: Sequence[int]) -> Program:
    """Every tensor goes through the whole program on its own, one after the other, in the order of the buffer.

    >>> from ropewalk.collectives.ring import ring_all_reduce
    >>> fused = tensor_after_tensor(ring_all_reduce([[0, 1, 2, 3]]), [1, 2])
    >>> fused.check(), len(fused.rounds), fused.chunks
    (None, 12, 12)
    """
    return streamed_program(program, list(enumerate(_checked(widths).tolist())), apart=len(program.rounds))


def gathered_in_turn(scatter: Program, gather: Program, widths: Sequence[int]) -> Program:
    """One reduce-scatter of all tensors together, then their all-gathers one after the other.

    Rank r reduces its shard of every tensor in the same rounds, so that only the gathering is multiplied in rounds.
    """
    if (scatter.ranks, scatter.chunks) != (gather.ranks, gather.chunks):
        raise ProgramError(
            f"{scatter.name} and {gather.name} do not belong together: give the two halves of one all-reduce"
        )
    places = _places(scatter, widths)
    parts = [(scatter, np.concatenate(places, axis=1)), *((gather, place) for place in places)]
    return _fused(f"{scatter.name}, gathered tensor after tensor", parts)


def tensor_of_chunk(program: Program, widths: Sequence[int]) -> Ints:
    """Which tensor each chunk of a fused program is part of; `program` is the one that was fused."""
    size = _checked(widths)
    return np.repeat(np.arange(len(size)), size * program.chunks)


def widths_of(size_bytes: ArrayLike, most: int = 64) -> tuple[int, ...]:
    """Whole widths in proportion to sizes, each at least 1 and `most` for the largest tensor.

    Chunks of a program are equal, so that sizes are rounded to whole chunks; the largest rounding error is half a
    chunk, or a tensor that is made as large as a chunk because it cannot be smaller.
    """
    size = np.asarray(size_bytes, np.float64)
    if not size.size or size.min() <= 0 or most < 1:
        raise ProgramError("tensors to be fused need a positive size each: leave empty ones out")
    return tuple(np.maximum(1, np.rint(size / size.max() * most)).astype(int).tolist())


def arrivals(program: Program, tensor_of: Ints, end_s: ArrayLike) -> Floats:
    """When each tensor is complete on each rank: tensors x ranks, given the end of every send of the program.

    `end_s` lists sends round by round as the program does; a trace of the unrolled rounds has them in this order. A
    rank has a chunk for good when the last send that writes it there is over; what it has from the start is there at 0.
    """
    ends = np.asarray(end_s, np.float64)
    if ends.shape != (program.sends,):
        raise ProgramError(
            f"{program.name} has {program.sends} sends, but {ends.size} ends were given: give one for each"
        )
    written = np.zeros((program.chunks, program.ranks))
    first = 0
    for step in program.rounds:
        start, chunk = step.chunks()
        carried = np.diff(start)
        receiver = np.repeat(step.pattern.dst, carried)
        written[chunk, receiver] = np.repeat(ends[first : first + step.pattern.sends], carried)
        first += step.pattern.sends
    arrived = np.zeros((int(tensor_of.max()) + 1, program.ranks))
    np.maximum.at(arrived, tensor_of, written)
    return arrived


def streamed_arrivals(
    start_s: float, size_bytes: ArrayLike, seconds_per_byte: float, held_back: float = 0.0, start_up_s: float = 0.0
) -> Floats:
    """When the tensors of one streamed launch are there, in the order in which they follow each other.

    The start-up and the share `held_back` of all bytes come first; then every tensor takes its part of the rest. A
    fused sum that does not stream holds everything back.

    >>> streamed_arrivals(0, [1, 1, 1, 1], 1.0, start_up_s=0.5).tolist()
    [1.5, 2.5, 3.5, 4.5]
    """
    size = np.asarray(size_bytes, np.float64)
    moved = held_back * size.sum() + (1.0 - held_back) * np.cumsum(size)
    return np.asarray(start_s + start_up_s + seconds_per_byte * moved, np.float64)


def _checked(widths: Sequence[int]) -> Ints:
    size = np.asarray(widths)
    if size.ndim != 1 or not size.size or size.dtype.kind != "i" or size.min() < 1:
        raise ProgramError(f"widths {list(widths)[:8]} of fused tensors: give a whole number of 1 or more for each")
    return size.astype(np.int64)


def _places(program: Program, widths: Sequence[int]) -> list[Ints]:
    """For each tensor, row c: the chunks of the fused buffer that chunk c of the program is for it."""
    size = _checked(widths)
    first = program.chunks * (np.cumsum(size) - size)
    return [
        base + np.arange(program.chunks * width).reshape(program.chunks, width)
        for base, width in zip(first.tolist(), size.tolist(), strict=True)
    ]


def _fused(name: str, parts: list[tuple[Program, Ints]]) -> Program:
    """Programs one after the other in one launch, each on its own places of the fused buffer."""
    first, last = parts[0][0], parts[-1][0]
    chunks = 1 + max(int(place.max()) for _, place in parts)
    origin = np.zeros(chunks, np.int64)
    for _, place in parts:
        origin[place] = np.arange(len(place))[:, None]
    wide: dict[tuple[Pattern, int], Pattern] = {}
    rounds = []
    for program, place in parts:
        width = place.shape[1]
        for step in program.rounds:
            # Tensors of equal width share their arrows.
            key = step.pattern, width
            if key not in wide:
                there = step.pattern
                wide[key] = Pattern(there.src, there.dst, there.chunks * width, there.reduces, there.lane)
            rounds.append(Round(wide[key], partial(_moved, step.chunks, place)))
    return Program(
        name,
        first.ranks,
        chunks,
        tuple(rounds),
        pre=_of_origin(first.pre, origin),
        post=_of_origin(last.post, origin),
        own_chunks=first.own_chunks * (chunks // first.chunks),
    )


def _moved(chunks: Chunks, place: Ints) -> tuple[Ints, Ints]:
    start, carried = chunks()
    return start * place.shape[1], place[carried].ravel()


def _of_origin(condition: Condition, origin: Ints) -> Condition:
    return lambda chunk: condition(origin[chunk])
