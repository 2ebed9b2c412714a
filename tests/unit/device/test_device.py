import pytest

from ropewalk.device.device import DEVICES, PRECISIONS, device, precision
from ropewalk.device.pricer import pricer
from ropewalk.device.roofline import roofline
from ropewalk.errors import DeviceError
from ropewalk.workload import kernel as k


@pytest.mark.parametrize("name", ["v100", "a100", "h100", "h200", "b200", "mi250", "mi300x", "cpu"])
def test_every_promised_device_is_in_the_table_with_a_source(name):
    found = device(name)
    assert found.source
    assert 0 < found.achievable <= 1
    assert 0 < found.streaming <= 1
    assert found.memory_bytes > 1e9


def test_a_slip_in_a_device_name_is_met_with_the_nearest_name():
    with pytest.raises(DeviceError, match="did you mean h100"):
        device("h10")


def test_a_precision_that_a_device_lacks_is_refused_with_those_it_has():
    with pytest.raises(DeviceError, match="v100 has no tf32 rate: use one of fp16, fp32"):
        device("v100").peak(precision("tf32"))


def test_an_unknown_precision_is_refused_with_those_known():
    with pytest.raises(DeviceError, match=", ".join(PRECISIONS)):
        precision("int4")


def test_rates_grow_as_numbers_shrink():
    for found in (choice.make for choice in DEVICES.values()):
        by_bytes = sorted(
            (PRECISIONS[name].element_bytes, rate) for name, rate in found.peak_flops.items() if name in PRECISIONS
        )
        assert by_bytes[0][1] >= by_bytes[-1][1], found.name


@pytest.mark.parametrize(("name", "faster"), [("a100", 312 / 989 * 4096 / 2048), ("b200", 2250 / 989 * 4096 / 8192)])
def test_products_of_odd_widths_scale_with_cycles_and_others_with_tensor_cores(name: str, faster: float) -> None:
    odd, even = (k.matmul("forward", 8192, words, 2048) for words in (50257, 51200))
    here, there = pricer("h200"), pricer(name)
    assert there.kernel(odd) == pytest.approx(here.kernel(odd) / faster, rel=1e-3)
    assert there.kernel(even) != pytest.approx(here.kernel(even) / faster, rel=0.2)


@pytest.mark.parametrize(("name", "rows"), [("mi300x", 8192), ("h100", 8192), ("a100", 1)])
def test_odd_widths_of_other_makers_of_the_same_architecture_and_of_few_rows_scale_by_their_roofline(name, rows):
    odd, there = k.matmul("forward", rows, 50257, 2048), pricer(name)
    ratio = there.table.ratio(odd, "bf16")
    assert there.kernel(odd) == pytest.approx(ratio * roofline(odd, there.device, there.precision))


@pytest.mark.parametrize("name", [name for name in DEVICES if name != "cpu"])
def test_rates_that_are_not_those_of_the_measured_device_have_a_source(name: str) -> None:
    """A data sheet for all; shares and launches that differ from the H200's are named with where they come from."""
    here, measured = device(name), device("h200")
    assert "data sheet" in here.source
    differs = [key for key in ("achievable", "launch_s", "host_factor") if getattr(here, key) != getattr(measured, key)]
    assert all(key in here.source for key in differs), differs
    blackwell = here.architecture == "Blackwell"
    assert here.streaming == measured.streaming or blackwell or "streaming" in here.source
