"""Jobs made of decided steps: what the groups of a strategy exchange, and that a job alone takes the simulated step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ropewalk.errors import ClusterError
from ropewalk.hardware import read_cluster
from ropewalk.plans import Communication, ModelUse, Plan
from ropewalk.strategy import Order, Part, Strategy
from ropewalk.tenancy.decided import Decided, by_degrees, by_planner, of_plan, servers_of
from ropewalk.tenancy.footprint import footprint_of
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.paths import SwitchNetwork, ideal
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.stepped import work_of_step
from ropewalk.tenancy.work import Iteration, JobExchange
from ropewalk.training import answer
from ropewalk.workload.files import write_workload
from ropewalk.workload.source import open_workload

WHERE = plant("leaf-spine:4x8x8", gpus_per_server=4)


def decided(model: str, **strategy: object) -> Decided:
    return Decided(model, Strategy(**strategy), "h200")  # type: ignore[arg-type]


def work(what: Decided, all_reduce: str | None = None) -> Iteration:
    return work_of_step(what, gpus_only(Occupancy(WHERE), "a", what.strategy.ranks), WHERE, all_reduce)


def quiet_s(what: Decided) -> float:
    place = gpus_only(Occupancy(WHERE), "a", what.strategy.ranks)
    network = SwitchNetwork(WHERE, WHERE.cables, lambda: np.zeros(0), 0)
    return footprint_of(work(what), place, network, ideal).quiet_iteration_s


def total(found: Iteration, name: str) -> float:
    return sum(one.size_bytes for one in found.exchanges if one.collective == name)


STEPS = {
    "data": decided("vgg16", data=16, micro_batch=16),
    "without overlap": decided("resnet50", data=8, micro_batch=32, order=Order(overlap=False)),
    "by priority": decided("gpt2", data=8, order=Order(fusion=4e6, priority="forward")),
    "tensor, pipeline and data": decided("gpt2", data=2, tensor=2, pipeline=4, micro_batches=8),
    "zero bubbles": decided("gpt2", data=2, pipeline=4, micro_batches=8, schedule="zb-v"),
    "two copies": decided("gpt2", data=2, pipeline=2, micro_batches=4, schedule="dualpipe"),
    "parts": decided("gpt2", pipeline=2, parts=(Part(0, 5, (0, 1, 2)), Part(6, 13, (3,))), micro_batch=3),
    "experts": decided("mixtral-8x7b:layers=2", data=8, expert=8),
    "sharded": decided("gpt2", data=4, zero=3),
}


@pytest.mark.parametrize("name", list(STEPS))
def test_a_job_alone_on_a_quiet_network_takes_the_simulated_step(name: str) -> None:
    what = STEPS[name]
    simulated = answer(what.question(servers_of(what.strategy.ranks, WHERE, "h200"))).statistics.step_time_s
    assert quiet_s(what) == pytest.approx(simulated, rel=1e-6)


def test_gradients_of_data_parallel_training_hide_but_for_the_last_of_them() -> None:
    found = work(STEPS["data"])
    hides, shows = found.exchanges
    assert {one.collective for one in found.exchanges} == {"hierarchical-ring"}
    assert 2 * 138.36e6 <= hides.size_bytes + shows.size_bytes <= 1.5 * 2 * 138.36e6
    assert hides.overlap_s > 0 == shows.overlap_s
    bare = work(STEPS["without overlap"])
    assert sum(one.overlap_s for one in bare.exchanges) < 0.01 * bare.compute_s


def test_tensor_pipeline_and_data_parallel_ranks_meet_in_their_own_groups() -> None:
    found = {(one.group, one.stride) for one in work(STEPS["tensor, pipeline and data"]).exchanges}
    assert {(2, 1), (2, 2), (4, 4)} <= found


def test_groups_that_are_not_evenly_spaced_are_listed() -> None:
    found = work(STEPS["parts"])
    assert ((0, 1, 2),) in {one.groups for one in found.exchanges if one.collective == "hierarchical-ring"}
    (pairs,) = {one.groups for one in found.exchanges if one.collective == "pipeline"}
    assert pairs == ((0, 3), (1, 3), (2, 3))


def test_experts_and_tables_exchange_all_to_all_and_that_shows() -> None:
    for what in (STEPS["experts"], by_degrees("dlrm", 8, {}, 64, "h200")):
        swapped = [one for one in work(what).exchanges if one.collective.startswith("all-to-all")]
        shows = sum(one.size_bytes for one in swapped if not one.overlap_s)
        assert shows > 0.4 * sum(one.size_bytes for one in swapped) > 0


def test_sharded_weights_are_gathered_twice_and_gradients_scattered_once() -> None:
    found = work(STEPS["sharded"])
    gathered, scattered = (total(found, f"{act}:hierarchical-ring") for act in ("all-gather", "reduce-scatter"))
    assert gathered == pytest.approx(2 * scattered, rel=1e-3)


def test_a_pipeline_keeps_gpus_less_busy_than_its_step_is_long() -> None:
    found = work(STEPS["tensor, pipeline and data"])
    assert found.arithmetic_s < 0.9 * found.compute_s


def test_the_sum_may_run_by_another_algorithm() -> None:
    assert {one.collective for one in work(STEPS["data"], "halving-doubling").exchanges} == {"halving-doubling"}


def test_a_plan_brings_its_strategy_its_collectives_and_its_order() -> None:
    servers = read_cluster("2x4")
    strategy = Strategy(data=8, micro_batch=4, order=Order(fusion=0.0, priority="forward"))
    plan = Plan(ModelUse("gpt2", 64), servers, strategy, communication=Communication(algorithm="data=forest"))
    what = of_plan(plan, 8)
    assert (what.strategy, what.sequence) == (strategy, 64)
    assert {one.collective for one in work(what).exchanges} == {"forest"}
    with pytest.raises(ClusterError, match=r"is for 8 GPUs .*, the job has 16: write 8"):
        of_plan(plan, 16)


def test_the_planner_finds_a_split_that_fits_where_copies_would_not() -> None:
    what = by_planner("llama3-70b", 32, WHERE, 1, "h200")
    assert what.strategy.ranks == 32
    assert what.strategy.tensor * what.strategy.pipeline * (what.strategy.zero + 1) > 1
    with pytest.raises(ClusterError, match="does not fit on 2 h200"):
        by_planner("llama3-70b", 2, WHERE, 1, "h200")


def test_a_job_of_a_workload_file_takes_the_micro_batch_that_the_file_was_written_for(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    write_workload(open_workload("vgg11", 8), file)
    assert by_planner(str(file), 16, WHERE, None, "h200").strategy.micro_batch == 8
    split = by_degrees(str(file), 16, {"pipeline": 2}, None, "h200").strategy
    assert (split.micro_batch, split.micro_batches, split.data) == (8, 2, 8)
    assert quiet_s(by_degrees(str(file), 4, {"tensor": 1}, None, "h200")) == pytest.approx(
        quiet_s(by_degrees("vgg11", 4, {"tensor": 1}, 8, "h200"))
    )


def test_one_exchange_may_follow_another_after_some_computing() -> None:
    """Computing between exchanges is part of all computing: it moves them, and makes nothing longer."""
    place, network = gpus_only(Occupancy(WHERE), "a", 16), SwitchNetwork(WHERE, WHERE.cables, lambda: np.zeros(0), 0)
    near, apart = (
        footprint_of(
            Iteration(1.0, (JobExchange("ring", 1e8), JobExchange("ring", 1e8, after_s=gap))), place, network, ideal
        )
        for gap in (0.0, 0.5)
    )
    assert apart.quiet_iteration_s == pytest.approx(near.quiet_iteration_s)
    assert apart.exchange.tolist() == [0, -1, 1]
    assert apart.floor_s[1] == 0.5
