"""The quick estimate of `plan` beside the whole search, and beside the simulated step of its strategy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.hardware import Given, read_cluster
from ropewalk.planner.estimate import estimate
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import Study, answer
from ropewalk.progress import silent

SMALL = Space(micro_batch=(1, 2, 4), zero=(0, 1, 3), context=(1,))


@pytest.mark.parametrize("speed", [3e9, 50e9])
@pytest.mark.parametrize("batch", [16, 64])
def test_an_estimate_is_the_simulated_step_of_its_strategy_and_never_faster_than_the_search(speed, batch):
    asked = PlannerQuestion(
        "gpt2", read_cluster("2x4", Given(device="h100", nic_bandwidth=speed)), batch, 256, space=SMALL
    )
    quick = estimate(asked)
    searched = answer(asked)
    best = quick.best.strategy
    same = Space(
        tensor=(best.tensor,), pipeline=(best.pipeline,), context=(best.context,), micro_batch=(best.micro_batch,),
        zero=(best.zero,), recompute=(best.recompute,), schedules=(best.schedule,), sequence=(best.sequence_parallel,),
        interleave=(best.pieces_each,),
    )  # fmt: skip
    study = Study(replace(asked, space=same), silent)
    simulated_s = study.search(study.wanted, below=0.0).found.seconds.min()
    assert quick.best.seconds == pytest.approx(simulated_s, rel=1e-9)
    # The search has more to choose from.
    assert searched.best.seconds <= simulated_s * (1 + 1e-9)
    mfu = searched.training.statistics.mfu * searched.best.seconds / quick.best.seconds
    assert quick.mfu == pytest.approx(mfu, rel=1e-3)  # arithmetic of single samples, added up


@pytest.mark.parametrize("stack", ["eager", "megatron", "fsdp2"])
def test_known_prices_change_nothing(stack):
    there = read_cluster("2x8", Given(device="h100"))
    asked = PlannerQuestion(f"llama3-8b:layers=4,stack={stack}", there, 64, 2048)
    first = estimate(asked)
    slower = replace(asked, cluster=read_cluster("2x8", Given(device="h100", nic_bandwidth=3e9)), batch=32)
    assert estimate(slower, known=first.prices).as_json() == estimate(slower).as_json()
