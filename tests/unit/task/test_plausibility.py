"""Slips of units: possible, but not meant."""

import pytest

from ropewalk.fabric import Fabric, IdealSwitch
from ropewalk.task import Sketch
from ropewalk.task.plausibility import unit_slips


def fine() -> Sketch:
    sketch = Sketch()
    sketch.compute(0, 2e-3)
    sketch.transfer(0, 1, 25e6, start_up=1e-5, rate_cap=1.25e9)
    sketch.transfer(1, 0, 0.0)
    sketch.marker()
    return sketch


def cluster(bandwidth: float = 12.5e9, latency: float = 1e-6) -> Fabric:
    return IdealSwitch(2, bandwidth=bandwidth, latency=latency).build()


def test_an_ordinary_step_on_an_ordinary_cluster_has_none() -> None:
    assert unit_slips(fine().graph(), cluster()) == []
    assert unit_slips(fine().graph()) == []


@pytest.mark.parametrize(
    ("size", "start_up", "rate_cap", "finding"),
    [
        (0.25, 0.0, 1e9, "task 4 (t) transfers 0.25 of a byte"),
        (2e15, 0.0, 1e9, "task 4 (t) transfers 2000 TB, more than any model has"),
        (1e6, 7200.0, 1e9, "task 4 (t) starts up in 7200 s, longer than an hour"),
        (1e6, 0.0, 1e4, "task 4 (t) has a rate cap of 80 kbps: slower than 1 Mbps"),
        (
            1e6,
            0.0,
            1e14,
            "task 4 (t) has a rate cap of 800 Tbps: faster than 100 Tbps; is 1e+14 bytes/s written as bits?",
        ),
    ],
)
def test_a_transfer_that_nobody_means_is_found(size: float, start_up: float, rate_cap: float, finding: str) -> None:
    sketch = fine()
    sketch.transfer(0, 1, size, start_up=start_up, rate_cap=rate_cap, label="t")
    found = unit_slips(sketch.graph(), cluster())
    assert len(found) == 1
    assert finding in found[0]


def test_a_computation_of_days_is_found_once_with_its_number() -> None:
    sketch = fine()
    for _ in range(3):
        sketch.compute(0, 1e5, label="forward")
    (found,) = unit_slips(sketch.graph())
    assert found.startswith("task 4 (forward) computes for 1e+05 s, longer than a day")
    assert found.endswith("(3 such tasks)")


@pytest.mark.parametrize(
    ("fabric", "finding"),
    [
        (cluster(bandwidth=1e5), "link h0->switch has a bandwidth of 800 kbps: slower than 1 Mbps"),
        (
            cluster(bandwidth=1e14),
            "has a bandwidth of 800 Tbps: faster than 100 Tbps; is 1e+14 bytes/s written as bits?",
        ),
        (cluster(latency=5.0), "has a latency of 5 s: are these microseconds?"),
    ],
)
def test_a_link_that_nobody_wires_is_found(fabric: Fabric, finding: str) -> None:
    (found,) = unit_slips(fine().graph(), fabric)
    assert finding in found
    assert found.endswith("(4 such links)")
