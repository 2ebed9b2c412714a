"""Whole training steps measured on an H200, none of which the kernels' table was calibrated on."""

from __future__ import annotations

import statistics

import pytest

from gpu_steps import PARTS, MeasuredStep, h200_steps


@pytest.fixture(scope="module")
def steps() -> list[MeasuredStep]:
    return list(h200_steps())


def errors(steps: list[MeasuredStep]) -> list[float]:
    return sorted(abs(step.error(part)) for step in steps for part in PARTS)


def test_parameters_are_those_that_the_framework_counted(steps: list[MeasuredStep]) -> None:
    assert [step.predicted.parameters for step in steps] == [step.parameters for step in steps]


def test_the_median_error_is_below_six_percent(steps: list[MeasuredStep]) -> None:
    assert statistics.median(errors(steps)) < 0.06


def test_updates_of_billions_of_parameters_take_as_long_as_measured(steps: list[MeasuredStep]) -> None:
    """AdamW over lists of tensors, whose kernels were measured as those of other optimisers."""
    large = [step for step in steps if step.is_limited_by_gpu and step.parameters > 1.5e9]
    assert len(large) >= 9
    for step in large:
        measured_s = step.measured_s["step_s"] - step.measured_s["forward_backward_s"]
        assert step.predicted.update.gpu_s == pytest.approx(measured_s, rel=0.08)


def test_steps_that_keep_the_gpu_busy_are_within_a_quarter_and_mostly_within_a_twentieth(
    steps: list[MeasuredStep],
) -> None:
    busy = errors([step for step in steps if step.is_limited_by_gpu])
    assert len(busy) > 100
    assert statistics.median(busy) < 0.04
    assert busy[int(0.9 * len(busy))] < 0.11
    assert max(busy) < 0.22


def test_whole_steps_in_bf16_that_keep_the_gpu_busy_are_within_nine_percent(steps: list[MeasuredStep]) -> None:
    busy = [step for step in steps if step.is_limited_by_gpu and step.predicted.precision == "bf16"]
    whole = sorted(abs(step.error("step_s")) for step in busy)
    assert len(whole) > 20
    assert statistics.median(whole) < 0.03
    assert whole[int(0.9 * len(whole))] < 0.07
    assert whole[-1] < 0.09


def test_steps_that_were_predicted_before_they_were_measured_are_met_best(steps: list[MeasuredStep]) -> None:
    unseen = errors([step for step in steps if step.unseen])
    assert len(unseen) == 75
    assert statistics.median(unseen) < 0.04
    assert sum(error > 0.25 for error in unseen) <= 1  # a small step that waited for its host: -38 %


def test_nine_steps_in_ten_are_within_thirty_percent(steps: list[MeasuredStep]) -> None:
    """The rest are small steps that wait for the host, whose speed varies by a quarter from run to run."""
    found = errors(steps)
    assert found[int(0.9 * len(found))] < 0.30
