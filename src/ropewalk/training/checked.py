"""How far predictions were off for runs like this one, so that a step time carries an interval.

`data/checked_runs.csv` has the error of the prediction for every published or measured run that nothing was fitted to;
`python recipes/checked_runs.py` writes it. Runs are alike where GPUs are of one architecture, models of one sort,
products as wide, and the same stack runs at the same sort of clock.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.device.device import Device, device, precision
from ropewalk.device.pricer import TABLE_SUFFIXES, Pricer
from ropewalk.documents import packaged_text
from ropewalk.documents.from_csv import table_records
from ropewalk.errors import InputError
from ropewalk.strategy import Strategy
from ropewalk.training.traits import Traits, traits_of
from ropewalk.units import show_seconds
from ropewalk.workload.adapted import bare
from ropewalk.workload.experts import Experts
from ropewalk.workload.image import Convolution
from ropewalk.workload.lstm import Lstm
from ropewalk.workload.opaque import Measured
from ropewalk.workload.operator import Operator
from ropewalk.workload.workload import Workload

FEWEST = 3
"""Runs that say something about others."""
MANY = 10
"""Runs of which the outermost tenth on either side is left out; of fewer the spread is estimated."""
STUDENT = {3: 1.638, 4: 1.533, 5: 1.476, 6: 1.440, 7: 1.415, 8: 1.397, 9: 1.383}
"""Quantiles of Student's t at 90 %, by degrees of freedom: 80 % lie between minus and plus this many deviations."""
FURTHER = 2
"""A run on more GPUs than this many times the most that were checked is outside of what was checked, and so are longer
sequences."""
EAGER = "eager"
MODELS = {
    "dense": "dense transformers",
    "experts": "mixtures of experts",
    "recurrent": "recurrent models",
    "samples": "models of images",
    "others": "models of neither sequences nor images",
}
"""What `Sort.model` may be."""


@dataclass(frozen=True)
class Sort:
    """What predictions are good or bad at together."""

    architecture: str
    model: str
    """A key of `MODELS`."""
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
        where = self.architecture or "this device"
        return f"{MODELS[self.model]} in {self.bits} bits on {where}, {self.stack}, {clock}"


def sort_of(workload: Workload, device: Device, precision_name: str) -> Sort:
    """The sort of a run."""
    held = "held" if device.held_to is not None else "full"
    return Sort(device.architecture, _model(workload), _bits(precision_name), workload.stack or EAGER, held)


def _model(workload: Workload) -> str:
    if _has(workload, Experts):
        return "experts"
    if _has(workload, Lstm):
        return "recurrent"
    if workload.sequence:
        return "dense"
    return "samples" if _has(workload, Convolution) else "others"


def _has(workload: Workload, kind: type[Operator]) -> bool:
    return any(isinstance(bare(operator), kind) for layer in workload.layers for operator in layer.operators)


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
    traits: Traits


COLUMNS = ("id", "architecture", "model", "bits", "stack", "clock", "gpus", "error", "sequence", "parts")
BETWEEN = "; "
"""Stands between the parts of a run in the table."""


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
            Traits(int(row["sequence"]), tuple(row["parts"].split(BETWEEN)) if row["parts"] else ()),
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
    outside: tuple[str, ...] = ()
    """What of the step lies outside of what was checked on runs like it."""

    def said(self) -> str:
        if self.low_s is None or self.high_s is None:
            return f"none; {self.why}"
        outside = f"; outside the checked range: {', '.join(self.outside)}" if self.outside else ""
        return f"{show_seconds(self.low_s)} to {show_seconds(self.high_s)}; {self.why}{outside}"


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
        gpus = f"{self.most} GPUs" if self.fewest == self.most else f"{self.fewest} to {self.most} GPUs"
        return f"{self.runs} {runs} (on {'1 GPU' if self.most == 1 else gpus})"


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


def interval_of_step(
    seconds: float, workload: Workload, device_name: str, prices: Pricer, strategy: Strategy, gpus: int
) -> Expected:
    """The interval around the predicted step of a model on such devices, which its prices are of."""
    if device_name.lower().endswith(TABLE_SUFFIXES) or _has(workload, Measured):
        return Expected(None, None, 0, "costs are your own measurements")
    sort = sort_of(workload, device(device_name), prices.precision.name)
    return expected(seconds, sort, gpus, traits_of(workload, prices, strategy))


def expected(seconds: float, sort: Sort, gpus: int, traits: Traits) -> Expected:
    """The interval around a predicted step.

    >>> sort = Sort("Ampere", "dense", 16, "eager", "full")
    >>> found = expected(1.0, sort, 64, Traits(2048))
    >>> found.low_s < 1.0 < found.high_s, found.runs > 100
    (True, True)
    >>> expected(1.0, Sort("CPU", "dense", 32, "eager", "full"), 1, Traits(2048)).said()
    'none; no comparable runs were checked (dense transformers in 32 bits on CPU, eager, at full clock)'
    """
    alike = [run for run in checked_runs() if run.sort == sort]
    akin = [run for run in checked_runs() if run.sort.is_akin(sort)]
    span, wider = _span(alike), _span(akin)
    if span is None:
        known = ("no comparable runs were", "only one comparable run was", "only two comparable runs were")[len(alike)]
        return Expected(None, None, len(alike), f"{known} checked ({sort.said()})")
    low, high, most = span.low, span.high, span.most
    basis = "contains 80 % of" if span.runs >= MANY else "80 % by the errors of"
    why = f"{basis} {span.said('comparable measured runs')}"
    if wider is not None and (span.runs < MANY or gpus > FURTHER * most):
        low, high, most = min(low, wider.low), max(high, wider.high), max(most, wider.most)
        why += f", widened by {wider.said('on another GPU or in another precision')}"
    outside = (*((f"{gpus} GPUs",) if gpus > FURTHER * most else ()), *_unchecked(traits, [*alike, *akin]))
    return Expected(seconds * low, seconds * high, span.runs, why, outside)


def _unchecked(traits: Traits, runs: list[CheckedRun]) -> tuple[str, ...]:
    """What of these traits fewer runs have than say something about others."""
    longest = max(run.traits.sequence for run in runs)
    longer = (f"sequences of {traits.sequence:,} tokens",) if traits.sequence > FURTHER * longest else ()
    known = Counter(part for run in runs for part in run.traits.parts)
    return (*longer, *(part for part in traits.parts if known[part] < FEWEST))
