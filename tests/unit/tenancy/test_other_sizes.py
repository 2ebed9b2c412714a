"""What a job that can never start is told to ask for: sizes that do start, and the nearest of them."""

import pytest

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.other_sizes import MOST_TRIED, ask_for, sizes_that_start
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES

PLANTS = [
    ("leaf-spine:4x4x8", 4),
    ("leaf-spine:8x8x8", 4),
    ("fat-tree:8,4", 4),
    ("fat-tree:8,4,2", 2),
    ("rails:8x4x4", 4),
]


@pytest.mark.parametrize("policy", ["laas", "vclos", "ocs-vclos", "ocs-vclos-pods"])
@pytest.mark.parametrize(("shape", "servers"), PLANTS)
def test_the_sizes_that_are_advised_start_and_none_between_them_does(shape, servers, policy):
    rule, made = POLICIES[policy], plant(shape, servers)
    if rule.applies((), made) is not None:
        pytest.skip("the policy does not know such a plant")
    empty = rule.occupancy(made)
    whole = range(servers, made.gpus + 1, servers)
    starts = {size: isinstance(rule.make(empty, "", size), Allocation) for size in whole}
    for size in (size for size in whole if not starts[size]):
        advised = sizes_that_start(rule.make, empty.plant, size)
        below = max(one for one in whole if one < size and starts[one])
        above = [one for one in whole if one > size and starts[one]][:1]
        near = size - below <= MOST_TRIED * servers
        assert advised == (below if near else advised[0], *above)
        assert all(starts[one] for one in advised)


def test_a_number_that_no_whole_servers_make_is_rounded_to_what_starts():
    rule, made = POLICIES["vclos"], plant("leaf-spine:4x8x8", 4)
    assert isinstance(rule.make(rule.occupancy(made), "", 13), Waiting)
    assert sizes_that_start(rule.make, made, 13) == (12, 16)


def test_advice_in_words():
    assert ask_for(()) == ""
    assert ask_for([16]) == "ask for 16 GPUs, which start when it is empty"
