"""Floors that hold wherever a candidate is cut and whichever of its blocks are recomputed, fitting as it stands or not.

Let a micro-batch be w seconds of work on all stages together, m micro-batches run through p stages, and w_i be the part
of stage i. However large the parts are:

- Stage i begins when the stages before it are done with the first micro-batch and runs m of them: the largest of
  w_1 + … + w_(i-1) + m w_i is smallest where all are equal, w / (1 - (1 - 1/m)^p).
- Where every stage holds one piece, its first backward pass waits for all forward passes of the first micro-batch and
  the backward passes behind it, after it has run a_i forward passes, and its last one is followed by those in front
  of it: w + (m - 1) w_i - (a_i - 1) f_i, of which f_i are forward.
- The fullest stage has a p-th of all work, with what its host needs to launch it.
- A micro-batch goes through all pieces and back, one after the other; only gradients of weights may wait.

A candidate that does not fit with even pieces may fit with others: stages that keep fewer micro-batches take more
layers, or fewer of them recompute (`to_fit`). Where the lowest floors are, all of it is looked at together
(`best_spread`).
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.device.work import OVERLAP
from ropewalk.planner._replay_kernel import ReplayCosts
from ropewalk.planner._rows_kernel import DEEP, EARLY, GPIPE, WRITTEN, ahead_of
from ropewalk.planner.best_spread import spread_floor
from ropewalk.planner.channels import IN_LAYERS
from ropewalk.planner.columns import Column
from ropewalk.planner.free import Least, free_network
from ropewalk.planner.hidden import hidden_seconds
from ropewalk.planner.layers import LaunchColumn, PassColumn, Seconds
from ropewalk.planner.moments import Moments, moments_of
from ropewalk.planner.narrow import narrow_floor, narrowest
from ropewalk.planner.one_ahead import waiting_floor
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.planner.to_fit import FULL, NONE, Blocks, block_of, kept_at_once, least_again
from ropewalk.strategy.memory import usable_bytes

KEPT_BY = [int(Column[name]) for name in ("STAGES", "MICRO_BATCHES", "PIECES_EACH", "RULE", "WRITTEN")]
BLOCK_BY = [int(Column[name]) for name in ("SPLITTING", "RECOMPUTE", "ZERO", "REPLICAS", "EXPERT_COPIES")]
"""What the memory of a candidate follows from."""
MOST_SPREAD = 400
"""Candidates whose blocks are spread, lowest floor first."""
IN_ONE_PIECE = (EARLY, DEEP, GPIPE)
"""Rules of timetables whose stages hold one piece each and run backward passes whole."""


def floors_anywhere(prices: StrategyPrices, priced: Priced, below_s: float) -> Floats:
    """By candidate, seconds that no cut and no choice of recomputed blocks falls below; not a number where none fits.

    They hold for steps faster than `below_s`: what is slower does not matter. Candidates of a pipeline that recompute
    block by block have the floors of those that recompute nothing, which may be cut into them.
    """
    which = np.flatnonzero(priced.fits | (priced.candidates.column("pipeline") > 1))
    floor = np.full(len(priced.candidates), np.nan)
    floor[which] = floors_of(prices, priced, which, below_s)
    return floor


def least_anywhere(prices: StrategyPrices, priced: Priced, below_s: float) -> float:
    """Seconds that no candidate falls below, whatever its cut and its recomputed blocks, and no more than `below_s`.

    Of candidates with the lowest floors, blocks are spread over pieces as well as memory and timetable allow.
    """
    floor = floors_anywhere(prices, priced, below_s)
    known, memory = dict[bytes, float](), MemoryNeeds(priced)
    for _ in range(MOST_SPREAD):
        if np.isnan(floor).all():
            return below_s
        lowest = int(np.nanargmin(floor))
        if floor[lowest] >= below_s:
            return below_s
        key = np.delete(priced.kernels.rows[lowest], [Column.CUT, Column.AGAIN]).tobytes()
        if key not in known:
            piped = priced.kernels.rows[lowest, Column.STAGES] > 1
            known[key] = spread_of(prices, priced, lowest, memory) if piped else narrow_of(prices, priced, lowest)
        if known[key] <= floor[lowest]:
            return float(floor[lowest])
        floor[lowest] = known[key]
    return float(np.nanmin(floor))


def narrow_of(prices: StrategyPrices, priced: Priced, at: int) -> float:
    """The floor of a candidate with one stage under what must get through the narrowest cuts of the network."""
    layouts, which = priced.candidates.layouts
    layout = layouts[which[at]]
    if prices.by_data or layout.folded or layout.data * layout.context * layout.tensor != prices.fabric.hosts:
        return 0.0
    wire, into = Least.of(prices.use).wire, narrowest(prices.fabric)
    rows, network = free_network(priced, np.array([at]), prices.fabric, prices.use)
    return max(
        narrow_floor(priced, rows[0], layout, into, wire),
        waiting_floor(priced, at, rows[0], layout, network, into, wire),
    )


def spread_of(prices: StrategyPrices, priced: Priced, at: int, known: MemoryNeeds | None = None) -> float:
    """The floor of one candidate under the best spread of its blocks."""
    if side_by_side(priced, priced.kernels.rows[at]):
        return float(floors_of(prices, priced, np.array([at]), np.inf)[0])
    rows, network = free_network(priced, np.array([at]), prices.fabric, prices.use)
    moments = (known or MemoryNeeds(priced)).moments_of(rows[0])
    return spread_floor(priced, rows[0], network, usable_bytes(prices.room), moments)


def side_by_side(priced: Priced, row: Ints) -> bool:
    """Does this candidate run passes side by side?"""
    return bool(row[Column.RULE] == WRITTEN and priced.kernels.written.side_by_side[row[Column.WRITTEN]])


def floors_of(prices: StrategyPrices, priced: Priced, which: Ints, below_s: float) -> Floats:
    """The same of some candidates."""
    rows, network = free_network(priced, which, prices.fabric, prices.use)
    piped = rows[:, Column.STAGES] > 1
    rows[piped, Column.AGAIN] = 0  # counted below
    found, room = priced.least_of_any(which, rows, network), usable_bytes(prices.room)
    memory = MemoryNeeds(priced)
    for at in np.flatnonzero(piped).tolist():
        if side_by_side(priced, rows[at]):
            # The work of all micro-batches, spread evenly over the stages.
            found[at] *= rows[at, Column.MICRO_BATCHES] / rows[at, Column.STAGES]
            continue
        found[at] = StageSpread(priced, rows[at], float(found[at]), network).least(below_s, room, memory)
    return found


class MemoryNeeds:
    """What memory asks for, which many candidates have in common."""

    def __init__(self, priced: Priced) -> None:
        self.priced = priced
        self.kept: dict[tuple[int, ...], Ints] = {}
        self.blocks: dict[tuple[int, ...], Blocks] = {}
        self.moments: dict[tuple[int, ...], Moments] = {}

    def kept_by(self, row: Ints) -> Ints:
        """Micro-batches that each stage keeps."""
        key = tuple(row[KEPT_BY].tolist())
        if key not in self.kept:
            self.kept[key] = kept_at_once(row, self.priced.kernels.written)
        return self.kept[key]

    def moments_of(self, row: Ints) -> Moments:
        """Moments at which stages may be fullest."""
        key = tuple(row[KEPT_BY].tolist())
        if key not in self.moments:
            self.moments[key] = moments_of(row, self.priced.kernels.written)
        return self.moments[key]

    def block_of(self, row: Ints) -> Blocks:
        key = tuple(row[BLOCK_BY].tolist())
        if key not in self.blocks:
            self.blocks[key] = block_of(self.priced, row)
        return self.blocks[key]


class StageSpread:
    """The work of one candidate, spread over its stages as well as can be."""

    def __init__(self, priced: Priced, row: Ints, work_s: float, network: ReplayCosts) -> None:
        self.priced, self.row, self.work_s, self.network = priced, row, work_s, network
        self.stages, self.many = int(row[Column.STAGES]), int(row[Column.MICRO_BATCHES])
        launch = priced.kernels.model.launch[row[Column.SPLITTING]]
        kind = int(row[Column.RECOMPUTE])
        passes = LaunchColumn.FORWARD, LaunchColumn.BACKWARD, LaunchColumn.again(kind)
        self.gpu_s, self.host_s, away_s = (
            float(launch[:, [of_pass + part for of_pass in passes]].sum())
            for part in (LaunchColumn.GPU, LaunchColumn.HOST, LaunchColumn.AWAY)
        )
        # While tokens travel a host goes on: the longer they do, the less it stretches, so they travel most here.
        may = kind == NONE and priced.candidates.may_recompute
        self.away_s = away_s + (float(launch[:, LaunchColumn.again(FULL) + LaunchColumn.AWAY].sum()) if may else 0.0)

    def least(self, below_s: float, room: float, known: MemoryNeeds) -> float:
        """Seconds of the step at least; not a number where nothing fits that takes less than `below_s`."""
        least = self.seconds(0.0, None)
        if least >= below_s:
            return least
        block, behind = known.block_of(self.row), self.behind()
        least = self.seconds(0.0, behind)
        longest = np.full(self.stages, below_s / self.many)
        if behind is not None:
            longest = np.minimum(
                longest, np.where(behind > 0, (below_s - self.work_s) / np.maximum(behind, 1e-9), below_s)
            )
        again = least_again(block, known.kept_by(self.row), room, longest)
        return least if again == 0 else np.nan if np.isinf(again) else self.seconds(again, behind, block)

    def seconds(self, again: float, behind: Floats | None, block: Blocks | None = None) -> float:
        """The same where so many blocks are recomputed, of as many as it takes to fit."""
        more_gpu, more_host = (again * block.again_gpu_s, again * block.again_host_s) if block else (0.0, 0.0)
        work, gpu, host = self.work_s + more_gpu, self.gpu_s + more_gpu, self.host_s + more_host
        busy = gpu + self.away_s
        waits = (busy**OVERLAP + host**OVERLAP) ** (1 / OVERLAP) - busy
        least = max((work + waits) * self.many / self.stages, work - self._put_off())
        left = 1 - 1 / self.many
        if self.row[Column.RULE] in IN_ONE_PIECE:
            least = max(least, (work + left ** (self.stages - 1) * waits) / (1 - left**self.stages))
        if behind is not None and (behind > 0).all():
            least = max(least, work + work / float((1 / behind).sum()))
        return float(least)

    def _put_off(self) -> float:
        """Seconds of a micro-batch that none of its passes waits for, at most: gradients of weights."""
        if self.row[Column.RULE] != WRITTEN:
            return 0.0
        return float(self.priced.kernels.model.seconds[self.row[Column.SPLITTING], :, Seconds.WEIGHT].sum())

    def behind(self) -> Floats | None:
        """By stage, seconds of the step for each second of its own part, besides the work of one micro-batch."""
        rule = int(self.row[Column.RULE])
        if rule not in IN_ONE_PIECE:
            return None
        ahead = np.array([ahead_of(rule, self.stages, stage, self.many, 1) for stage in range(self.stages)])
        return np.asarray(self.many - 1 - (ahead - 1) * self._forward_part(), np.float64)

    def _forward_part(self) -> float:
        """The most that forward passes are of the work of a layer, whatever its host slows its computation down to."""
        model, split = self.priced.kernels.model, self.row[Column.SPLITTING]
        kind, seconds, met = int(self.row[Column.RECOMPUTE]), model.seconds[split], model.met[split]
        costs = self.network.costs[self.row[Column.LAYOUT], :IN_LAYERS]
        sent = met[..., 0] @ costs[:, 1] + met[..., 1] @ costs[:, 0]
        # What forward passes exchange beside computations may all be exposed, what the others do may all be hidden.
        sent[:, PassColumn.FORWARD] += hidden_seconds(model.hidden[split][:, PassColumn.FORWARD], costs)
        ahead, back = seconds[:, Seconds.FORWARD], seconds[:, [Seconds.BACKWARD, Seconds.AGAIN + kind]].sum(1)
        whole = ahead + back + sent[:, 0] + sent[:, 1] + sent[:, 2 + kind]
        parts = np.maximum(_part(ahead, ahead + back), _part(ahead + sent[:, 0], whole))
        return float(parts.max())


def _part(some: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(some, whole, out=np.zeros_like(whole), where=whole > 0), np.float64)
