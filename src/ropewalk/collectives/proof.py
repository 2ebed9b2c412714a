"""The proof behind `Program.check`: replay every send and count, exactly, whose input is in whose copy.

The state is two bit sets for each rank and chunk: the ranks whose input the copy holds *once or more*, and those whose
input it holds *more than once*. Adding two copies is three bitwise operations on 64 contributors at a time, and no
number of additions can wrap around to a correct-looking "once".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Words
from ropewalk.errors import ProofError

if TYPE_CHECKING:
    from ropewalk.collectives.program import Fused, Pattern, Program


PROOF_BYTES = 1 << 28
"""Memory a proof may use for its state; chunks are independent, so larger programs are proved block by block."""


def prove(program: Program) -> None:
    """Raise `ProofError` unless the program is well formed and keeps its contract."""
    _check_shape(program)
    words = -(-program.ranks // 64)
    block = max(1, PROOF_BYTES // (16 * words * program.ranks))
    for first in range(0, program.chunks, block):
        _prove_block(program, np.arange(first, min(first + block, program.chunks)))
    if program.fused is not None:
        _prove_complete(program, program.fused)


def _prove_complete(program: Program, fused: Fused) -> None:
    """Every chunk is of one tensor, and a tensor is complete behind the last round that writes it.

    What a rank ends with is proved already, and nothing changes behind the last write: so it has the sum from there on.
    """
    tensors = len(fused.complete_after)
    if fused.tensor.shape != (program.chunks,) or fused.complete_after.shape != (tensors, program.ranks):
        raise ProofError(f"{program.name} names a tensor for other chunks than it has: give one for each chunk")
    if not np.array_equal(np.unique(fused.tensor), np.arange(tensors)):
        raise ProofError(f"{program.name} does not move each of its {tensors} tensors: give every tensor a chunk")
    written = np.zeros((tensors, program.ranks), np.int64)
    for number, step in enumerate(program.rounds, 1):
        start, chunk = step.chunks()
        written[fused.tensor[chunk], np.repeat(step.pattern.dst, np.diff(start))] = number
    wrong = np.argwhere(written != fused.complete_after)
    if len(wrong):
        tensor, rank = wrong[0].tolist()
        raise ProofError(
            f"{program.name} says that tensor {tensor} is complete on rank {rank} after round "
            f"{fused.complete_after[tensor, rank]}, but it is after round {written[tensor, rank]}"
        )


def _prove_block(program: Program, chunk: NDArray[np.int64]) -> None:
    ranks, count = program.ranks, len(chunk)
    given = program.pre(chunk)
    once = np.zeros((ranks, count, -(-ranks // 64)), np.uint64)
    holder, index = np.nonzero(given)
    once[holder, index, holder // 64] = np.uint64(1) << (holder % 64).astype(np.uint64)
    wanted = np.bitwise_or.reduce(once, axis=0)
    more = np.zeros_like(once)
    _replay(program, int(chunk[0]), count, once.reshape(ranks * count, -1), more.reshape(ranks * count, -1))
    wrong = program.post(chunk) & ((once != wanted) | (more != 0)).any(axis=2)
    if wrong.any():
        rank, index_wrong = (int(x) for x in np.argwhere(wrong)[0])
        held = _members(once[rank, index_wrong], ranks), _members(more[rank, index_wrong], ranks)
        raise ProofError(_explain(program.name, rank, int(chunk[index_wrong]), *held, given[:, index_wrong]))


def _replay(program: Program, first: int, count: int, once: Words, more: Words) -> None:
    """Run all rounds on the chunks first … first+count-1; row rank*count + chunk - first is one copy."""
    for step in program.rounds:
        start, ids = step.chunks()
        carried = np.diff(start)
        here = (ids >= first) & (ids < first + count)
        if not here.any():
            continue
        index = ids[here] - first
        src = np.repeat(step.pattern.src, carried)[here].astype(np.int64) * count + index
        dst = np.repeat(step.pattern.dst, carried)[here].astype(np.int64) * count + index
        adds = np.repeat(step.pattern.reduces, carried)[here]
        # Indexing copies, so every send reads the state before the round.
        arriving, arriving_more = once[src], more[src]
        if not adds.all():
            once[dst[~adds]], more[dst[~adds]] = arriving[~adds], arriving_more[~adds]
        if adds.any():
            row, plus, plus_more = _sum_by_row(dst[adds], arriving[adds], arriving_more[adds])
            more[row] |= plus_more | (once[row] & plus)
            once[row] |= plus


def _sum_by_row(row: NDArray[np.int64], once: Words, more: Words) -> tuple[NDArray[np.int64], Words, Words]:
    """Add up everything that arrives at the same copy, pairwise, so that 2^k arrivals take k passes."""
    order = np.argsort(row, kind="stable")
    row, once, more = row[order], once[order], more[order]
    while True:
        leads = np.concatenate([[True], row[1:] != row[:-1]])
        if leads.all():
            return row, once, more
        begins = np.flatnonzero(leads)
        position = np.arange(len(row)) - np.repeat(begins, np.diff(np.append(begins, len(row))))
        odd = np.flatnonzero(position % 2)
        more[odd - 1] |= more[odd] | (once[odd - 1] & once[odd])
        once[odd - 1] |= once[odd]
        even = position % 2 == 0
        row, once, more = row[even], once[even], more[even]


def _members(bits: Words, ranks: int) -> NDArray[np.bool_]:
    rank = np.arange(ranks)
    shifted = bits[rank // 64] >> (rank % 64).astype(np.uint64)
    return np.asarray(shifted & np.uint64(1), np.bool_)


def _explain(
    name: str,
    rank: int,
    chunk: int,
    held: NDArray[np.bool_],
    more: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
) -> str:
    # Contributions come from ranks that `pre` names, so there can be too few or too many of them, but no others.
    lacks, excess = np.flatnonzero(wanted & ~held), np.flatnonzero(more)
    facts = []
    if len(lacks):
        facts.append(f"lacks the input of rank {', '.join(map(str, lacks[:5]))}")
    if len(excess):
        facts.append(f"has the input of rank {', '.join(map(str, excess[:5]))} too often")
    return f"{name}: rank {rank} ends with a chunk {chunk} that {' and '.join(facts)}"


def _check_shape(program: Program) -> None:
    """Ranks and chunks exist, sizes match, chunks stay in their lane, no copy is touched twice where order matters."""
    lane_of_chunk = np.full(program.chunks, -1, np.int64)
    sound = {pattern: _flaw_of_pattern(pattern, program.ranks) for pattern in program.patterns}
    for number, step in enumerate(program.rounds):
        pattern = step.pattern
        start, ids = step.chunks()
        flaw = sound[pattern] or _flaw_of_chunks(pattern, start, ids, program.chunks)
        if flaw is None:
            lane = np.repeat(pattern.lane, pattern.chunks)
            before = lane_of_chunk[ids]
            lane_of_chunk[ids] = lane
            # The second comparison sees a chunk that has two lanes within this round: only one of them was kept.
            if ((before >= 0) & (before != lane)).any() or (lane_of_chunk[ids] != lane).any():
                flaw = "a chunk moves in two lanes, whose order nothing guarantees"
        if flaw is not None:
            raise ProofError(f"{program.name}, round {number}: {flaw}")


def _flaw_of_pattern(pattern: Pattern, ranks: int) -> str | None:
    columns = (pattern.src, pattern.dst, pattern.chunks, pattern.reduces, pattern.lane)
    if len({len(column) for column in columns}) > 1:
        return "the columns of the pattern have different lengths"
    if not pattern.sends:
        return None
    if min(pattern.src.min(), pattern.dst.min()) < 0 or max(pattern.src.max(), pattern.dst.max()) >= ranks:
        return f"a send names a rank outside 0…{ranks - 1}"
    if (pattern.src == pattern.dst).any():
        return f"rank {int(pattern.src[pattern.src == pattern.dst][0])} sends to itself"
    if pattern.chunks.min() < 1:
        return "a send carries no chunk"
    if pattern.lane.min() < 0:
        return "a send has a negative lane"
    return None


def _flaw_of_chunks(pattern: Pattern, start: NDArray[np.int64], ids: NDArray[np.int64], chunks: int) -> str | None:
    if start[0] != 0 or start[-1] != len(ids) or not np.array_equal(np.diff(start), pattern.chunks):
        return "the pattern promises other sizes than the chunks that move"
    if len(ids) and (ids.min() < 0 or ids.max() >= chunks):
        return f"a send names a chunk outside 0…{chunks - 1}"
    sent = np.repeat(pattern.src, pattern.chunks).astype(np.int64) * chunks + ids
    received = np.repeat(pattern.dst, pattern.chunks).astype(np.int64) * chunks + ids
    copies, arrivals = np.unique(received, return_counts=True)
    if np.isin(sent, copies).any():
        return "a rank sends and receives the same chunk in one round"
    overwritten = received[np.repeat(~pattern.reduces, pattern.chunks)]
    if (arrivals[np.searchsorted(copies, overwritten)] > 1).any():
        return "a chunk is overwritten and written by another send in one round"
    return None
