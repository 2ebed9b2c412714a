"""A first answer within a second or two: of the strategies that people usually run the best few by bound, simulated.

Collectives, cuts, placement and buckets are the usual ones. What is left out of the space seldom wins: the search says
whether it does.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk import __version__
from ropewalk.arrays import Floats
from ropewalk.hardware import Cluster
from ropewalk.planner.described import Described, described, in_words
from ropewalk.planner.explain import Explanation, explained
from ropewalk.planner.pricing import LaidOut, Priced, StrategyPrices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space
from ropewalk.planner.study import Study
from ropewalk.progress import Progress, silent
from ropewalk.records import plain
from ropewalk.sim.level import LevelUse
from ropewalk.strategy.strategy import Strategy
from ropewalk.training.answer import StepAnswer
from ropewalk.training.network import NetworkUse
from ropewalk.workload.source import written_for

MOST_SIMULATED = 4
"""Strategies that are simulated, best bound first."""
MOST_REMEMBERED = 6
"""Models whose prices are kept; a large one takes tens of megabytes."""
MOST_NETWORKS = 24
"""Clusters on which costs of layouts are kept: a megabyte each."""
MOST_SHOWN = 8
"""Strategies beside the best one."""
MOST_POINTS = 300
"""Candidates that are listed; of more, the fastest."""


@dataclass(frozen=True)
class Estimated:
    """A strategy with the time of its step, and the memory of its fullest GPU."""

    strategy: Strategy
    seconds: float
    simulated: bool
    """Otherwise its step takes at least so long."""
    memory_bytes: float


@dataclass(frozen=True, eq=False)
class CandidateColumns:
    """Candidates as columns: what they are, how long their steps take and what they hold."""

    columns: tuple[Described, ...]
    seconds: Floats
    memory_bytes: Floats
    simulated: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class QuickEstimate:
    """The fastest strategy of those that were simulated, others by their bounds, and all candidates as points."""

    question: PlannerQuestion
    model: str
    best: Estimated
    others: tuple[Estimated, ...]
    sequences: bool
    """Are samples sequences of tokens?"""
    tokens: int
    """Of a sample; 1 where samples are not sequences."""
    mfu: float | None
    """None where the model is a profile of times, which has no operations."""
    capacity_bytes: float
    possible: int
    fit: int
    field: CandidateColumns
    """Those that fit, fastest first, the best and others among them."""
    priced: Priced
    prices: StrategyPrices
    """What the model costs, for the next question about it."""

    @cached_property
    def training(self) -> StepAnswer:
        """The step of the best one, rank by rank."""
        return Simulator(self.question).training_of(self.best.strategy, LevelUse())

    @property
    def samples_per_s(self) -> float:
        return self.question.batch / self.best.seconds

    @property
    def tokens_per_s(self) -> float | None:
        return self.question.batch * self.tokens / self.best.seconds if self.sequences else None

    def explained(self, asked: str) -> Explanation:
        """Why the strategy that is named is not the best one, among the usual ones."""
        found = explained(self, asked)
        if not found.absent:
            return found
        return replace(
            found, sentences=(*found.sentences, "An estimate considers common strategies only; a search considers all.")
        )

    def as_json(self) -> dict[str, Any]:
        """What the command prints and pages show."""
        return {
            "model": self.model,
            "step_time_s": self.best.seconds,
            "samples_per_s": self.samples_per_s,
            "tokens_per_s": self.tokens_per_s,
            "mfu": self.mfu,
            "best": _as_json(self.best),
            "others": [_as_json(one) for one in self.others],
            "candidates": {
                "said": [in_words(self.field.columns, at) for at in range(len(self.field.seconds))],
                "step_time_s": self.field.seconds.tolist(),
                "memory_bytes": self.field.memory_bytes.tolist(),
                "simulated": self.field.simulated.tolist(),
                "columns": [column.as_json() for column in self.field.columns],
            },
            "memory_capacity_bytes": self.capacity_bytes,
            "counts": {"possible": self.possible, "fit": self.fit},
            "versions": {"ropewalk": __version__},
        }


def usual(space: Space, fixed: int | None = None) -> Space:
    """Of a space, what people usually run; what was asked for by name stays, and so does a `fixed` micro-batch.

    >>> usual(Space(zero=(2,))).zero, usual(Space()).micro_batch
    ((2,), (1, 2, 4))
    """
    whole = Space()
    return replace(
        space,
        micro_batch=space.micro_batch or ((1, 2, 4) if fixed is None else (fixed,)),
        zero=(1, 3) if space.zero == whole.zero else space.zero,
        recompute=("none", "full") if space.recompute == whole.recompute else space.recompute,
        schedules=("1f1b", "interleaved") if space.schedules == whole.schedules else space.schedules,
        fold=(False,) if space.fold == whole.fold else space.fold,
    )


def estimate(
    question: PlannerQuestion,
    progress: Progress = silent,
    known: StrategyPrices | None = None,
    networks: Networks | None = None,
) -> QuickEstimate:
    """The best of a few strategies; `known` prices of the same model on the same GPUs are used again.

    So is what `networks` know about layouts of the same cluster.

    >>> from ropewalk.hardware import read_cluster
    >>> found = estimate(PlannerQuestion("gpt2", read_cluster("1x2"), batch=8, sequence=64))
    >>> found.best.seconds > 0, found.best.strategy.ranks
    (True, 2)
    """
    question.check()
    few = replace(question, space=usual(question.space, written_for(question.model)), most_simulated=MOST_SIMULATED)
    study = Study(few, progress, known)
    if networks is not None:
        study.prices.sharing(networks.layouts(question.cluster, study.prices.use))
    outcome = study.search(study.wanted, below=0.0)
    priced, found = outcome.priced, outcome.found
    simulated = np.isfinite(found.seconds)
    known_s = np.where(simulated, found.seconds, np.fmax(priced.floor_s, found.replay_s))
    fit = np.flatnonzero(np.isfinite(known_s))
    # Somebody's bound may be below the best simulated time: what was simulated comes first.
    order = fit[np.lexsort((known_s[fit], ~simulated[fit]))]
    first, *others = [
        Estimated(
            priced.strategy(at, study.workload), float(known_s[at]), bool(simulated[at]), float(priced.memory_bytes[at])
        )
        for at in order[: 1 + MOST_SHOWN].tolist()
    ]
    shown = order[:MOST_POINTS]
    field = CandidateColumns(
        described(priced.candidates, shown), known_s[shown], priced.memory_bytes[shown], simulated[shown]
    )  # fmt: skip
    sample, pricer = study.workload, study.prices.pricer
    could = question.cluster.gpus * pricer.device.peak(pricer.precision) * first.seconds
    micro_batches = question.batch / sample.batch
    return QuickEstimate(
        few, sample.name, first, tuple(others), sample.sequence > 0, sample.tokens // sample.batch,
        micro_batches * sample.flops / could if sample.flops else None, study.prices.room, len(study.possible),
        int(priced.fits.sum()), field, priced, study.prices,
    )  # fmt: skip


class Networks:
    """What communication costs on clusters that were asked about lately: the next question mostly changes the batch."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Cluster, NetworkUse], LaidOut] = OrderedDict()

    def layouts(self, cluster: Cluster, use: NetworkUse) -> LaidOut:
        """What is known of one, to be read and added to."""
        found = self._known.setdefault((cluster, use), {})
        self._known.move_to_end((cluster, use))
        while len(self._known) > MOST_NETWORKS:
            self._known.popitem(last=False)
        return found


_NETWORKS = Networks()
_REMEMBERED: OrderedDict[tuple[str, int | None, str, str], StrategyPrices] = OrderedDict()
"""What models cost that were asked about lately: the next question mostly changes the cluster or the batch."""


def estimate_again(question: PlannerQuestion, progress: Progress = silent) -> QuickEstimate:
    """The same estimate, sooner where the last questions were about the same model on the same GPUs."""
    key = (question.model, question.sequence, question.precision, question.cluster.device)
    found = estimate(question, progress, _REMEMBERED.get(key), _NETWORKS)
    _REMEMBERED[key] = found.prices
    _REMEMBERED.move_to_end(key)
    while len(_REMEMBERED) > MOST_REMEMBERED:
        _REMEMBERED.popitem(last=False)
    return found


def _as_json(one: Estimated) -> dict[str, Any]:
    return {
        "said": one.strategy.said(),
        "step_time_s": one.seconds,
        "simulated": one.simulated,
        "memory_bytes": one.memory_bytes,
        "strategy": plain(one.strategy),
    }
