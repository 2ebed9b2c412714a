"""State of an optimiser in the memory of the host: what the GPU is spared, and what it waits for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ropewalk.device.device import device
from ropewalk.device.host import Host
from ropewalk.device.pricer import pricer
from ropewalk.errors import DeviceError, MemoryShortage
from ropewalk.export.deepspeed import deepspeed_json
from ropewalk.export.megatron import megatron_arguments
from ropewalk.hardware import Given, read_cluster
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer as planned
from ropewalk.plans import ModelUse, Plan
from ropewalk.strategy import Strategy, runnable
from ropewalk.training import TrainingQuestion, answer

ON_HOST = Strategy(data=8, zero=1, optimiser="adamw_cpu")
CPUS_OF_A_DGX_2 = Host(link=1e12, bandwidth=256e9, memory=1.5e12)
"""Nothing is sent: state and gradients are there."""


@pytest.mark.parametrize(("billions", "published_s"), [(1, 0.22), (2, 0.51), (4, 1.03), (8, 2.41), (10, 2.57)])
def test_updates_on_the_cpus_of_a_dgx_2_take_what_deepspeed_publishes(billions: int, published_s: float) -> None:
    """Ren et al., ZeRO-Offload, 2021, Adam latency of CPU-Adam; the last row fixed the part of the bandwidth."""
    assert CPUS_OF_A_DGX_2.update_s(billions * 10**9, 2.0) == pytest.approx(published_s, rel=0.2)


def test_a_thin_link_counts_where_the_hosts_memory_is_fast() -> None:
    narrow = Host(link=1e9, bandwidth=1e12, memory=1e12)
    assert narrow.update_s(10**9, 2.0) == pytest.approx(4.0 / 0.87)


def test_the_gpu_holds_no_state_and_waits_for_its_host() -> None:
    asked = TrainingQuestion(
        "llama-7b:layers=4", read_cluster("1x8", Given(device="h100")), sequence=512, decided=ON_HOST
    )
    here = answer(replace(asked, decided=replace(ON_HOST, optimiser="adamw_fused")))
    there = answer(asked)
    assert there.memory.optimiser.max() == 0 < here.memory.optimiser.max()
    host = device("h100").host
    assert host is not None
    waited = host.update_s(here.workload.parameters() // 8, 2.0)
    assert there.run.makespan - here.run.makespan == pytest.approx(waited, rel=0.08)


def test_a_device_whose_host_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        DeviceError, match=r"host of mi300x .* not known: use the optimiser adamw_fused, or one of h200"
    ):
        pricer("mi300x").update_work(10**6, 1, "adamw_cpu")


def test_a_state_that_the_host_does_not_hold_is_refused() -> None:
    cluster = read_cluster("1x1", Given(device="v100"))
    alone = replace(ON_HOST, data=1, zero=0)
    asked = TrainingQuestion("llama-7b:layers=27", cluster, sequence=64, precision="fp16", decided=alone)
    with pytest.raises(
        MemoryShortage, match=r"68.*GB of the host's memory for each GPU, and v100 has 64 GB: raise --zero"
    ):
        answer(asked)


def test_a_plan_counts_the_memory_that_is_free_then() -> None:
    cluster = read_cluster("1x2", Given(device="a100-40gb"))
    usual = Strategy(optimiser="adamw_cpu")
    space = Space(server=2, zero=(0, 1), recompute=("none",), micro_batch=(1,), usual=usual)
    found = planned(PlannerQuestion("llama-3.2-3b", cluster, 4, 512, space=space))
    assert found.best.strategy.optimiser == "adamw_cpu"
    assert found.best.memory_bytes < 40e9


def test_frameworks_are_told() -> None:
    plan = Plan(ModelUse("llama-3.2-1b"), read_cluster("1x8"), ON_HOST)
    told = megatron_arguments(plan)
    assert "--optimizer-cpu-offload" in told
    assert "--overlap-cpu-optimizer-d2h-h2d" in told
    assert json.loads(deepspeed_json(plan))["zero_optimization"]["offload_optimizer"]["device"] == "cpu"
    assert "use zero 1" in str(runnable(replace(ON_HOST, zero=0))["megatron"])
    assert "cannot run the optimiser adamw_cpu" in str(runnable(ON_HOST)["torchtitan"])
