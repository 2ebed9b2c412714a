"""What the model of a job names, and names that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropewalk.errors import ClusterError
from ropewalk.hardware import read_cluster
from ropewalk.plans import ModelUse, Plan
from ropewalk.plans.document import write_plan
from ropewalk.strategy import Strategy
from ropewalk.tenancy.of_trace import jobs_of
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.traces import Mix, TraceJob, mix_named
from ropewalk.tenancy.trained_said import trained_said
from ropewalk.tenancy.trains import Trains, trains

WHERE = plant("leaf-spine:4x8x8", gpus_per_server=4)


def job(name: str = "a", **more: object) -> TraceJob:
    return TraceJob(name, **({"gpus": 8, "arrival_s": 0.0, "duration_s": 100.0} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "way"),
    [
        ({"gpus": 1}, Trains.NOTHING),
        ({"model": "brt", "communication_share": 0.1}, Trains.TOLD),
        ({"compute_s": 1.0, "volume_bytes": 3}, Trains.TOLD),
        ({"model": "vgg16"}, Trains.PUBLISHED),
        ({"model": "roberta"}, Trains.PUBLISHED),
        ({"model": "vgg16", "duration_s": None, "iterations": 9}, Trains.STEP),
        ({"model": "vgg16", "device": "a100"}, Trains.STEP),
        ({"model": "vgg19"}, Trains.STEP),
        ({"model": "mixtral"}, Trains.STEP),
        ({"model": "gpt:layers=4,hidden=256,heads=4"}, Trains.STEP),
        ({}, Trains.DRAWN),
    ],
)
def test_what_a_job_says_decides_where_its_communication_comes_from(more: dict[str, object], way: Trains) -> None:
    assert trains(job(**more)) is way


def test_unknown_names_are_refused_together_with_those_that_come_near() -> None:
    with pytest.raises(ClusterError) as told:
        jobs_of([job(model="brt-large"), job("b", model="brt-large"), job("c", model="mixtrall")], WHERE)
    for part in (
        "2 jobs name 'brt-large'",
        "did you mean bert-large",
        "1 job names 'mixtrall'",
        "did you mean mixtral-8x7b",
    ):
        assert part in str(told.value)


def test_a_model_may_be_taken_for_another() -> None:
    (found,) = jobs_of([job(model="LM")], WHERE, model_as={"LM": "bert"})
    assert (found.model, found.trains) == ("bert", Trains.PUBLISHED.value)
    with pytest.raises(ClusterError, match="no job uses the model GAN"):
        jobs_of([job(model="bert")], WHERE, model_as={"GAN": "bert"})


def test_jobs_without_models_are_refused_unless_a_mix_is_chosen() -> None:
    jobs = [job(f"j{number}") for number in range(20)]
    with pytest.raises(ClusterError, match=r"20 of 20 jobs do not name a model: .*--mix published"):
        jobs_of(jobs, WHERE)
    found = jobs_of(jobs, WHERE, mix=Mix())
    assert {one.trains for one in found} == {Trains.DRAWN.value}
    assert "pangu" not in {one.model for one in jobs_of(jobs, WHERE, mix=mix_named("dense"))}
    (said,) = trained_said(found, "published")
    assert said.startswith("20 of 20 jobs have a model of the chosen mix (--mix published): ")


def test_files_are_found_beside_the_trace(tmp_path: Path) -> None:
    strategy = Strategy(data=4, pipeline=2, micro_batches=4)
    write_plan(Plan(ModelUse("gpt2", 64), read_cluster("2x4"), strategy), tmp_path / "plan.json")
    (found,) = jobs_of([job(model="plan.json", duration_s=None, iterations=3)], WHERE, folder=tmp_path)
    assert (found.model, found.split, found.iterations) == ("gpt2", strategy.said(), 3)
    (said,) = trained_said([found], gpus=["H200"])
    assert said.startswith("1 of 1 jobs have steps of their own plans on H200: gpt2 on 8 GPUs (dp 4, pp 2")


def test_a_duration_with_a_number_of_steps_says_how_long_a_step_computes() -> None:
    """Twice as long as the step of the model: more computing; a bit shorter: less, and what hid behind it shows."""
    free, slow, fast = (
        jobs_of([job(model="vgg19", batch=16, iterations=number)], WHERE)[0]
        for number in (None, *_around(jobs_of([job(model="vgg19", batch=16)], WHERE)[0].iterations))
    )
    volume = sum(one.size_bytes for one in free.work.exchanges)
    assert all(sum(one.size_bytes for one in other.work.exchanges) == pytest.approx(volume) for other in (slow, fast))
    assert fast.work.compute_s < free.work.compute_s < slow.work.compute_s
    with pytest.raises(ClusterError, match="its exchanges alone take longer"):
        jobs_of([job(model="vgg19", batch=16, iterations=10**7)], WHERE)


def _around(iterations: float) -> tuple[int, int]:
    return round(iterations / 2), round(iterations * 1.05)
