"""Steps whose products run in 8 bits or fewer, and steps that are held to a power limit."""

from __future__ import annotations

import pytest

from ropewalk.device.device import PRECISIONS, device
from ropewalk.device.power import Power, falling
from ropewalk.device.pricer import pricer
from ropewalk.errors import DeviceError
from ropewalk.workload import kernel as k
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear
from ropewalk.workload.zoo import build

WIDE = Linear(4096, 8192, 8192, bias=False)
LLAMA = build("llama3-8b:layers=2,stack=megatron", 1, 4096)


def seconds(precision: str, operator: Linear | FusedAttention, gpu: str = "h200") -> float:
    prices = pricer(gpu, precision)
    return prices.forward((operator,)) + prices.backward((operator,))


def test_linear_layers_gain_and_heads_and_attention_stay_as_they_are() -> None:
    head, attention = Linear(4096, 8192, 8192, bias=False, exact=True), FusedAttention(1, 32, 8, 4096, 4096, 128, True)
    assert seconds("fp8", WIDE) < 0.75 * seconds("bf16", WIDE)
    assert seconds("fp8", head) == seconds("bf16", head)
    assert seconds("fp8", attention) == seconds("bf16", attention)


def test_a_product_in_fp8_is_the_product_and_what_makes_its_operands_narrow() -> None:
    prices, product = pricer("h200", "fp8"), k.matmul("forward", 4096, 8192, 8192)
    narrowing = prices.gpu(k.quantise(form, 4096 * 8192) for form in ("amax", "both"))
    gradient = k.matmul("weight_grad", 8192, 8192, 4096)
    assert prices.kernel(product) > narrowing
    assert prices.kernel(product) - narrowing == pytest.approx(prices.kernel(gradient), rel=0.15)


def test_what_is_handed_on_narrow_is_not_narrowed_again() -> None:
    prices = pricer("b200", "mxfp8")
    own, handed = (k.grouped_matmul("forward", 8, 8192, 4096, 2048, handed=one) for one in (False, True))
    narrowing = prices.gpu(k.quantise(form, 8192 * 2048) for form in ("block", "block"))
    assert prices.kernel(own) - prices.kernel(handed) == pytest.approx(narrowing)


def test_grouped_layers_take_the_host_twice_as_long_forth_in_fewer_bits() -> None:
    calls = "core_forward", "core_backward", "narrow_core_forward"
    wide, narrow = (pricer("h100", name) for name in ("bf16", "fp8"))
    assert narrow.host(calls) == pytest.approx(2 * wide.host(calls))
    assert narrow.host(calls, backward=True) == wide.host(calls, backward=True)


def test_remembered_scales_save_the_search_for_the_largest_number() -> None:
    assert seconds("fp8-delayed", WIDE) < seconds("fp8", WIDE)


@pytest.mark.parametrize("power", ["none", "400W"])
def test_remembered_scales_save_it_under_a_power_limit_too(power: str) -> None:
    times = [
        pricer(f"h100@{power}", precision).sustained(LLAMA).backward(LLAMA.layers[1].operators)
        for precision in ("fp8-delayed", "fp8", "bf16")
    ]
    assert times == sorted(times)


def test_products_with_scales_of_blocks_take_longer_on_hopper_than_with_one_scale() -> None:
    product = k.matmul("weight_grad", 8192, 8192, 8192)
    block, plain = (pricer("h200", name).kernel(product) for name in ("fp8-block", "fp8"))
    assert block / plain == pytest.approx(1.22, rel=0.01)
    assert pricer("h200", "fp8-block").kernel(product) < pricer("h200", "bf16").kernel(product)


def test_products_with_scales_of_blocks_draw_as_much_power_as_those_with_one_scale() -> None:
    """What they take longer, tensor cores and the cores that add up their sums are as busy: the clock is the same."""
    clocks = [pricer("h200@400W", precision).sustained(LLAMA).clock for precision in ("fp8-block", "fp8")]
    assert clocks[0] == pytest.approx(clocks[1], rel=0.03)


def test_a_rate_without_its_architecture_is_not_enough_for_scales_of_blocks() -> None:
    for gpu, others in (("b200", "fp8, fp8-delayed, mxfp8, nvfp4"), ("mi300x", "fp8, fp8-delayed"), ("a100", "bf16")):
        with pytest.raises(DeviceError, match=f"{gpu} has no fp8-block rate: use one of .*{others}"):
            pricer(gpu, "fp8-block")


def test_fewer_bits_are_faster_on_blackwell() -> None:
    times = [seconds(precision, WIDE, "gb200") for precision in ("bf16", "mxfp8", "nvfp4")]
    assert times == sorted(times, reverse=True)


def test_narrow_weights_are_made_once_in_the_update() -> None:
    narrow, plain = (pricer("h200", name).update_work(10**9, 10, "adamw_fused").gpu_s for name in ("fp8", "bf16"))
    assert 0 < narrow - plain < plain


@pytest.mark.parametrize(("gpu", "precision"), [("a100", "fp8"), ("h100", "mxfp8"), ("v100", "nvfp4")])
def test_a_precision_that_a_device_has_not_is_refused_with_those_it_has(gpu: str, precision: str) -> None:
    with pytest.raises(DeviceError, match=f"{gpu} has no {precision} rate: use one of .*f"):
        pricer(gpu, precision)


