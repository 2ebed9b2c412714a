"""Which strategies are worth refining: those that could still win, with cuts of their own, shortest replay first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.planner.cuts import best_cuts, starts
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.planner.tailored import Tailor
from ropewalk.strategy.strategy import Strategy

MOST_REPLAYED = 512
"""Candidates that are replayed, lowest floor first."""
MOST_CUT = 6
"""Pipelines whose cuts are searched layer by layer, shortest replay first."""


@dataclass(frozen=True)
class Finalist:
    """A strategy that may turn out to be the best once everything is settled."""

    strategy: Strategy
    memory_bytes: float
    replay_s: float
    floor_s: float
    """No cut, collective, order and placement of its degrees takes less."""


def finalists(prices: StrategyPrices, priced: Priced, floors_s: Floats, below_s: float) -> list[Finalist]:
    """Strategies with a floor below the best step, the shortest replay first."""
    candidates = priced.candidates
    piped = candidates.column("pipeline") > 1
    # Pipelines that recompute block by block are cuts of those that recompute nothing.
    twice = piped & candidates.by_block & ("none" in candidates.space.recompute)
    floors_s = np.where(twice, np.nan, floors_s)
    could_win = np.argsort(floors_s, kind="stable")[: int((floors_s < below_s).sum())][:MOST_REPLAYED]
    piped = piped[could_win]
    alone = could_win[~piped]
    whole = [
        Finalist(priced.strategy(at, prices.workload), float(priced.memory_bytes[at]), seconds, float(floors_s[at]))
        for at, seconds in zip(alone.tolist(), priced.replay(alone).tolist(), strict=True)
    ]
    cut = [
        one
        for at in _promising(prices, priced, could_win[piped])
        for one in _with_cuts(Tailor(prices, priced, at), float(floors_s[at]))
    ]
    return sorted([*whole, *cut], key=lambda one: one.replay_s)


def _promising(prices: StrategyPrices, priced: Priced, which: Ints) -> list[int]:
    """The pipelines with the shortest replays, each with the best of the cuts that a search begins with."""
    found = []
    for at in which.tolist():
        tailor = Tailor(prices, priced, at)
        found.append((float(tailor.cut(starts(tailor), alike=False).replay_s.min()), at))
    return [at for seconds, at in sorted(found)[:MOST_CUT] if np.isfinite(seconds)]


def _with_cuts(tailor: Tailor, floor_s: float) -> Iterator[Finalist]:
    """A pipeline with its best cut, once with recomputed blocks by stage, once with as many in all of them."""
    for alike in (False, True):
        cuts = best_cuts(tailor, alike=alike)
        if np.isfinite(cuts.replay_s[0]):
            plan = tailor.strategy(cuts, 0)
            yield Finalist(plan, float(cuts.memory_bytes[0]), float(cuts.replay_s[0]), floor_s)
        if (cuts.again == cuts.again[:, :1]).all():
            break  # as many in all of them already
