"""From demands to cables in worlds small enough to see through."""

import numpy as np
import pytest

from ropewalk.codesign.cable_draft import CableDraft
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.finder import find_topologies, find_topology
from ropewalk.codesign.permutations import paper_jumps
from ropewalk.codesign.selection import per_group
from ropewalk.codesign.spare_ports import hops_saved, lay_shortcuts
from ropewalk.errors import FabricError, StrategyError
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.strategy.seating import coset

FAST = 12.5e9


def world(servers: int, sums: dict[int, float], pairs: dict[tuple[int, int], float] | None = None) -> Demands:
    matrix = np.zeros((servers, servers))
    for (a, b), size in (pairs or {}).items():
        matrix[a, b] = size
    return Demands(servers, tuple(GroupSum(coset(servers, size), total) for size, total in sums.items()), matrix)


def count(wiring: Wiring, a: int, b: int) -> int:
    return sum(cables for source, destination, cables in wiring.cables if (source, destination) == (a, b))


def test_four_ports_are_two_duplex_rings_or_four_simplex_rings() -> None:
    demands = world(16, {16: 1e9})
    two = find_topology(demands, degree=4, bandwidth=FAST, selection=per_group(paper_jumps))
    four = find_topology(demands, degree=4, bandwidth=FAST, duplex=False, selection=per_group(paper_jumps))
    assert two.rings == (GroupRings(16, (1, 3)),)
    assert four.rings == (GroupRings(16, (1, 3, 5, 9)),)
    assert two.ports_used().tolist() == four.ports_used().tolist() == [4] * 16


def test_a_heavy_pair_gets_a_cable_of_its_own() -> None:
    wiring = find_topology(world(8, {8: 1.0}, {(0, 4): 100.0}), degree=4, bandwidth=FAST)
    assert (wiring.degree_sums, wiring.degree_pairs) == (2, 2)
    assert count(wiring, 0, 4) == 2


def test_light_pairs_ride_the_rings() -> None:
    wiring = find_topology(world(8, {8: 100.0}, {(0, 4): 1.0}), degree=4, bandwidth=FAST)
    assert (wiring.degree_sums, wiring.degree_pairs) == (4, 0)
    assert count(wiring, 0, 4) == 0


def test_rings_of_a_group_join_the_members_of_every_coset() -> None:
    wiring = find_topology(world(8, {4: 90.0, 8: 10.0}), degree=4, bandwidth=FAST)
    assert wiring.rings == (GroupRings(4, (1,)), GroupRings(8, (1,)))
    assert all(count(wiring, min(a, (a + 2) % 8), max(a, (a + 2) % 8)) == 1 for a in range(8))


def test_rings_of_two_group_sizes_are_chosen_together() -> None:
    """With jump 1 for both, 128 servers are 8.9 hops apart on the mean; jump 3 for the ring of 32 makes that 5.4."""
    wiring = find_topology(world(128, {128: 10.0, 32: 60.0}), degree=4, bandwidth=FAST)
    assert wiring.rings == (GroupRings(32, (3,)), GroupRings(128, (1,)))
    published = find_topology(
        world(128, {128: 10.0, 32: 60.0}), degree=4, bandwidth=FAST, selection=per_group(paper_jumps)
    )
    assert published.rings == (GroupRings(32, (1,)), GroupRings(128, (1,)))


def test_a_quarter_of_the_bytes_is_offered_two_of_four_ports() -> None:
    wirings = find_topologies(world(8, {8: 75.0 / 14}, {(0, 4): 25.0}), degree=4, bandwidth=FAST)
    assert (wirings[0].degree_sums, wirings[0].degree_pairs) == (4, 0)
    in_proportion = [wiring for wiring in wirings if wiring.degree_pairs == 2]
    assert in_proportion
    assert all(count(wiring, 0, 4) == 2 for wiring in in_proportion)
    assert len(set(wirings)) == len(wirings)


def test_a_group_without_rings_rides_along_the_ring_with_the_fewest_hops() -> None:
    """On rings of +-1 and +-5, twelve servers have 2 hops to the second next and 3 to the third next."""
    wiring = find_topology(world(12, {12: 100.0, 6: 1.0, 4: 1.0}), degree=4, bandwidth=FAST)
    assert wiring.rings == (GroupRings(12, (1, 5)), GroupRings(6, (1,), wired=False), GroupRings(4, (1,), wired=False))


def test_the_riding_ring_is_the_one_with_the_fewest_hops_not_the_first() -> None:
    """Of 25 servers in a ring of +-7, the fifth next is ten hops away (-70 = 5 mod 25), the tenth next only five."""
    only_seven = find_topology(
        world(25, {25: 100.0, 5: 1.0}), degree=2, bandwidth=FAST, selection=per_group(lambda size, count, **_: (7,))
    )
    assert only_seven.rings[1] == GroupRings(5, (2,), wired=False)


