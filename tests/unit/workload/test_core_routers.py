"""Megatron-Core's routers: few kernels, or one for each operation."""

from __future__ import annotations

from ropewalk.device.pricer import pricer
from ropewalk.workload.core_routers import CORE_ROUTER, CORE_ROUTER_APART
from ropewalk.workload.written import Written
from ropewalk.workload.zoo import build


def routers(options: str = "") -> set[str]:
    layer = build(f"qwen3-30b-a3b:stack=megatron{options}", 1, 512).layers[1]
    return {op.routine.name for op in layer.operators if isinstance(op, Written) and op.routine.name.startswith("rout")}


def test_a_recipe_may_leave_kernels_of_routers_apart() -> None:
    assert routers() == {"router, few kernels"}
    assert routers(",router_fusion=false") == {"router, a kernel each"}


def test_a_kernel_for_each_operation_takes_longer_on_gpu_and_host() -> None:
    prices = pricer("b200", "bf16")
    fused, apart = (
        prices.forward_work((one,)) + prices.backward_work((one,))
        for one in (Written(CORE_ROUTER, 8192, 128), Written(CORE_ROUTER_APART, 8192, 128))
    )
    assert apart.gpu_s > 2 * fused.gpu_s
    assert apart.host_s > fused.host_s


def test_numbers_of_kernels_are_those_of_the_sources() -> None:
    assert (len(CORE_ROUTER.forward), len(CORE_ROUTER.backward)) == (9, 6)
    assert len(CORE_ROUTER_APART.forward) > 40
