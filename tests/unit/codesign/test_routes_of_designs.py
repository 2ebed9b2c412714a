"""Routes, forwarding tables and tax of small wirings."""

from __future__ import annotations

import numpy as np
import pytest
from design_tax import routes_of, tax_of

from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.forwarding import consistent, disagreements, forwarding_of
from ropewalk.codesign.routes import router_of
from ropewalk.codesign.traffic import traffic_of
from ropewalk.errors import RouteError, StrategyError
from ropewalk.fabric import Circulant, IdealSwitch, Ring
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.routing import coin_change_routes, k_shortest, source_routes


def _ring_with(extra: tuple[tuple[int, int, int], ...] = (), duplex: bool = True) -> Wiring:
    """Eight servers in a ring, and more cables."""
    cables = [(a, (a + 1) % 8, 1) for a in range(8)]
    cables = [(min(a, b), max(a, b), count) for a, b, count in cables] if duplex else cables
    return Wiring(8, 3, duplex, 1e9, 0.0, (GroupRings(8, (1,)),), (*cables, *extra), 2, 1)


def _pairs(*sends: tuple[int, int, float]) -> np.ndarray:
    pairs = np.zeros((8, 8))
    for a, b, size_bytes in sends:
        pairs[a, b] = size_bytes
    return pairs


EVERYONE = GroupSum(tuple(range(8)), 8e6)


def test_ring_hops_of_a_sum_carry_equal_parts_both_ways():
    traffic = traffic_of(_ring_with(), Demands(8, (EVERYONE,), _pairs((0, 4, 5.0))))
    sums = traffic.size_bytes[traffic.for_sum]
    assert sums == pytest.approx(np.full(16, 7e6))
    assert sums.sum() == pytest.approx(EVERYONE.wire_bytes)
    assert traffic.size_bytes[~traffic.for_sum].tolist() == [5.0]


def test_a_simplex_ring_carries_the_sum_one_way():
    traffic = traffic_of(_ring_with(duplex=False), Demands(8, (EVERYONE,), _pairs()))
    assert traffic.by_distance.tolist() == pytest.approx([0, 14e6 * 8, 0, 0, 0, 0, 0, 0])


def test_sums_on_their_own_cables_pay_no_tax():
    wiring, demands = _ring_with(), Demands(8, (EVERYONE,), _pairs())
    assert tax_of(wiring, demands, routes_of(wiring, demands)).tax == pytest.approx(1.0)


def test_a_group_without_cables_of_its_own_pays_for_every_link_of_its_hops():
    wiring = _ring_with()
    demands = Demands(8, (GroupSum((0, 2, 4, 6), 1e6),), _pairs())
    assert tax_of(wiring, demands, routes_of(wiring, demands)).tax == pytest.approx(2.0)


def test_uniform_all_to_all_is_taxed_with_the_mean_hops_and_a_step_without_bytes_with_one():
    wiring, all_to_all = _ring_with(), Demands(8, (), 1.0 - np.eye(8))
    tax = tax_of(wiring, all_to_all, routes_of(wiring, all_to_all))
    assert tax.tax == pytest.approx(16 / 7)
    assert tax.imbalance == pytest.approx(1.0)
    nothing = Demands(8, (), _pairs())
    empty = tax_of(wiring, nothing, routes_of(wiring, nothing))
    assert (empty.tax, empty.pair_tax, empty.imbalance) == (1.0, 1.0, 1.0)


def test_neighbours_use_their_cable_and_far_pairs_the_short_cut():
    wiring = _ring_with(((0, 4, 1),))
    demands = Demands(8, (EVERYONE,), _pairs((0, 4, 9.0), (1, 4, 3.0)))
    routes = routes_of(wiring, demands)
    routes.check()
    tax = tax_of(wiring, demands, routes)
    assert tax.sums_carried == pytest.approx(tax.sums_asked)
    assert routes.hops[routes.path_start[routes.find(0, 4)[0]]] == 1
    assert tax.pairs_carried == pytest.approx(9.0 + 3.0 * 2)


def test_a_full_short_cut_is_relieved_by_a_path_one_hop_longer():
    wiring = _ring_with(((0, 4, 1),))
    demands = Demands(8, (), _pairs((0, 4, 10.0), (0, 3, 10.0)))
    routes = routes_of(wiring, demands)
    assert len(disagreements(routes)) == 0
    busiest = tax_of(wiring, demands, routes).link_bytes.max()
    shortest_only = routes_of(wiring, demands, paths=1, extra_hops=0)
    assert busiest < tax_of(wiring, demands, shortest_only).link_bytes.max()


