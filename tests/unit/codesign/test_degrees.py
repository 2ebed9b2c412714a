"""The split of ports between sums and pairs, among group sizes, and what happens where rings run out."""

import numpy as np

from ropewalk.codesign.degrees import Degrees, Favour, port_splits, share_ports, split_degree
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.strategy.seating import coset


def shared(servers: int, wire_bytes: dict[int, float], pair_bytes: float, degree: int, *, duplex: bool) -> Degrees:
    """Ports for one sum of each group size with so many bytes on the wire, and one pair."""
    sums = tuple(GroupSum(coset(servers, size), total / (2 * (size - 1))) for size, total in wire_bytes.items())
    pairs = np.zeros((servers, servers))
    pairs[0, 1] = pair_bytes
    return share_ports(Demands(servers, sums, pairs), degree, duplex=duplex)


def test_four_simplex_ports_leave_pairs_none_below_a_quarter_of_the_bytes() -> None:
    assert split_degree(75.1, 24.9, 4, duplex=False) == (4, 0)
    assert split_degree(75.0, 25.0, 4, duplex=False) == (3, 1)


def test_duplex_ports_are_split_in_whole_rings() -> None:
    assert split_degree(50.1, 49.9, 4, duplex=True) == (4, 0)
    assert split_degree(50.0, 50.0, 4, duplex=True) == (2, 2)
    assert split_degree(90.0, 10.0, 5, duplex=True) == (4, 1)


def test_rings_keep_one_share_even_where_nothing_is_summed() -> None:
    assert split_degree(0.0, 1.0, 4, duplex=False) == (1, 3)
    assert split_degree(0.0, 1.0, 4, duplex=True) == (2, 2)


def test_without_any_demand_all_ports_are_for_rings() -> None:
    assert split_degree(0.0, 0.0, 4, duplex=True) == (4, 0)


def test_bytes_that_add_up_with_rounding_do_not_cost_a_port() -> None:
    tenths = sum([0.1] * 3)  # 0.30000000000000004
    assert split_degree(tenths, 0.1, 4, duplex=False) == (3, 1)


def test_the_largest_group_is_served_first_and_by_its_share() -> None:
    assert shared(128, {16: 30.0, 128: 70.0}, 0.0, 8, duplex=False).rings == {128: 6, 16: 2}


def test_a_late_group_can_get_nothing() -> None:
    assert shared(128, {128: 90.0, 16: 9.0, 8: 1.0}, 0.0, 4, duplex=True).rings == {128: 2}


def test_a_group_of_four_has_one_duplex_ring_and_hands_the_rest_to_the_others() -> None:
    assert shared(128, {4: 90.0, 128: 10.0}, 0.0, 8, duplex=True).rings == {4: 1, 128: 3}


def test_where_rings_run_out_pairs_get_their_share_rounded_up_and_rings_repeat() -> None:
    degrees = shared(12, {12: 97.0}, 3.0, 8, duplex=True)
    assert (degrees.split_sums, degrees.split_pairs) == (8, 0)
    assert degrees.rings == {12: 3}  # only two differ: one is laid twice
    assert degrees.ring_ports == 6


def test_rings_repeat_on_all_ports_where_no_pair_wants_them() -> None:
    assert shared(6, {6: 1.0}, 0.0, 4, duplex=True).rings == {6: 2}


def test_a_duplex_ring_of_two_servers_takes_one_port() -> None:
    degrees = shared(4, {2: 1.0}, 0.0, 3, duplex=True)
    assert degrees.rings == {4: 1}
    assert degrees.ring_ports == 2
    assert shared(8, {2: 10.0, 8: 10.0}, 0.0, 5, duplex=True).rings == {8: 1, 2: 2}


def test_groups_that_leave_pieces_give_their_last_ring_to_one_over_all_servers() -> None:
    assert shared(12, {4: 1.0}, 0.0, 2, duplex=True).rings == {12: 1}
    assert shared(16, {8: 1.0}, 0.0, 4, duplex=False).rings == {8: 3, 16: 1}


def test_groups_of_three_and_four_join_twelve_servers_without_a_ring_over_all() -> None:
    assert shared(12, {4: 1.0, 3: 1.0}, 0.0, 4, duplex=True).rings == {4: 1, 3: 1}


def test_in_favour_of_pairs_rings_are_rounded_down_but_never_to_none() -> None:
    assert split_degree(75.0, 25.0, 4, duplex=True, favour=Favour.PAIRS) == (2, 2)
    assert split_degree(99.0, 1.0, 4, duplex=False, favour=Favour.PAIRS) == (3, 1)
    assert split_degree(1.0, 99.0, 4, duplex=True, favour=Favour.PAIRS) == (2, 2)
    assert split_degree(1.0, 0.0, 4, duplex=True, favour=Favour.PAIRS) == (4, 0)


def test_splits_that_are_offered_begin_with_the_published_one_and_differ() -> None:
    sums = (GroupSum(coset(16, 4), 10.0), GroupSum(coset(16, 16), 1.0))
    pairs = np.zeros((16, 16))
    pairs[0, 5] = 20.0
    splits = port_splits(Demands(16, sums, pairs), 4, duplex=True)
    assert [split.rings for split in splits] == [{4: 1, 16: 1}, {16: 1}, {16: 2}]
    assert [split.ring_ports for split in splits] == [4, 2, 4]


def test_without_pairs_no_port_is_kept_from_rings() -> None:
    splits = port_splits(Demands(16, (GroupSum(coset(16, 16), 1.0),), np.zeros((16, 16))), 4, duplex=True)
    assert [split.rings for split in splits] == [{16: 2}]
