"""What it costs to hand activations over and to add up gradients."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ropewalk.errors import FabricError
from ropewalk.hardware import Given, read_cluster
from ropewalk.pipeline.links import Machines, machines_of

COSTS = json.loads((Path(__file__).parents[2] / "data" / "dapple_costs.json").read_text())
TWO_BY_EIGHT = Machines(16, (8, 16))


@pytest.mark.parametrize("case", [case for case in COSTS if "sources" in case], ids=str)
def test_a_gigabyte_is_handed_over_as_fast_as_the_released_planner_says(case):
    assert TWO_BY_EIGHT.split_concat(case["sources"], case["targets"], 1e9) == pytest.approx(case["seconds"], rel=1e-12)


@pytest.mark.parametrize("case", [case for case in COSTS if "gpus" in case], ids=str)
def test_a_gigabyte_is_summed_as_fast_as_the_released_planner_says(case):
    assert TWO_BY_EIGHT.all_reduce(case["gpus"], 1e9) == pytest.approx(case["seconds"], rel=1e-12)


def test_every_message_of_a_sum_starts_up_once():
    slow = Machines(4, (1, 2, 3, 4), collective_between=1e9, start_up_s=1e-3)
    assert slow.all_reduce(range(4), 1e9) == pytest.approx(1.5 + 6e-3)
    assert slow.split_concat((0,), (1,), 0.0) == 1e-3
    assert slow.all_reduce((2,), 1e9) == 0


def test_gpus_with_a_nic_each_send_side_by_side():
    machines = machines_of(read_cluster("2x8", Given(device="h100")))
    assert machines.separators == (8, 16)
    assert machines.split_concat(range(8), range(8, 16), 8e9) == pytest.approx(8e9 / (8 * 50e9))
    assert machines.split_concat((0,), range(8, 16), 8e9) == pytest.approx(8e9 / 50e9)
    assert machines.split_concat(range(8), (8,), 8e9) == pytest.approx(8e9 / 50e9)


def test_a_ring_through_servers_is_as_wide_as_its_narrowest_server():
    machines = machines_of(read_cluster("2x8", Given(device="h100")))
    assert machines.all_reduce(range(16), 1e9) == pytest.approx(2 * 15 / 16 * 1e9 / 400e9)
    assert machines.all_reduce((0, 1, 8), 1e9) == pytest.approx(2 * 2 / 3 * 1e9 / 50e9)


def test_gpus_behind_a_switch_inside_a_server_lay_one_ring():
    machines = machines_of(read_cluster("2x8"))
    assert machines.all_reduce(range(8), 1e9) == pytest.approx(2 * 7 / 8 * 1e9 / machines.inside)
    assert machines.split_concat((0, 1), (2, 3), 1e9) == pytest.approx(1e9 / (2 * machines.inside))


def test_servers_that_differ_are_as_wide_as_the_narrowest_and_what_has_failed_is_left_out():
    cluster = replace(read_cluster("2x8,1x4", Given(device="h100")), failed=("server0", "gpu1.7"))
    machines = machines_of(cluster, collective_bandwidth=40e9)
    assert (machines.separators, machines.nics) == ((7, 11), 4)
    assert (machines.p2p_between, machines.collective_between) == (50e9, 40e9)


def test_wrong_machines_are_named_together():
    with pytest.raises(FabricError, match="3 findings") as refused:
        Machines(8, (4, 4, 7), inside=0)
    assert "end with 8" in str(refused.value)
    assert "running totals" in str(refused.value)


def test_gpus_that_do_not_exist_are_refused():
    with pytest.raises(FabricError, match="there is no GPU 16 among 16: count from 0 to 15"):
        TWO_BY_EIGHT.all_reduce((15, 16), 1.0)
    with pytest.raises(FabricError, match="give at least one"):
        TWO_BY_EIGHT.split_concat((), (1,), 1.0)
