"""The best spread of blocks over the pieces of a pipeline, as a linear program: a floor under every cut of it.

Blocks are divisible. With x_k blocks in piece k, y_k of them recomputed, no cut is faster than the least T with

- every stage running all its work behind the forward passes of the pieces in front of its first one;
- its first backward pass behind all forward passes of a micro-batch and the backward passes of the pieces behind its
  last one, when it has run as many forward passes as its row says; where backward passes are whole, those of the pieces
  in front of it follow the last one;
- what a stage keeps at its fullest moment, and its weights, gradients and optimiser state, fitting into its memory.

And whatever the cut, some stage has as many whole blocks as the average, rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ropewalk.planner._memory_kernel import home_of
from ropewalk.planner._replay_kernel import Network
from ropewalk.planner._rows_kernel import INTERLEAVED, WRITTEN, ahead_of
from ropewalk.planner.channels import IN_LAYERS
from ropewalk.planner.columns import Column
from ropewalk.planner.layers import Held, Seconds
from ropewalk.planner.pricing import Priced
from ropewalk.planner.sized import state_bytes_of
from ropewalk.planner.to_fit import ENDS, FULL, NONE
from ropewalk.planner.written import WrittenRows
from ropewalk.timetable.passes import Pass

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACT = 1 - 1e-6
"""What the solver may be off by."""
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
    """What recomputing a block adds."""
    state_bytes: Floats
    kept_bytes: Floats
    saved_bytes: float
    blocks: int


def spread_floor(priced: Priced, row: Ints, network: Network, room: float) -> float:
    """Seconds of the step at least; not a number where no cut fits; 0 where the model is not all blocks in a row."""
    made = pieces_of(priced, row, network)
    if made is None:
        return 0.0
    written, stages = priced.kernels.written, int(row[Column.STAGES])
    pieces, many = stages * int(row[Column.PIECES_EACH]), int(row[Column.MICRO_BATCHES])
    homes = np.array([home_of(row, written, piece) for piece in range(pieces)])
    first, kept = counts_of(row, written, homes)
    mine = (homes[None, :] == np.arange(stages)[:, None]).astype(np.float64)
    piece = np.arange(pieces)
    before = piece[None, :] < np.where(mine > 0, piece, pieces).min(1)[:, None]
    behind = piece[None, :] > np.where(mine > 0, piece, -1).max(1)[:, None]
    drains = behind if row[Column.RULE] == WRITTEN else behind | before
    whole, left = many * mine, 1 - first * mine
    # By what a block is, what stands in front and what stands behind: seconds or bytes by stage and piece.
    begun, turned, held = (
        [before * made.ahead_s[of] + whole * made.work_s[of] for of in range(3)],
        [left * made.ahead_s[of] + drains * made.back_s[of] + whole * made.work_s[of] for of in range(3)],
        [mine * (made.state_bytes[of] + kept * made.kept_bytes[of]) / room for of in range(3)],
    )
    step, none = -np.ones((stages, 1)), np.zeros((stages, 1))
    above = np.block([
        [begun[0], whole * made.again_s, step],
        [turned[0], whole * made.again_s, step],
        [held[0], -mine * kept * made.saved_bytes / room, none],
        [-np.eye(pieces), np.eye(pieces), np.zeros((pieces, 1))],
    ])  # fmt: skip
    # What stands in front is in the first piece, what stands behind in the last.
    fixed = [ends[1][:, 0] + ends[2][:, -1] for ends in (begun, turned, held)]
    solved = _solved(above, -np.concatenate([*fixed[:2], fixed[2] - 1, np.zeros(pieces)]), pieces, made.blocks)
    # Blocks are not divisible after all: some stage has as many as this.
    fullest = many * float(np.ceil(made.blocks / stages) * made.work_s[0])
    return solved if np.isnan(solved) else max(solved, fullest * EXACT)


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


def counts_of(row: Ints, written: WrittenRows, homes: Ints) -> tuple[Ints, Ints]:
    """By stage and piece: forward passes before the first backward one, micro-batches kept at the fullest moment."""
    stages, many, each, rule = (int(row[Column[name]]) for name in ("STAGES", "MICRO_BATCHES", "PIECES_EACH", "RULE"))
    first = np.zeros((stages, len(homes)), np.int64)
    kept = first.copy()
    for stage in range(stages):
        own = np.flatnonzero(homes == stage)
        if rule == WRITTEN:
            first[stage, own], kept[stage, own] = _written_counts(written, row, stage, own)
            continue
        ahead = ahead_of(rule, stages, stage, many, each)
        if rule != INTERLEAVED:
            first[stage, own] = kept[stage, own] = ahead
            continue
        size = many // max(1, many // stages)
        groups, rest = divmod(min(ahead + 1, many * each), size * each)
        first[stage, own] = kept[stage, own] = groups * size + np.clip(rest - np.arange(each) * size, 0, size)
    return first, kept


def _written_counts(written: WrittenRows, row: Ints, stage: int, own: Ints) -> tuple[Ints, Ints]:
    at = int(written.row_start[row[Column.WRITTEN]]) + stage
    passes = slice(int(written.row[at]), int(written.row[at + 1]))
    kind, piece = written.kind[passes], written.piece[passes]
    mine, ahead = piece[None, :] == own[:, None], kind == Pass.FORWARD
    turn = int(np.argmax(~ahead))
    kept = np.cumsum(np.where(mine, ahead.astype(np.int64) - np.isin(kind, ENDS), 0), axis=1)
    return (mine & ahead)[:, :turn].sum(1), kept[:, int(kept.sum(0).argmax())]


def pieces_of(priced: Priced, row: Ints, network: Network) -> Piecewise | None:
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
    kept = held[:, Held.KEPT + kind]
    may = kind == NONE and priced.candidates.may_recompute

    def parts(values: Floats) -> Floats:
        return np.array([values[blocks].min(), values[: blocks[0]].sum(), values[blocks[-1] + 1 :].sum()])

    return Piecewise(
        parts(ahead), parts(back), parts(work), float(seconds[blocks, Seconds.AGAIN + FULL].min()),
        parts(state_bytes_of(row, one.settings, held)), parts(kept),
        float((kept - held[:, Held.KEPT + FULL])[blocks].max()) if may else 0.0, len(blocks),
    )  # fmt: skip
