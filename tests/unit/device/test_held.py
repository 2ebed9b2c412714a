"""The clock behind a device's name: its published limit unless another is given, once, where energies are known."""

from __future__ import annotations

import pytest

from ropewalk.device.device import DEVICES, device
from ropewalk.device.held import at_full_clock, held_to
from ropewalk.device.pricer import pricer
from ropewalk.errors import DeviceError, InputError
from ropewalk.workload.zoo import build

GPT = build("gpt2", 1, 1024)


def test_a_limit_is_put_behind_the_name_of_the_device() -> None:
    assert (held_to("h200", "500W"), held_to("h200", "none")) == ("h200@500W", "h200@none")


def test_a_device_is_held_to_its_published_limit_unless_told_otherwise() -> None:
    held = {name: device(held_to(name)).held_to for name in DEVICES}
    limits = {name: one.make.power for name, one in DEVICES.items()}
    assert held == {name: None if power is None or power.kept else power.limit for name, power in limits.items()}
    assert (held["h100"], held["mi300x"]) == (700, 750)
    assert held["v100"] is None


def test_rates_that_were_measured_under_the_limit_are_those_of_the_limit() -> None:
    assert held_to("a100") == "a100"
    sold, said, lower = (pricer(name).sustained(GPT) for name in ("a100", "a100@400W", "a100@150W"))
    passes = [prices.forward_work(GPT.layers[1].operators).gpu_s for prices in (sold, said, lower)]
    assert passes[0] == passes[1] < passes[2]
    assert sold.source.endswith("at the clock of its limit, 400 W, eager stack")


def test_what_says_its_clock_keeps_it() -> None:
    said = ("h200@500W", "h200@none", "my-gpu.csv.gz", "no-such-gpu")
    assert tuple(map(held_to, said)) == said
    assert tuple(map(at_full_clock, said)) == said


def test_no_limit_is_full_clock_and_says_so() -> None:
    free, bare = (pricer(name).sustained(GPT) for name in ("h200@none", "h200"))
    assert free.clock == 1.0
    assert free.source == bare.source == "measured on h200 (shipped table), at full clock, eager stack"
    assert free.forward(GPT.layers[1].operators) == bare.forward(GPT.layers[1].operators)


def test_a_device_without_energies_says_that_its_clock_is_not_known() -> None:
    assert "at full clock (energy model of mi250 not known)" in pricer("mi250").sustained(GPT).source


@pytest.mark.parametrize(
    ("device", "why"), [("h200@700W", "has a power limit already"), ("my.csv.gz", "is a table of measurements")]
)
def test_a_second_limit_and_one_of_measurements_are_refused(device: str, why: str) -> None:
    with pytest.raises(InputError, match=f"{why}.*leave --power 500W out"):
        held_to(device, "500W")


def test_a_limit_of_a_device_without_energies_is_refused_with_a_remedy_that_works() -> None:
    with pytest.raises(DeviceError, match=r"use one of h200, .* or no power limit \(leave --power out\)"):
        held_to("mi250", "300W")
    assert device(held_to("mi250")).held_to is None