def test_a_router_without_demands_routes_any_pair_of_the_wiring():
    for wiring in (_ring_with(), _ring_with(((0, 4, 1),))):
        routes = router_of(wiring)(wiring.fabric(), *np.nonzero(~np.eye(8, dtype=bool)))
        routes.check()
        assert forwarding_of(routes).source.tolist() == routes.pair_src[routes.pair_of_path].tolist()


def test_demands_of_other_servers_are_refused():
    with pytest.raises(StrategyError, match="demands of 4 servers on a wiring of 8"):
        traffic_of(_ring_with(), Demands(4, (), np.zeros((4, 4))))


def test_paths_that_part_after_the_same_link_are_refused_as_tables_and_repaired():
    # Both come to h1 from h0 for h3, one goes on to h2, the other back over the chord to h4.
    fabric = Circulant(6, (1, 3)).build()
    table = {(0, 3): ["h0", "h1", "h2", "h3"], (5, 3): ["h5", "h0", "h1", "h4", "h3"]}
    routes = source_routes(fabric, table)
    assert disagreements(routes).tolist() == [1]
    with pytest.raises(RouteError, match="make them consistent first"):
        forwarding_of(routes)
    repaired = consistent(routes)
    assert forwarding_of(repaired).follow(int(repaired.link[repaired.link_start[1]]), 3) == [5, 0, 1, 2, 3]


def test_a_path_that_would_go_round_is_dropped_and_the_others_take_its_bytes():
    # What h1 gets from h2 for h3 goes on to h0. The second path of h0 comes to h1 that way and would return to h0.
    fabric = Circulant(6, (1, 3)).build()
    table = {
        (0, 3): [(0.5, ["h0", "h3"]), (0.5, ["h0", "h5", "h2", "h1", "h4", "h3"])],
        (2, 3): ["h2", "h1", "h0", "h3"],
    }
    repaired = consistent(source_routes(fabric, table))
    repaired.check()
    assert (repaired.hops.tolist(), repaired.share.tolist()) == ([1, 3], [1.0, 1.0])


def test_a_pair_whose_only_path_would_go_round_is_refused():
    fabric = Circulant(6, (1, 3)).build()
    table = {(0, 3): ["h0", "h5", "h2", "h1", "h4", "h3"], (2, 3): ["h2", "h1", "h0", "h3"]}
    with pytest.raises(RouteError, match=r"no path from h0 to h3 agrees .* begin with routes of fewest hops"):
        consistent(source_routes(fabric, table))


def test_tables_are_written_for_people():
    rows = list(forwarding_of(k_shortest(2)(Ring(4).build(), np.array([0]), np.array([2]))).rows())
    assert rows == [
        ("h0", "-", "h2", "h1", 0.5),
        ("h0", "-", "h2", "h3", 0.5),
        ("h1", "h0", "h2", "h2", 1.0),
        ("h3", "h0", "h2", "h2", 1.0),
    ]


def test_following_tables_that_know_no_way_is_an_error():
    tables = forwarding_of(k_shortest(1)(Ring(4).build(), np.array([0]), np.array([2])))
    with pytest.raises(RouteError, match="no path from h1 to h3"):
        tables.follow(int(np.flatnonzero((tables.fabric.link_src == 1) & (tables.fabric.link_dst == 2))[0]), 3)


@pytest.mark.parametrize(
    ("fabric", "jumps", "message"),
    [
        (IdealSwitch(4).build(), (1,), "has switches"),
        (Circulant(8, (1,)).build(), (1, 3), "the one 3 ahead"),
        (Circulant(8, (1,)).build(), (), "without strides"),
    ],
)
def test_coin_change_is_refused_where_there_are_no_such_coins(fabric, jumps, message):
    with pytest.raises(RouteError, match=message):
        coin_change_routes(fabric, jumps, [0], [2])


def test_demand_by_distance_of_the_wrong_length_is_refused():
    with pytest.raises(RouteError, match="give 8 numbers"):
        coin_change_routes(Circulant(8, (1,)).build(), (1,), [0], [2], weight=np.ones(3))


