"""Published dense runs on Hopper and Blackwell (sources in the data file), one for each model, GPU and precision.

Nothing is fitted to a row. The bounds are a little above what is seen; `benchmarks/against_modern_runs.py` prints all
rows, also those that are met less well.
"""

from __future__ import annotations

import pytest

from modern_runs import ModernRun, modern_runs

MOST_GPUS = 64


def one_of_each(words: str) -> list[ModernRun]:
    """The first run in the file of every model, GPU, precision and task of these sets."""
    found = {}
    for run in modern_runs():
        if run.set in words.split(", ") and run.gpus <= MOST_GPUS and not run.why_not():
            found.setdefault((run.model, run.accelerator, run.precision, run.task), run)
    return list(found.values())


@pytest.mark.parametrize(
    ("sets", "rows", "mean", "bias"),
    [
        ("B200 dense bf16", 2, 0.05, 0.04),
        ("H100 dense bf16", 5, 0.08, 0.04),
        ("H100 dense fp8", 3, 0.05, 0.04),
        ("GB200 dense fp8, GB200 dense mxfp8", 6, 0.06, 0.04),
        ("GB300 dense fp8, GB300 dense mxfp8", 5, 0.08, 0.05),
        ("GB200 dense nvfp4, GB300 dense nvfp4", 2, 0.12, 0.12),
    ],
)
def test_dense_runs_are_met(sets, rows, mean, bias):
    errors = [run.predicted_s() / run.seconds - 1 for run in one_of_each(sets)]
    assert len(errors) == rows
    assert sum(map(abs, errors)) / rows < mean
    assert abs(sum(errors)) / rows < bias


def test_a_power_limit_makes_blackwell_slower():
    run = one_of_each("GB200 dense fp8")[0]
    assert run.predicted_s(held=False) < run.predicted_s(held=True)