def test_pairs_alone_still_get_one_ring_that_holds_the_network_together() -> None:
    wiring = find_topology(world(6, {}, {(0, 3): 1.0}), degree=3, bandwidth=FAST)
    assert wiring.rings == (GroupRings(6, (1,)),)
    assert count(wiring, 0, 3) == 1


def test_ports_that_nobody_asked_for_shorten_ways() -> None:
    """The odd port of each of eight servers on a ring: all of them find someone farther than a neighbour."""
    wiring = find_topology(world(8, {8: 1.0}), degree=3, bandwidth=FAST)
    assert wiring.ports_used().tolist() == [3] * 8
    assert sum(cables for _, _, cables in wiring.cables) == 12
    assert all(cables == 1 for _, _, cables in wiring.cables)


def test_a_shortcut_is_worth_the_hops_it_saves_for_its_ends() -> None:
    draft = CableDraft(6, 3, duplex=True)
    draft.add_ring(6, 1)
    demand = np.zeros((6, 6))
    demand[0, 3] = 10.0
    saved = hops_saved(draft, demand)
    saved += saved.T  # in parts of the heaviest demand
    assert saved[0, 3] == 2.0  # three hops become one, counted once though both ends see it
    assert saved[0, 2] == 1.0  # two hops: over the cable, then on to 3
    assert saved[1, 4] == 0.0  # neither end sends or receives
    lay_shortcuts(draft, demand)
    assert draft.count[0, 3] == 1


def test_a_simplex_shortcut_saves_for_its_sender_and_its_receiver_and_only_one_way() -> None:
    draft = CableDraft(6, 2, duplex=False)
    draft.add_ring(6, 1)
    demand = np.zeros((6, 6))
    demand[0, 5] = 10.0
    saved = hops_saved(draft, demand)
    assert saved[0, 5] == 4.0
    assert saved[0, 3] == 2.0  # 0 to 3, then two hops
    assert saved[2, 5] == 2.0  # two hops, then 2 to 5
    assert saved[5, 0] == 0.0


def test_ports_of_servers_with_nothing_to_say_are_not_left_dark() -> None:
    """Servers 0 and 6 use up their ports for each other; the other ten shorten the ways of the ring among them."""
    wiring = find_topology(world(12, {}, {(0, 6): 1.0}), degree=4, bandwidth=FAST)
    assert wiring.ports_used().tolist() == [4] * 12


def test_two_servers_with_one_port_are_joined_by_one_cable() -> None:
    for duplex, cables in ((True, ((0, 1, 1),)), (False, ((0, 1, 1), (1, 0, 1)))):
        wiring = find_topology(world(2, {2: 1.0}), degree=1, bandwidth=FAST, duplex=duplex)
        assert wiring.cables == cables


def test_more_ports_than_other_servers_make_parallel_cables() -> None:
    wiring = find_topology(world(4, {4: 1.0}), degree=6, bandwidth=FAST)
    assert wiring.cables == ((0, 1, 3), (0, 3, 3), (1, 2, 3), (2, 3, 3))


def test_one_simplex_port_makes_a_ring() -> None:
    wiring = find_topology(world(5, {5: 1.0}), degree=1, bandwidth=FAST, duplex=False)
    assert wiring.cables == tuple((a, (a + 1) % 5, 1) for a in range(5))


@pytest.mark.parametrize(
    ("servers", "degree", "bandwidth", "duplex", "message"),
    [
        (4, 0, FAST, True, "0 ports: give at least 1"),
        (4, 1, FAST, True, "one duplex port cannot connect 4 servers"),
        (1, 1, FAST, True, "1 servers need no cables"),
        (4, 2, -1.0, True, "carries -1 bytes/s: give a bandwidth above 0"),
        (4, 2, float("nan"), False, "give a bandwidth above 0"),
    ],
)
def test_what_cannot_be_wired_is_refused(
    servers: int, degree: int, bandwidth: float, duplex: bool, message: str
) -> None:
    with pytest.raises(FabricError, match=message):
        find_topology(world(servers, {}), degree=degree, bandwidth=bandwidth, duplex=duplex)


def test_a_group_that_is_no_coset_is_refused() -> None:
    demands = Demands(8, (GroupSum((0, 1, 2, 3), 1.0),), np.zeros((8, 8)))
    with pytest.raises(StrategyError, match="not a coset"):
        find_topology(demands, degree=2, bandwidth=FAST)


def test_a_selection_that_repeats_a_ring_is_refused() -> None:
    with pytest.raises(FabricError, match=r"returned jumps \(1, 1\) for 2 rings"):
        find_topology(
            world(16, {16: 1.0}), degree=4, bandwidth=FAST, selection=per_group(lambda size, count, **_: (1,) * count)
        )
