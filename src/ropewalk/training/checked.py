"""How far predictions were off for runs like this one, so that a step time carries an interval.

`data/checked_runs.csv` has the error of the prediction for every published or measured run that nothing was fitted to;
`python recipes/checked_runs.py` writes it. Runs are alike where GPUs are of one architecture, models of one sort,
products as wide, and the same stack runs at the same sort of clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.device.device import Device, precision
from ropewalk.documents import packaged_text
from ropewalk.documents.from_csv import table_records
from ropewalk.errors import InputError
from ropewalk.units import show_seconds
from ropewalk.workload.adapted import bare
from ropewalk.workload.experts import Experts
from ropewalk.workload.workload import Workload

FEWEST = 3
"""Runs that say something about others."""
MANY = 10
"""Runs of which the outermost tenth on either side is left out; of fewer the spread is estimated."""
STUDENT = {3: 1.638, 4: 1.533, 5: 1.476, 6: 1.440, 7: 1.415, 8: 1.397, 9: 1.383}
"""Quantiles of Student's t at 90 %, by degrees of freedom: 80 % lie between minus and plus this many deviations."""
FURTHER = 2
"""A run on more GPUs than this many times the most that were checked is outside of what was checked."""
EAGER = "eager"


@dataclass(frozen=True)
class Sort:
    """What predictions are good or bad at together."""

    architecture: str
    model: str
    """`dense`, `experts`, or `samples` where samples are no sequences."""
    bits: int
    """Of what products multiply."""
    stack: str
    clock: str
    """`full`, or `held` to a power limit."""

    def is_akin(self, other: Sort) -> bool:
        """Does only the GPU or the width of products differ?"""
        mine, theirs = ((one.model, one.stack, one.clock) for one in (self, other))
        return mine == theirs and self != other

    def said(self) -> str:
        clock = "at full clock" if self.clock == "full" else "under a power limit"
        model = {"dense": "dense transformers", "experts": "mixtures of experts", "samples": "models of images"}
        return f"{model[self.model]} in {self.bits} bits on {self.architecture or 'this device'}, {self.stack}, {clock}"


def sort_of(workload: Workload, device: Device, precision_name: str) -> Sort:
    """The sort of a run."""
    operators = (bare(operator) for layer in workload.layers for operator in layer.operators)
    mixed = any(isinstance(operator, Experts) for operator in operators)
    model = "experts" if mixed else "dense" if workload.sequence else "samples"
    held = "held" if device.held_to is not None else "full"
    return Sort(device.architecture, model, _bits(precision_name), workload.stack or EAGER, held)


def _bits(name: str) -> int:
    numbers = precision(name)
    if numbers.is_narrow:
        return 4 if "4" in name else 8
    return int(8 * numbers.element_bytes)


@dataclass(frozen=True)
class CheckedRun:
    """A run that was predicted, and by how much that was off."""

    id: str
    sort: Sort
    gpus: int
    error: float
    """Predicted against measured, minus 1."""


COLUMNS = ("id", "architecture", "model", "bits", "stack", "clock", "gpus", "error")


@cache
def checked_runs() -> tuple[CheckedRun, ...]:
    """All of them."""
    text = packaged_text("ropewalk.training", "data/checked_runs.csv").splitlines()
    return tuple(
        CheckedRun(
            row["id"],
            Sort(row["architecture"], row["model"], int(row["bits"]), row["stack"], row["clock"]),
            int(row["gpus"]),
            float(row["error"]),
        )
        for _, row in table_records(text, COLUMNS, "checked runs", InputError)
    )


@dataclass(frozen=True)
class Expected:
    """Between which times a step may be expected, as far as runs like it were checked."""

    low_s: float | None
    high_s: float | None
    """None where nothing like it was checked."""
    runs: int
    why: str

    def said(self) -> str:
        if self.low_s is None or self.high_s is None:
            return f"none; {self.why}"
        return f"{show_seconds(self.low_s)} to {show_seconds(self.high_s)}; {self.why}"


@dataclass(frozen=True)
class _Span:
    """Between which multiples of their predictions 80 % of runs like some lie."""

    low: float
    high: float
    fewest: int
    """GPUs."""
    most: int
    runs: int

    def said(self, runs: str) -> str:
        basis = "80 % of" if self.runs >= MANY else "80 % by the errors of"
        gpus = f"{self.most} GPUs" if self.fewest == self.most else f"{self.fewest} to {self.most} GPUs"
        return f"{basis} {self.runs} {runs}, on {'1 GPU' if self.most == 1 else gpus}"


def _span(runs: list[CheckedRun]) -> _Span | None:
    """None of too few."""
    if len(runs) < FEWEST:
        return None
    low, high = (float(one) for one in np.exp(_inner(np.log1p([run.error for run in runs]))))
    gpus = [run.gpus for run in runs]
    return _Span(low, high, min(gpus), max(gpus), len(runs))


def _inner(off: Floats) -> Floats:
    """Between which logarithms of measured over predicted time 80 % lie, from logarithms of predicted over measured.

    A few runs do not tell an error of all such predictions from chance, so none is assumed: errors are normal around 0.
    """
    if len(off) >= MANY:
        inner: Floats = np.quantile(-off, [0.1, 0.9])
        return inner
    reach = STUDENT[len(off)] * np.sqrt(np.mean(off**2))
    return np.array([-reach, reach])


def expected(seconds: float, sort: Sort, gpus: int) -> Expected:
    """The interval around a predicted step.

    >>> sort = Sort("Ampere", "dense", 16, "eager", "full")
    >>> found = expected(1.0, sort, 64)
    >>> found.low_s < 1.0 < found.high_s, found.runs > 100
    (True, True)
    >>> expected(1.0, Sort("CPU", "dense", 32, "eager", "full"), 1).said()
    'none; no comparable runs were checked (dense transformers in 32 bits on CPU, eager, at full clock)'
    """
    alike = [run for run in checked_runs() if run.sort == sort]
    span, wider = _span(alike), _span([run for run in checked_runs() if run.sort.is_akin(sort)])
    if span is None:
        known = ("no comparable runs were", "only one comparable run was", "only two comparable runs were")[len(alike)]
        return Expected(None, None, len(alike), f"{known} checked ({sort.said()})")
    low, high, most, why = span.low, span.high, span.most, span.said("checked comparable runs")
    if wider is not None and (span.runs < MANY or gpus > FURTHER * most):
        low, high, most = min(low, wider.low), max(high, wider.high), max(most, wider.most)
        why += f", and {wider.said('that differ in GPU or precision')}"
    further = f"; {gpus} GPUs are outside the checked range" if gpus > FURTHER * most else ""
    return Expected(seconds * low, seconds * high, span.runs, why + further)
