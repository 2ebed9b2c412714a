"""Bytes on the fullest GPU of many candidates: what `strategy.memory` says, in bulk."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel
from ropewalk.planner._rows_kernel import FORWARD, INTERLEAVED, WRITTEN, ahead_of, entry
from ropewalk.planner.columns import Column, Setting
from ropewalk.planner.layers import Held
from ropewalk.planner.written import WrittenRows
from ropewalk.pointer import point_at

SPLITTING, CUT, STAGES, PIECES_EACH = (int(Column[name]) for name in ("SPLITTING", "CUT", "STAGES", "PIECES_EACH"))
MICRO_BATCHES, RULE, WRITTEN_AT, ZERO = (int(Column[name]) for name in ("MICRO_BATCHES", "RULE", "WRITTEN", "ZERO"))
RECOMPUTE, AGAIN, REPLICAS = (int(Column[name]) for name in ("RECOMPUTE", "AGAIN", "REPLICAS"))
EXPERT_COPIES = int(Column.EXPERT_COPIES)
ELEMENT_BYTES, GRADIENT_BYTES = int(Setting.ELEMENT_BYTES), int(Setting.GRADIENT_BYTES)
STATE_BYTES, PREFETCH, REGATHER = int(Setting.STATE_BYTES), int(Setting.PREFETCH), int(Setting.REGATHER)
COPY_BYTES = int(Setting.COPY_BYTES)
DENSE, EXPERTS, TABLE, TENSORS, TIED, EMBEDDING = range(6)
KEPT, WORKING, BLOCK, NARROW = Held.KEPT, Held.WORKING, Held.BLOCK, Held.NARROW
FROZEN, FROZEN_EXPERT, FROZEN_TIED = Held.FROZEN, Held.FROZEN_EXPERT, Held.FROZEN_TIED
BYTES = 2
"""Where the bytes of a stage stand, behind what it updates."""
FULL = 2
"""The kind of recomputation that runs whole layers again."""


@kernel
def memory_of_all(
    candidates: Ints, held: Floats, cuts: Ints, again: Ints, written: WrittenRows, settings: Floats, stages: Floats
) -> None:
    """Fill what a rank of every stage has: parameters that it updates, tensors that hold them, bytes.

    `stages` has these three numbers for every candidate and stage.
    """
    written = point_at(written)
    for at in range(len(candidates)):
        _of_one(candidates[at], held, cuts, again, written, settings, stages[at])


@kernel
def _of_one(
    one: Ints, held: Floats, cuts: Ints, again: Ints, written: WrittenRows, settings: Floats, found: Floats
) -> None:
    stages, each, layers = one[STAGES], one[PIECES_EACH], held.shape[1]
    pieces = stages * each
    kept, whole, back = np.zeros(pieces), np.zeros(pieces), np.zeros(pieces)
    for piece in range(pieces):
        first, end = cuts[one[CUT] + piece], cuts[one[CUT] + piece + 1] if piece + 1 < pieces else layers
        seen = int(np.int64(0))  # a bare 0 is of another type at first: `kind_of` would be compiled twice
        for layer in range(first, end):
            row = held[one[SPLITTING], layer]
            kind = kind_of(one, again[one[AGAIN] + piece], row, seen)
            seen += int(row[BLOCK])
            kept[piece] += row[KEPT + kind]
            whole[piece] += row[KEPT + kind] + row[WORKING + kind]
            back[piece] = max(back[piece], row[WORKING + kind])
    for stage in range(stages):
        states = _states(one, held, cuts, written, settings, stage, found[stage])
        found[stage, BYTES] = states + _peak(one, written, stage, kept, whole, back)


@kernel
def kind_of(one: Ints, again: int, row: Floats, seen: int) -> int:
    """The kind of recomputation of a layer behind so many blocks of a piece that has `again` recomputed in full."""
    return FULL if row[BLOCK] > 0 and seen < again else int(one[RECOMPUTE])


@kernel
def home_of(one: Ints, written: WrittenRows, piece: int) -> int:
    """The stage that holds a piece."""
    if one[RULE] == WRITTEN:
        return int(written.home[written.home_start[one[WRITTEN_AT]] + piece])
    return int(piece % one[STAGES])


@kernel
def _states(
    one: Ints, held: Floats, cuts: Ints, written: WrittenRows, settings: Floats, stage: int, updated: Floats
) -> float:
    """Bytes of weights, gradients and optimiser state of a stage."""
    layers, pieces = held.shape[1], one[STAGES] * one[PIECES_EACH]
    replicas, copies = one[REPLICAS], one[EXPERT_COPIES]
    trained, mine, tensors, tied, has_embedding = 0.0, 0.0, 0.0, 0.0, False
    frozen, mine_frozen, frozen_tied = 0.0, 0.0, 0.0
    largest, second, most = 0.0, 0.0, 0.0
    narrow, most_narrow, next_narrow = 0.0, 0.0, 0.0
    for piece in range(pieces):
        if home_of(one, written, piece) != stage:
            continue
        first, end = cuts[one[CUT] + piece], cuts[one[CUT] + piece + 1] if piece + 1 < pieces else layers
        for layer in range(first, end):
            row = held[one[SPLITTING], layer]
            size = row[DENSE] + row[EXPERTS] + row[TABLE]
            trained += size
            most = max(most, size)
            size += row[FROZEN] + row[FROZEN_EXPERT]
            frozen += row[FROZEN] + row[FROZEN_EXPERT]
            mine_frozen += np.ceil(row[FROZEN] / replicas) + np.ceil(row[FROZEN_EXPERT] / copies)
            frozen_tied += row[FROZEN_TIED]
            mine += np.ceil(row[DENSE] / replicas) + np.ceil(row[EXPERTS] / copies) + row[TABLE]
            tensors += row[TENSORS]
            tied += row[TIED]
            has_embedding = has_embedding or row[EMBEDDING] > 0
            if size > largest:
                largest, second = size, largest
            elif size > second:
                second = size
            narrow += row[NARROW]
            if row[NARROW] > most_narrow:
                most_narrow, next_narrow = row[NARROW], most_narrow
            elif row[NARROW] > next_narrow:
                next_narrow = row[NARROW]
    copied = 0.0 if has_embedding else tied
    trained += copied
    mine = mine + np.ceil(copied / replicas) if one[ZERO] else trained
    if not has_embedding:
        frozen += frozen_tied
        mine_frozen += np.ceil(frozen_tied / replicas)
    all_of_it, kept = trained + frozen, mine + mine_frozen
    updated[0], updated[1] = mine, tensors
    gathered = largest + second if settings[PREFETCH] else largest
    shared_out = one[ZERO] >= 3 and settings[REGATHER] > 0
    weights = kept + min(gathered, all_of_it - kept) if shared_out else all_of_it
    if shared_out:
        narrow = most_narrow + next_narrow if settings[PREFETCH] else most_narrow
    gradients = mine + min(most, trained - mine) if one[ZERO] >= 2 else trained
    in_all = weights * settings[ELEMENT_BYTES] + narrow * settings[COPY_BYTES]
    return float(in_all + gradients * settings[GRADIENT_BYTES] + mine * settings[STATE_BYTES])


@kernel
def _peak(one: Ints, written: WrittenRows, stage: int, kept: Floats, whole: Floats, back: Floats) -> float:
    """The most bytes kept for backward passes on a stage."""
    rule, stages, many, each = one[RULE], one[STAGES], one[MICRO_BATCHES], one[PIECES_EACH]
    if rule == WRITTEN:
        return float(_written_peak(written, one[WRITTEN_AT], stage, kept, whole, back))
    ahead = ahead_of(rule, stages, stage, many, each)
    if rule != INTERLEAVED:
        return float(ahead * kept[stage] + back[stage])
    now, fullest = 0.0, 0.0
    # Behind the forward passes ahead, pieces come round again and again: the second round is like all others.
    size = many // max(1, many // stages)
    for at in range(min(2 * many * each, ahead + 4 * size * each)):
        kind, piece, _ = entry(rule, stages, stage, many, each, ahead, at)
        if kind == FORWARD:
            now += kept[piece]
            fullest = max(fullest, now)
        else:
            fullest = max(fullest, now + back[piece])
            now -= kept[piece]
    return fullest


@kernel
def _written_peak(written: WrittenRows, table: int, stage: int, kept: Floats, whole: Floats, back: Floats) -> float:
    """The same for a row that is written down; from INPUT to WEIGHT a pass keeps what was computed again."""
    now, fullest = 0.0, 0.0
    row = written.row_start[table] + stage
    swapped = False
    for place in range(written.row[row], written.row[row + 1]):
        # Of two passes side by side the forward one takes before the other gives back.
        at = place
        if swapped:
            at, swapped = place - 1, False
        elif written.paired[place] and written.kind[place] == 1 and written.kind[place + 1] == 0:
            at, swapped = place + 1, True
        kind, piece = written.kind[at], written.piece[at]
        before = now
        if kind == 0:
            now += kept[piece]
        elif kind == 1:
            now -= kept[piece]
            fullest = max(fullest, before + back[piece])
        elif kind == 2:
            now += whole[piece] - kept[piece]
        else:
            now -= whole[piece]
        fullest = max(fullest, now, before)
    return fullest
