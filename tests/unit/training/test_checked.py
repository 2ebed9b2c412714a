"""A step time carries an interval from the errors on runs like it, or says that nothing like it was checked."""

from __future__ import annotations

import pytest

from ropewalk.device.device import device
from ropewalk.hardware import Given, read_cluster
from ropewalk.training import TrainingQuestion, answer, checked
from ropewalk.training.checked import CheckedRun, Sort, checked_runs, expected, sort_of
from ropewalk.workload.zoo import build

HERE = Sort("Here", "dense", 16, "eager", "full")


@pytest.fixture
def errors(monkeypatch):
    """Let these be the errors of runs on so many GPUs."""

    def known(*found, gpus=8):
        runs = tuple(CheckedRun(str(at), HERE, gpus, error) for at, error in enumerate(found))
        monkeypatch.setattr(checked, "checked_runs", lambda: runs)

    return known


def test_a_few_runs_bound_the_step_by_their_worst_errors(errors):
    errors(-0.2, 0.0, 0.25)  # predicted too fast by a fifth: it takes 1 / 0.8
    found = expected(8.0, HERE, 8)
    assert (found.low_s, found.high_s) == (pytest.approx(6.4), pytest.approx(10.0))
    assert found.said() == "6.4 s to 10 s; all of 3 checked comparable runs, on 8 GPUs"


def test_of_many_runs_the_outermost_are_left_out(errors):
    errors(*[0.0] * 18, 1.0, -0.5)
    found = expected(1.0, HERE, 8)
    assert (found.low_s, found.high_s) == (1.0, 1.0)
    assert found.why.startswith("80 % of 20 checked comparable runs")


def test_too_few_runs_give_no_interval(errors):
    errors(0.0, 0.1)
    assert expected(1.0, HERE, 8).said().startswith("none; only two comparable runs were checked (dense")


def test_many_more_gpus_than_were_checked_are_outside(errors):
    errors(0.0, 0.0, 0.0)
    assert "outside" not in expected(1.0, HERE, 16).why
    assert expected(1.0, HERE, 17).why.endswith("17 GPUs are outside the checked range")


@pytest.mark.parametrize(
    ("model", "gpu", "precision", "sort"),
    [
        ("resnet50", "h200", "bf16", Sort("Hopper", "samples", 16, "eager", "full")),
        ("llama3-8b:stack=megatron", "h100@700W", "fp8", Sort("Hopper", "dense", 8, "megatron", "held")),
        ("mixtral-8x7b:layers=2", "gb200", "nvfp4", Sort("Blackwell", "experts", 4, "eager", "full")),
        ("gpt2", "a100", "fp32", Sort("Ampere", "dense", 32, "eager", "full")),
    ],
)
def test_runs_are_sorted_by_gpu_model_width_stack_and_clock(model, gpu, precision, sort):
    assert sort_of(build(model, 1, None), device(gpu), precision) == sort


def test_every_checked_run_is_of_a_device_that_there_is():
    runs = checked_runs()
    assert len(runs) > 300
    assert len({run.id for run in runs}) == len(runs)
    assert {run.sort.architecture for run in runs} == {"Ampere", "Hopper", "Blackwell"}
    assert all(-0.7 < run.error < 2 for run in runs)


def test_an_answer_says_its_interval_in_words_and_in_json():
    cluster = read_cluster(given=Given(8, "a100", 8))
    found = answer(TrainingQuestion("gpt2", cluster, batch=64))
    inside = found.as_json()["interval"]
    assert inside["low_s"] < found.statistics.step_time_s < inside["high_s"]
    assert " checked comparable runs, on " in found.expected.said()
