"""Which partition size and credit make a step shortest: searched by trying.

Small pieces let urgent gradients pass early but pay a start-up each; large credit hides round trips but holds urgent
pieces up. The curve has one valley in each direction, and where it lies depends on model, network and worker count.

A cost is any function of (partition bytes, credit bytes) that gives seconds. On the model of `scheduler.py` one costs a
millisecond and `exhaustive` tries the whole grid. Where it is a measured training run, `bayesian` needs far fewer: it
searches by Optuna's tree-structured Parzen estimator. Every answer says in `method` how it was found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from math import inf
from typing import Any

import numpy as np

from ropewalk.errors import Findings, StrategyError
from ropewalk.extras import how_to_install
from ropewalk.overlap.link import Link
from ropewalk.overlap.policy import OverlapPolicy
from ropewalk.overlap.scheduler import step_seconds
from ropewalk.overlap.tensors import Tensors

Cost = Callable[[float, float], float]
"""Seconds of a step by (partition bytes, credit bytes)."""

SMALLEST_BYTES = 256 * 1024
"""Partition sizes below this are not worth a start-up on any network that is searched by default."""
CREDIT_PIECES = (1 / 64, 1 / 8, 1 / 2, 1.0, 2.0, 3.0, 4.0, 8.0, 16.0)
"""Credits of the grid, in pieces. Below 1 only tensors smaller than a piece can be on their way together."""
PARTITIONS = 33
"""Partition sizes of the grid, in equal ratios."""
TRIALS = 60


@dataclass(frozen=True)
class TunerSpace:
    """Where to search: partition sizes, and credits as multiples of them.

    >>> [round(size) for size in TunerSpace(1e6, 8e6, partitions=4).partition_sizes]
    [1000000, 2000000, 4000000, 8000000]
    """

    smallest_bytes: float
    largest_bytes: float
    credit_pieces: tuple[float, ...] = CREDIT_PIECES
    partitions: int = PARTITIONS

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "search of partition and credit")
        if not 0 < self.smallest_bytes <= self.largest_bytes < inf:
            findings.add(
                f"partition sizes from {self.smallest_bytes:g} to {self.largest_bytes:g} bytes do not exist: "
                "give a positive smallest and a larger largest size"
            )
        if self.partitions < 1:
            findings.add(f"{self.partitions} partition sizes leave nothing to try: give 1 or more")
        if not self.credit_pieces or min(self.credit_pieces) <= 0:
            findings.add("credits must be positive multiples of a piece: give at least one")
        findings.raise_if_any()

    @property
    def partition_sizes(self) -> tuple[float, ...]:
        """The sizes of the grid: whole bytes, since nothing smaller can be cut."""
        return tuple(np.rint(np.geomspace(self.smallest_bytes, self.largest_bytes, self.partitions)).tolist())


@dataclass(frozen=True)
class Trial:
    """One setting that was tried."""

    partition_bytes: float
    credit_bytes: float
    step_s: float


@dataclass(frozen=True)
class Tuned:
    """The best setting found, how it was found, and everything that was tried on the way."""

    best: Trial
    method: str
    trials: tuple[Trial, ...]

    def policy(self, start: OverlapPolicy | None = None) -> OverlapPolicy:
        """The policy with these settings; everything else as in `start`."""
        return replace(
            start or OverlapPolicy(), partition_bytes=self.best.partition_bytes, credit_bytes=self.best.credit_bytes
        )


def space_of(tensors: Tensors) -> TunerSpace:
    """Partition sizes up to the largest tensor, at which nothing is cut any more."""
    largest = float(np.ceil(tensors.size_bytes.max()))
    if largest <= 0:
        raise StrategyError(f"tensors of {tensors.model} have no bytes: there is nothing to cut")
    return TunerSpace(min(SMALLEST_BYTES, largest), largest)


def cost_of(tensors: Tensors, link: Link, start: OverlapPolicy | None = None) -> Cost:
    """The time of a step by the model of `scheduler.py`; what is not searched is as in `start`."""
    given = start or OverlapPolicy()

    def cost(partition_bytes: float, credit_bytes: float) -> float:
        policy = replace(given, partition_bytes=partition_bytes, credit_bytes=credit_bytes)
        return step_seconds(tensors, link, policy)

    return cost


def exhaustive(cost: Cost, space: TunerSpace) -> Tuned:
    """Try the whole grid; of equal times the largest pieces, then the smallest credit, which ask least of the host."""
    trials = tuple(
        _tried(cost, partition, pieces) for partition in space.partition_sizes for pieces in space.credit_pieces
    )
    return Tuned(_best(trials), f"exhaustive: {space.partitions} partition sizes x {len(space.credit_pieces)} credits",
                 trials)  # fmt: skip


def bayesian(cost: Cost, space: TunerSpace, *, trials: int = TRIALS, seed: int = 0) -> Tuned:
    """Let Optuna choose what to try next from what has been seen; the same seed tries the same settings."""
    if trials < 1:
        raise StrategyError(f"{trials} trials find nothing: give 1 or more")
    optuna = _optuna()
    shown = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # its announcements are not ours
    try:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    finally:
        optuna.logging.set_verbosity(shown)
    asked = {
        "partition": optuna.distributions.FloatDistribution(space.smallest_bytes, space.largest_bytes, log=True),
        "pieces": optuna.distributions.FloatDistribution(min(space.credit_pieces), max(space.credit_pieces), log=True),
    }
    seen = []
    for _ in range(trials):
        trial = study.ask(asked)
        seen.append(_tried(cost, float(np.rint(trial.params["partition"])), trial.params["pieces"]))
        study.tell(trial, seen[-1].step_s)
    return Tuned(_best(seen), f"bayesian: {trials} trials of optuna {optuna.__version__}, seed {seed}", tuple(seen))


def _tried(cost: Cost, partition_bytes: float, pieces: float) -> Trial:
    credit = partition_bytes * pieces
    return Trial(partition_bytes, credit, cost(partition_bytes, credit))


def _best(trials: tuple[Trial, ...] | list[Trial]) -> Trial:
    return min(trials, key=lambda trial: (trial.step_s, -trial.partition_bytes, trial.credit_bytes))


def _optuna() -> Any:
    try:
        return import_module("optuna")
    except ImportError:
        raise StrategyError(
            f"searching by Bayesian optimisation needs optuna: {how_to_install('tune')}, or search exhaustively"
        ) from None
