"""Jobs made of models: what a training step computes and exchanges, added up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_models import step_time

from ropewalk.device.pricer import pricer
from ropewalk.errors import ClusterError
from ropewalk.strategy import Order, Part, Placement, Strategy
from ropewalk.task.lower import lower
from ropewalk.tenancy.modelled import Model, work_of_model
from ropewalk.tenancy.work import Exchange, Work
from ropewalk.workload.source import open_workload


def _by_name(work: Work) -> dict[str, float]:
    return {f"{one.collective} {one.group}/{one.stride}": one.size_bytes for one in work.exchanges}


def test_data_parallel_training_sums_all_gradients_beside_the_backward_pass() -> None:
    work = work_of_model(Model("vgg16", 16), 16)
    (gradients,) = work.exchanges
    assert gradients.size_bytes == pytest.approx(2 * 138.36e6, rel=1e-3)
    assert 0 < gradients.overlap_s < work.compute_s


def test_without_overlap_gradients_hide_behind_nothing() -> None:
    model = Model("resnet50", strategy=Strategy(data=8, micro_batch=32, order=Order(overlap=False)))
    assert [one.overlap_s for one in work_of_model(model, 8).exchanges] == [0.0]


def test_a_larger_batch_computes_longer_and_sends_the_same() -> None:
    small, large = work_of_model(Model("vgg16", 16), 8), work_of_model(Model("vgg16", 64), 8)
    assert large.compute_s > 2 * small.compute_s
    assert large.exchanges[0].size_bytes == small.exchanges[0].size_bytes


def test_tensor_pipeline_and_data_parallel_ranks_meet_in_their_own_groups() -> None:
    strategy = Strategy(data=2, tensor=2, pipeline=4, micro_batches=8)
    work = work_of_model(Model("gpt2", strategy=strategy), 16)
    found = _by_name(work)
    assert {"hierarchical-ring 2/2", "hierarchical-ring 2/1", "ends 4/4", "pipeline 4/4"} <= set(found)
    tensor = next(one for one in work.exchanges if (one.group, one.stride) == (2, 1))
    assert tensor.overlap_s == 0.0


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "interleaved", "zb-h1", "zb-v"])
def test_a_pipeline_computes_for_as_long_as_its_own_timetable_takes(schedule: str) -> None:
    """As long as the step would take if nothing but computing took time."""
    strategy = Strategy(data=2, pipeline=4, micro_batches=8, schedule=schedule,
                        interleave=2 if schedule == "interleaved" else 1)  # fmt: skip
    step = lower(open_workload("gpt2", 1), strategy, Placement(strategy), pricer("h200", "bf16"))
    assert work_of_model(Model("gpt2", strategy=strategy), 8).compute_s == pytest.approx(step_time(step), rel=1e-9)


def test_strategies_whose_groups_are_unevenly_spaced_are_refused() -> None:
    twice = Strategy(data=2, pipeline=2, micro_batches=4, schedule="dualpipe")
    parts = Strategy(pipeline=2, parts=(Part(0, 5, (0, 1, 2)), Part(6, 13, (3,))), micro_batch=3)
    for strategy in (twice, parts):
        with pytest.raises(ClusterError, match="give degrees instead of parts, and a schedule with one copy"):
            work_of_model(Model("gpt2", strategy=strategy), 4)
    work_of_model(Model("gpt2", strategy=replace(twice, schedule="dualpipev")), 4)


def test_experts_and_tables_exchange_all_to_all_and_hide_behind_nothing() -> None:
    experts = work_of_model(Model("mixtral-8x7b", strategy=Strategy(data=8, expert=8)), 8)
    tables = work_of_model(Model("dlrm", 64), 8)
    for work in (experts, tables):
        (swapped,) = (one for one in work.exchanges if one.collective == "all-to-all")
        assert swapped.size_bytes > 0
        assert swapped.overlap_s == 0.0


def test_sharded_weights_are_gathered_and_gradients_scattered() -> None:
    found = _by_name(work_of_model(Model("gpt2", strategy=Strategy(data=4, zero=3)), 4))
    assert found["all-gather 4/1"] == pytest.approx(2 * found["reduce-scatter 4/1"], rel=1e-3)


def test_the_sum_may_run_by_another_algorithm() -> None:
    work = work_of_model(Model("resnet50", 32, all_reduce="halving-doubling"), 16)
    assert work.exchanges[0].collective == "halving-doubling"


def test_a_strategy_for_other_gpus_is_refused() -> None:
    with pytest.raises(ClusterError, match="is for 2 GPUs, the job has 4"):
        work_of_model(Model("gpt2", strategy=Strategy(data=2)), 4)


def test_impossible_work_is_named() -> None:
    with pytest.raises(ClusterError) as caught:
        Work(-1.0, (Exchange("ring", -5.0, overlap_s=3.0, group=1),))
    for part in ("computes for -1.0 s", "moves -5.0 bytes", "groups of 1", "hide behind 3 s"):
        assert part in str(caught.value)
    with pytest.raises(ClusterError, match="neither computes nor sends"):
        Work(0.0)


def test_work_scales_its_volume_and_drops_its_overlap() -> None:
    work = Work(1.0, (Exchange("ring", 10.0, overlap_s=0.5),))
    assert work.scaled(1.5).exchanges[0].size_bytes == 15.0
    assert work.without_overlap().exchanges[0].overlap_s == 0.0
