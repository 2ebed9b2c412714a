"""Groups on cosets, groups that can be renumbered onto cosets, and groups that cannot."""

import numpy as np
import pytest

from ropewalk.codesign.cosets import coset_labels, is_coset, relabelled, wire_bytes_by_size
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
    with pytest.raises(StrategyError, match=r"every 2-th of the 8 servers, or renumber the servers with coset_labels"):
        wire_bytes_by_size(world(8, ((0, 1, 2, 3), 1.0)))


def test_a_size_that_does_not_divide_the_servers_is_refused_and_all_findings_come_at_once() -> None:
    with pytest.raises(StrategyError, match=r"(?s)2 findings.*3 does not divide 8.*no coset: seat them"):
        wire_bytes_by_size(world(8, ((0, 1, 2), 1.0), ((0, 1), 1.0)))


def test_blocks_of_neighbours_become_cosets_under_new_numbers() -> None:
    before = world(12, ((0, 1, 2, 3), 1.0), ((4, 5, 6, 7), 2.0), ((4, 5), 3.0), (tuple(range(12)), 1.0))
    before.pairs[4, 0] = 5.0
    labels = coset_labels(before)
    after = relabelled(before, labels)
    assert all(is_coset(12, group.servers) for group in after.sums)
    assert after.pairs[labels[4], labels[0]] == 5.0
    assert after.pairs.sum() == 5.0


def test_small_groups_beside_large_ones_are_not_cut() -> None:
    before = world(16, (tuple(range(8)), 1.0), ((8, 9), 1.0), ((10, 11, 12, 13), 1.0), ((14, 15), 1.0))
    assert all(is_coset(16, group.servers) for group in relabelled(before, coset_labels(before)).sums)


def test_groups_that_cross_have_no_numbering() -> None:
    with pytest.raises(StrategyError, match="let groups contain each other or share no server"):
        coset_labels(world(8, ((0, 1), 1.0), ((1, 2), 1.0)))


def test_labels_that_repeat_are_refused() -> None:
    with pytest.raises(StrategyError, match="use each number once"):
        relabelled(world(2), (0, 0))