def test_a_kernel_keeps_the_precision_of_its_step_unless_it_is_a_narrowed_product() -> None:
    narrow = PRECISIONS["mxfp8"]
    assert narrow.of(k.matmul("forward", 64, 64, 64)) is narrow
    assert narrow.of(k.matmul("forward", 64, 64, 64, exact=True)).name == "bf16"
    assert narrow.of(k.matmul("forward", 64, 64, 64, 16)).name == "bf16"  # scores of attention
    assert narrow.of(k.pointwise("map", 64)).name == "bf16"


def test_the_clock_falls_with_the_limit_and_is_full_where_power_suffices() -> None:
    clocks = [pricer(f"h200@{watts}W").sustained(LLAMA).clock for watts in (300, 500, 700, 2000)]
    assert clocks == sorted(clocks)
    assert clocks[0] < 0.6
    assert clocks[-1] == 1.0


def test_at_the_clock_that_is_found_the_limit_is_drawn() -> None:
    power = Power(700, 120, {"bf16": 1e-12}, 1e-10)
    clocked, other, joules = 0.8, 0.2, 900.0
    clock = power.clock(clocked, other, joules)
    taken = clocked / clock + other
    assert 120 + joules * falling(clock) / taken == pytest.approx(700)


def test_memory_bound_work_does_not_slow_down_with_the_clock() -> None:
    held, copy = pricer("h200@400W").sustained(LLAMA), k.pointwise("map", 10**8)
    assert held.kernel(copy) == pricer("h200").kernel(copy)
    assert held.kernel(k.matmul("forward", 4096, 4096, 4096)) > pricer("h200").kernel(
        k.matmul("forward", 4096, 4096, 4096)
    )


def test_limits_that_no_device_can_be_held_to_are_refused() -> None:
    with pytest.raises(
        DeviceError, match="draws 120 W when idle and cannot be limited to 100 W: give more, such as 700W"
    ):
        device("h200@100W")
    with pytest.raises(DeviceError, match=r"the energy model of .* is not known: use one of h200"):
        device("v100@300W")


def test_limits_are_those_of_the_data_sheets() -> None:
    names = ("a100", "h100", "h200", "b200", "b300", "gb200", "gb300", "mi300x")
    limits = {name: device(name).power for name in names}
    assert [power.limit for power in limits.values() if power] == [400, 700, 700, 1000, 1100, 1200, 1400, 750]


def test_without_a_limit_devices_run_at_full_clock_and_the_source_says_when_they_do_not() -> None:
    assert pricer("h200").sustained(LLAMA).clock == 1.0
    assert pricer("h200@500W").sustained(LLAMA).source.endswith("of the full clock under 500 W, megatron stack")
    assert pricer("h100@500W").source == "roofline of h100, calibrated on h200 measurements"


def test_the_clock_does_not_depend_on_the_micro_batch() -> None:
    clocks = [pricer("h200@500W").sustained(LLAMA.at_batch(batch)).clock for batch in (1, 4)]
    assert clocks[0] == clocks[1]


def test_values_that_are_shorter_than_keys_take_longer_than_heads_of_the_mean_size() -> None:
    even = FusedAttention(1, 128, 128, 4096, 4096, 160, True)
    uneven = FusedAttention(1, 128, 128, 4096, 4096, 160, True, uneven=True)
    for gpu, forth, back in (("h200", 1.02, 1.12), ("b200", 1.23, 1.44), ("a100", 1.0, 1.0)):
        prices = pricer(gpu, "bf16")
        assert prices.forward((uneven,)) == pytest.approx(forth * prices.forward((even,)), rel=0.02)
        assert prices.gpu(uneven.backward()) == pytest.approx(back * prices.gpu(even.backward()))


def test_short_heads_gain_less_from_blackwell_than_long_ones() -> None:
    """Exponentials are as many for a head of 64 as for one of 128, and Blackwell makes no more of them in a cycle."""

    def gain(size: int) -> float:
        heads = FusedAttention(1, 32, 8, 8192, 8192, size, True).forward()
        return pricer("h200", "bf16").gpu(heads) / pricer("b200", "bf16").gpu(heads)

    assert gain(64) == pytest.approx(gain(128) / 1.33, rel=0.1)


@pytest.mark.parametrize(("precision", "launches"), [("fp8", 3), ("fp8-delayed", 0), ("fp8-block", 1), ("mxfp8", 1)])
def test_rows_of_experts_are_narrowed_expert_by_expert(precision: str, launches: int) -> None:
    gpu = "h200" if precision != "mxfp8" else "gb200"
    prices = pricer(gpu, precision)
    whole, apart = (k.grouped_matmul("forward", 16, 16384, 4096, 2048, apart=one) for one in (False, True))
    narrowed_s = prices.kernel(apart) - prices.alone(apart) - prices.kernel(whole) + prices.alone(whole)
    assert narrowed_s == pytest.approx(15 * launches * device(gpu).launch_s)


def test_gradients_of_weights_find_their_operands_narrow_already() -> None:
    prices, product = pricer("h200", "fp8"), k.grouped_matmul("weight_grad", 16, 16384, 4096, 2048, apart=True)
    assert prices.kernel(product) == prices.alone(product)
