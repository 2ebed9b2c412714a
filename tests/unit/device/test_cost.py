import pytest

from ropewalk.device.cost import step_cost
from ropewalk.device.pricer import pricer
from ropewalk.device.work import Work
from ropewalk.errors import DeviceError
from ropewalk.workload import kernel
from ropewalk.workload.dense import Linear
from ropewalk.workload.opaque import Measured
from ropewalk.workload.workload import Layer, chain
from ropewalk.workload.zoo import build


def test_work_takes_at_least_as_long_as_either_side_and_at_most_both():
    work = Work(3.0, 2.0)
    assert max(work.gpu_s, work.host_s) < work.seconds < work.gpu_s + work.host_s
    assert Work(3.0, 0.0).seconds == 3.0
    assert Work().seconds == 0.0


def test_a_measured_layer_costs_what_was_measured_on_any_device():
    layer = Layer("stage", (Measured(2e-3, 5e-3),), 10)
    workload = chain("profile", [layer], batch=1)
    for name in ("h200", "a100", "v100"):
        cost = step_cost(workload, pricer(name, "fp16"), "none")
        assert cost.forward_s == pytest.approx(2e-3, abs=1e-12)
        assert cost.forward_backward_s == pytest.approx(7e-3, abs=1e-12)


def test_parts_of_a_step_stand_in_order():
    cost = step_cost(build("resnet50", 32), pricer("h200", "bf16"))
    assert 0 < cost.forward_s < cost.forward_backward_s < cost.step_s


def test_a_slower_device_takes_longer_and_says_where_its_numbers_come_from():
    workload = build("gpt2", 8, 1024)
    times = {name: step_cost(workload, pricer(name, "fp16")) for name in ("v100", "a100", "h100", "h200")}
    assert times["v100"].step_s > times["a100"].step_s > times["h100"].step_s > times["h200"].step_s
    assert times["h200"].source == "measured on h200 (shipped table)"
    assert "roofline of a100, calibrated on h200 measurements" in times["a100"].source


def test_more_samples_take_longer_but_not_more_than_in_proportion():
    prices = pricer("h200", "bf16")
    small, large = (step_cost(build("vgg16", batch), prices, "none").forward_backward_s for batch in (32, 128))
    assert small < large < 4.4 * small


def test_an_unknown_optimiser_is_refused_with_those_known():
    with pytest.raises(DeviceError, match="use one of none, sgd, momentum, adamw, adamw_fused"):
        pricer("h200").update(1000, 2, "lion")


def test_adamw_over_lists_moves_memory_at_the_rate_of_other_updates_over_lists():
    """Its eight operations read 12 tensors and write 8; momentum's three read 5 and write 3."""
    prices = pricer("h200")
    adamw, momentum = (prices.update_work(2**28, 1, name).gpu_s for name in ("adamw", "momentum"))
    assert adamw == pytest.approx(20 / 8 * momentum, rel=0.1)


def test_updates_one_tensor_at_a_time_keep_the_gpu_waiting_beyond_what_fits_its_queue():
    prices = pricer("h200")
    few, many = (prices.update_work(10**8, tensors, "adamw_loop") for tensors in (100, 1000))
    assert few.waiting_s == 0
    assert many.waiting_s == pytest.approx((1 - 1024 / 8000) * (many.waiting_s + many.host_s))
    assert prices.update_work(10**8, 1000, "adamw").waiting_s == 0


def test_waiting_for_launches_hides_behind_nothing():
    assert (Work(3.0, 1.0) + Work(0.0, 0.0, 2.0)).seconds == Work(3.0, 1.0).seconds + 2.0
    assert Work(0.0, 0.0, 2.0).seconds == 2.0


def test_fusing_the_optimiser_saves_time_and_none_costs_none():
    prices = pricer("h200")
    assert prices.update(10**9, 100, "none") == 0
    assert prices.update(10**9, 100, "adamw_fused") < prices.update(10**9, 100, "adamw")


def test_casts_cost_nothing_where_numbers_are_wide_already():
    from ropewalk.workload import wide

    assert pricer("h200", "tf32").kernel(wide.cast(10**6)) == 0
    assert pricer("h200", "bf16").kernel(wide.cast(10**6)) > 0


def test_a_linear_layer_costs_twice_as_much_backward_as_forward_when_it_is_large():
    prices = pricer("h200", "bf16")
    layer = (Linear(16384, 8192, 8192, bias=False),)
    assert prices.backward(layer) == pytest.approx(2 * prices.forward(layer), rel=0.15)


def test_what_multiprocessors_take_beyond_the_bytes_does_not_shrink_with_a_faster_memory():
    joined, copied = (kernel.pointwise(form, 1 << 27) for form in ("cat", "map"))
    fast, slow, measured = (pricer(name, "bf16") for name in ("b200", "h100", "h200"))
    waits = measured.kernel(joined) - measured.kernel(copied)
    assert fast.kernel(joined) - fast.kernel(copied) == pytest.approx(waits * 132 / 148, rel=0.05)
    assert slow.kernel(joined) / slow.kernel(copied) == pytest.approx(
        measured.kernel(joined) / measured.kernel(copied), rel=0.01
    )


def test_megatrons_update_moves_62_bytes_for_each_parameter():
    prices, parameters = pricer("h200", "bf16"), 10**9
    plain, mixed = (prices.update_work(parameters, 1, name).gpu_s for name in ("adamw_fused", "adamw_mixed"))
    assert mixed / plain == pytest.approx(62 / 14, rel=0.05)
    with pytest.raises(DeviceError, match="optimiser adamw_mixed keeps copies of weights in 16 bits, not in tf32"):
        pricer("h200", "tf32").update_work(parameters, 1, "adamw_mixed")