def test_zero_paths_are_refused():
    with pytest.raises(RouteError, match="give at least 1 path"):
        k_shortest(0)


def test_a_ring_that_is_laid_twice_carries_twice_the_bytes_of_one_laid_once() -> None:
    """Twelve servers have two duplex rings; of three, +1 is laid twice and has two thirds of the sum."""
    wiring = Wiring(12, 6, True, 1e9, 0.0, (GroupRings(12, (1, 5, 1)),), ((0, 1, 2), (0, 5, 1)), 6, 0)
    traffic = traffic_of(wiring, Demands(12, (GroupSum(tuple(range(12)), 12.0),), np.zeros((12, 12))))
    assert traffic.by_distance[1] == pytest.approx(2 * traffic.by_distance[5])
    assert traffic.size_bytes.sum() == pytest.approx(2 * 11 * 12.0)


def _circle_of_sixteen(extra: tuple[tuple[int, int, int], ...] = ()) -> Wiring:
    """Sixteen servers on rings of +1 and +5, and more cables."""
    joined = [(a, (a + jump) % 16) for jump in (1, 5) for a in range(16)]
    cables = tuple((min(ends), max(ends), 1) for ends in joined)
    return Wiring(16, 5, True, 1e9, 0.0, (GroupRings(16, (1, 5)),), (*cables, *extra), 4, 1)


def _paths(wiring: Wiring) -> dict[tuple[int, int], set[tuple[int, ...]]]:
    """Servers on every path of every pair."""
    fabric = wiring.fabric()
    routes = router_of(wiring)(fabric, *np.nonzero(~np.eye(16, dtype=bool)))
    routes.check()
    assert len(disagreements(routes)) == 0
    found: dict[tuple[int, int], set[tuple[int, ...]]] = {}
    for path, pair in enumerate(routes.pair_of_path.tolist()):
        links = routes.link[routes.link_start[path] : routes.link_start[path + 1]]
        ends = int(routes.pair_src[pair]), int(routes.pair_dst[pair])
        found.setdefault(ends, set()).add(tuple(fabric.link_dst[links].tolist()))
    return found


def test_one_matched_cable_leaves_all_other_pairs_on_coin_change_over_the_rings():
    rings, beside = _paths(_circle_of_sixteen()), _paths(_circle_of_sixteen(((0, 8, 1),)))
    hops = {pair: min(map(len, paths)) for pair, paths in rings.items()}
    nearer = {pair for pair, paths in beside.items() if min(map(len, paths)) < hops[pair]}
    assert (0, 8) in nearer
    assert all(max(map(len, beside[pair])) == hops[pair] for pair in set(rings) - nearer)


def test_one_matched_cable_does_not_undo_the_balance_of_the_rings():
    """Of 64 servers on +1 and +11, k shortest paths alone fill the fullest link half as much again as coins do."""
    everyone = Demands(64, (), 1.0 - np.eye(64))
    cables = tuple((*sorted((a, (a + jump) % 64)), 1) for jump in (1, 11) for a in range(64))
    fullest = []
    for extra in ((), ((0, 32, 1),)):
        wiring = Wiring(64, 5, True, 1e9, 0.0, (GroupRings(64, (1, 11)),), tuple(sorted((*cables, *extra))), 4, 1)
        fullest.append(tax_of(wiring, everyone, routes_of(wiring, everyone)).link_bytes.max())
    assert fullest[1] < 1.2 * fullest[0]


def test_a_broken_cable_of_a_ring_leaves_the_other_ring_to_coin_change():
    whole = _circle_of_sixteen()
    broken = Wiring(16, 5, True, 1e9, 0.0, whole.rings, tuple(one for one in whole.cables if one != (0, 5, 1)), 4, 1)
    assert {pair for pair, paths in _paths(broken).items() if paths == {(pair[1],)}} >= {(0, 1), (1, 0), (1, 6)}


def test_a_simplex_ring_is_routed_by_coins_though_one_cable_goes_the_other_direction():
    wiring = _ring_with(((5, 4, 1),), duplex=False)
    routes = router_of(wiring)(wiring.fabric(), *np.nonzero(~np.eye(8, dtype=bool)))
    routes.check()
    hops = routes.hops[routes.path_start[:-1]]
    assert hops[routes.find(5, 4)[0]] == 1
    assert hops[routes.find(0, 7)[0]] == 7
