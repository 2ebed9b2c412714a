"""Groups on cosets, and groups on other servers."""

import numpy as np
import pytest

from ropewalk.codesign.cosets import is_coset, wire_bytes_by_size
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.errors import StrategyError


def world(servers: int, *groups: tuple[tuple[int, ...], float]) -> Demands:
    sums = tuple(GroupSum(members, size) for members, size in groups)
    return Demands(servers, sums, np.zeros((servers, servers)))


def test_every_third_of_twelve_is_a_coset_in_any_order() -> None:
    assert is_coset(12, (7, 1, 10, 4))
    assert not is_coset(12, (1, 4, 7, 11))
    assert not is_coset(12, (0, 2, 4, 6, 8))


def test_sums_over_groups_of_one_size_count_together_and_the_largest_comes_first() -> None:
    totals = wire_bytes_by_size(world(8, ((0, 4), 1.0), ((0, 2, 4, 6), 3.0), ((1, 5), 2.0)))
    assert list(totals.items()) == [(4, 18.0), (2, 6.0)]


def test_a_block_of_neighbours_is_refused_with_the_way_out() -> None:
    with pytest.raises(StrategyError, match=r"every 2-th of the 8 servers"):
        wire_bytes_by_size(world(8, ((0, 1, 2, 3), 1.0)))


def test_a_size_that_does_not_divide_the_servers_is_refused_and_all_findings_come_at_once() -> None:
    with pytest.raises(StrategyError, match=r"(?s)2 findings.*3 does not divide 8.*not a coset: place them"):
        wire_bytes_by_size(world(8, ((0, 1, 2), 1.0), ((0, 1), 1.0)))
