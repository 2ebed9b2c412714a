"""Which GPUs a stage gets next."""

import json
from pathlib import Path

import pytest

from ropewalk.errors import StrategyError
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.masks import members
from ropewalk.pipeline.placement import append_first, candidates, fresh_first, replicated, scatter_first

CASES = json.loads((Path(__file__).parents[2] / "data" / "dapple_placements.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_candidates_are_those_of_the_released_planner(case):
    machines = Machines(case["separators"][-1], tuple(case["separators"]))
    found = candidates(machines, sum(1 << gpu for gpu in case["occupied"]), case["need"])
    assert [list(members(mask)) for mask in found] == case["candidates"]


def test_fresh_first_fails_where_no_machine_is_free_and_append_first_where_all_are():
    machines = Machines(4, (2, 4))
    assert fresh_first(machines, 0b0101, 1) is None
    assert append_first(machines, 0, 1) is None
    assert append_first(machines, 0b0001, 2) is None


def test_a_full_machine_does_not_lead_append_first_past_its_end():
    assert append_first(Machines(4, (2, 4)), 0b1101, 1) == 0b0010
    assert append_first(Machines(4, (2, 4)), 0b1100, 1) is None


def test_append_first_leaves_gpus_in_the_middle_to_those_who_have_them():
    assert append_first(Machines(4, (4,)), 0b0010, 3) == 0b1101


def test_scatter_first_goes_round_machines_of_different_sizes():
    assert members(scatter_first(Machines(7, (1, 3, 7)), 0, 5) or 0) == (0, 1, 2, 3, 4)


def test_replicas_are_placed_one_after_the_other():
    sets = [members(mask) for mask in replicated(Machines(6, (3, 6)), 0b000001, 1, 2)]
    assert sets == [(1, 2), (1, 3)]  # GPU 3 is fresh only as long as nobody has its machine


def test_a_stage_on_64_machines_gets_whole_machines():
    machines = Machines(512, tuple(range(8, 513, 8)))
    found = candidates(machines, (1 << 100) - 1, 200)
    assert members(found[-1]) == tuple(range(104, 304))
    assert len(found) == 2


def test_more_gpus_than_are_free_cannot_be_had():
    with pytest.raises(StrategyError, match="3 GPUs are requested where 2 of 4 are free"):
        candidates(Machines(4, (2, 4)), 0b0011, 3)
