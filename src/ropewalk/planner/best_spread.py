"""The best spread of blocks over the pieces of a pipeline, as a linear program: a floor under every cut of it.

Blocks are divisible. With x_k blocks in piece k, y_k of them recomputed, no cut is faster than the least T with

- every stage running all its work behind the forward passes of the pieces in front of its first one;
- its first backward pass behind all forward passes of a micro-batch and the backward passes of the pieces behind its
  last one, when it has run as many forward passes as its row says; where backward passes are whole, those of the pieces
  in front of it follow the last one;
- what a stage keeps at any moment, and its weights, gradients and optimiser state, fitting into its memory.

Whole blocks are another floor: however they are dealt out to stages that have the layers in front and behind already,
the fullest stage is no faster than where each block in turn goes to the stage that is then the least full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from ropewalk.arrays import Floats, Ints
from ropewalk.planner._memory_kernel import home_of
from ropewalk.planner._replay_kernel import ReplayCosts
from ropewalk.planner._rows_kernel import INTERLEAVED, WRITTEN, ahead_of
from ropewalk.planner.channels import IN_LAYERS
from ropewalk.planner.columns import Column
from ropewalk.planner.layers import Held, Seconds
from ropewalk.planner.moments import Moments
from ropewalk.planner.pricing import Priced
from ropewalk.planner.sized import state_bytes_of
from ropewalk.planner.to_fit import FULL, NONE
from ropewalk.planner.written import WrittenRows
from ropewalk.timetable.passes import Pass

EXACT = 1 - 1e-6
"""What the solver may be off by, in seconds and in bytes."""
INFEASIBLE = 2
"""What the solver says where nothing fits."""


@dataclass(frozen=True, eq=False)
class Piecewise:
    """What a candidate is made of: a block, one layer at most before the first and one behind the last."""

    ahead_s: Floats
    """Forward passes: of a block, of the layer in front, of the one behind."""
    back_s: Floats
    """Passes back that others wait for, likewise."""
    work_s: Floats
    """Everything."""
    again_s: float
    """What recomputing a block adds to passes back."""
    state_bytes: Floats
    kept_bytes: Floats
    opened_bytes: Floats
    """From the gradients of inputs to those of weights."""
    working_bytes: Floats
    """While a backward pass runs."""
    saved_bytes: float
    """What recomputing a block saves of what is kept, at most, and what it adds to what is opened, at least."""
    more_opened_bytes: float
    blocks: int


def spread_floor(priced: Priced, row: Ints, network: ReplayCosts, room: float, moments: Moments) -> float:
    """Seconds of the step at least; not a number where no cut fits; 0 where the model is not all blocks in a row."""
    made = pieces_of(priced, row, network)
    if made is None:
        return 0.0
    written, stages = priced.kernels.written, int(row[Column.STAGES])
    pieces, many = stages * int(row[Column.PIECES_EACH]), int(row[Column.MICRO_BATCHES])
    homes = np.array([home_of(row, written, piece) for piece in range(pieces)])
    mine = (homes[None, :] == np.arange(stages)[:, None]).astype(np.float64)
    timed, behind = _in_time(made, row, mine, first_passes(row, written, homes))
    held, room_left = in_memory(made, mine, moments, room)
    above = np.vstack([timed, held, np.hstack([-np.eye(pieces), np.eye(pieces), np.zeros((pieces, 1))])])
    solved = _solved(above, np.concatenate([behind, room_left, np.zeros(pieces)]), pieces, made.blocks)
    begun = mine[:, 0] * made.work_s[1] + mine[:, -1] * made.work_s[2]
    return solved if np.isnan(solved) else max(solved, many * fullest_stage(begun, made.work_s[0], made.blocks) * EXACT)


def fullest_stage(begun: Floats, block: float, blocks: int) -> float:
    """What the fullest stage has at least when so many whole blocks are dealt out to stages that have begun.

    >>> fullest_stage(np.array([0.0, 1.5]), 1.0, 4)  # 3 blocks and 1, not 2 and 2
    3.0
    """
    full = begun.copy()
    for _ in range(blocks):
        full[full.argmin()] += block
    return float(full.max())


def _in_time(made: Piecewise, row: Ints, mine: Floats, first: Ints) -> tuple[Floats, Floats]:
    """Rows of the program that say how long stages take, and their limits.

    Columns are blocks by piece, recomputed blocks by piece, the step. What stands in front of the blocks is in the
    first piece, what stands behind in the last.
    """
    stages, pieces = mine.shape
    piece, whole = np.arange(pieces), int(row[Column.MICRO_BATCHES]) * mine
    before = piece[None, :] < np.where(mine > 0, piece, pieces).min(1)[:, None]
    behind = piece[None, :] > np.where(mine > 0, piece, -1).max(1)[:, None]
    drains = behind if row[Column.RULE] == WRITTEN else behind | before
    begun, turned = (
        [before * made.ahead_s[of] + whole * made.work_s[of] for of in range(3)],
        [(1 - first * mine) * made.ahead_s[of] + drains * made.back_s[of] + whole * made.work_s[of] for of in range(3)],
    )
    step = -np.ones((stages, 1))
    above = np.block([
        [begun[0], whole * made.again_s, step],
        [turned[0], (whole + drains) * made.again_s, step],
    ])  # fmt: skip
    return above, -np.concatenate([ends[1][:, 0] + ends[2][:, -1] for ends in (begun, turned)])


def in_memory(made: Piecewise, mine: Floats, moments: Moments, room: float) -> tuple[Floats, Floats]:
    """Rows of the program that say what stages hold at their moments, in parts of their room, and what is left."""
    states = mine[moments.stage]
    block, front, end = (
        states * made.state_bytes[of] + moments.kept * made.kept_bytes[of] + moments.opened * made.opened_bytes[of]
        for of in range(3)
    )
    again = moments.opened * made.more_opened_bytes - moments.kept * made.saved_bytes
    working = np.full(mine.shape[1], made.working_bytes[0])
    working[0], working[-1] = made.working_bytes[1:]  # these pieces need not have a block
    fixed = front[:, 0] + end[:, -1] + moments.running @ working
    return np.hstack([block, again, np.zeros((len(block), 1))]) / room, 1 / EXACT - fixed / room


def _solved(above: Floats, limit: Floats, pieces: int, blocks: int) -> float:
    """The least step: the last column, behind blocks by piece and recomputed blocks by piece."""
    least = np.zeros(2 * pieces + 1)
    least[1 : pieces - 1] = 1.0  # the first and the last piece may have none
    solve: Any = linprog
    all_of_them = np.append(np.ones(pieces), np.zeros(pieces + 1))
    found = solve(
        np.append(np.zeros(2 * pieces), 1.0), A_ub=above, b_ub=limit, A_eq=all_of_them[None], b_eq=[blocks],
        bounds=np.column_stack([least, np.full(len(least), np.inf)]),
    )  # fmt: skip
    return float(found.fun * EXACT) if found.status == 0 else np.nan if found.status == INFEASIBLE else 0.0


def first_passes(row: Ints, written: WrittenRows, homes: Ints) -> Ints:
    """By stage and piece: forward passes before the first backward one."""
    stages, many, each, rule = (int(row[Column[name]]) for name in ("STAGES", "MICRO_BATCHES", "PIECES_EACH", "RULE"))
    first = np.zeros((stages, len(homes)), np.int64)
    for stage in range(stages):
        own = np.flatnonzero(homes == stage)
        if rule == WRITTEN:
            first[stage, own] = _written_first(written, row, stage, own)
            continue
        ahead = ahead_of(rule, stages, stage, many, each)
        if rule != INTERLEAVED:
            first[stage, own] = ahead
            continue
        size = many // max(1, many // stages)
        groups, rest = divmod(min(ahead + 1, many * each), size * each)
        first[stage, own] = groups * size + np.clip(rest - np.arange(each) * size, 0, size)
    return first


def _written_first(written: WrittenRows, row: Ints, stage: int, own: Ints) -> Ints:
    at = int(written.row_start[row[Column.WRITTEN]]) + stage
    passes = slice(int(written.row[at]), int(written.row[at + 1]))
    ahead = written.kind[passes] == Pass.FORWARD
    turn = int(np.argmax(~ahead))
    return np.bincount(written.piece[passes][:turn], minlength=int(own.max()) + 1)[own]


def pieces_of(priced: Priced, row: Ints, network: ReplayCosts) -> Piecewise | None:
    """The block of a candidate, the layer in front and the one behind; None where the model has other layers."""
    split, kind, one = row[Column.SPLITTING], int(row[Column.RECOMPUTE]), priced.kernels
    held, seconds, met = one.model.held[split], one.model.seconds[split], one.model.met[split]
    blocks = np.flatnonzero(held[:, Held.BLOCK] > 0)
    if len(blocks) + 2 < len(held) or blocks[0] > 1 or blocks[-1] < len(held) - 2:
        return None
    costs = network.costs[row[Column.LAYOUT], :IN_LAYERS]
    sent = met[..., 0] @ costs[:, 1] + met[..., 1] @ costs[:, 0]
    ahead, again = seconds[:, Seconds.FORWARD] + sent[:, 0], seconds[:, Seconds.AGAIN + kind] + sent[:, 2 + kind]
    work = ahead + seconds[:, Seconds.BACKWARD] + sent[:, 1] + again
    back = again + sent[:, 1] + seconds[:, Seconds.INPUT if row[Column.RULE] == WRITTEN else Seconds.BACKWARD]
    kept, full = held[:, Held.KEPT + kind], held[:, Held.KEPT + FULL]
    working, fully = held[:, Held.WORKING + kind], held[:, Held.WORKING + FULL]
    may = kind == NONE and priced.candidates.may_recompute
    computed = seconds[:, Seconds.AGAIN + FULL] + sent[:, 2 + FULL]

    def parts(values: Floats) -> Floats:
        return np.array([values[blocks].min(), values[: blocks[0]].sum(), values[blocks[-1] + 1 :].sum()])

    return Piecewise(
        parts(ahead), parts(back), parts(work), float(computed[blocks].min()),
        parts(state_bytes_of(row, one.settings, held)), parts(kept), parts(kept + working),
        parts(np.where((held[:, Held.BLOCK] > 0) & may, np.minimum(working, fully), working)),
        float((kept - full)[blocks].max()) if may else 0.0,
        float((full + fully - kept - working)[blocks].min()) if may else 0.0, len(blocks),
    )  # fmt: skip
