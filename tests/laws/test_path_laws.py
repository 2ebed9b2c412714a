"""Laws of coin-change and k-shortest routes: the contract, fewest hops, and tables by incoming link and destination."""

from __future__ import annotations

from itertools import islice
from math import gcd

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from ropewalk.codesign.forwarding import consistent, disagreements, forwarding_of
from ropewalk.fabric import Circulant, Fabric, FabricDraft, FatTree, RandomRegular
from ropewalk.routing import Routes, balanced, coin_change, coin_change_routes, common_jumps, ecmp, k_shortest


@st.composite
def circulants(draw: st.DrawFn) -> tuple[Fabric, tuple[int, ...]]:
    """Duplex or simplex, jumps coprime or not, never falling apart."""
    hosts = draw(st.integers(3, 40))
    jumps = draw(st.lists(st.integers(1, hosts // 2), min_size=1, max_size=4, unique=True))
    jumps = jumps if gcd(hosts, *jumps) == 1 else list({1, *jumps})
    if draw(st.booleans()):
        return Circulant(hosts, tuple(jumps)).build(), tuple(jumps)
    draft = FabricDraft("simplex rings")
    host = draft.add_hosts([f"s{number}" for number in range(hosts)])
    for jump in jumps:
        draft.add_links(host, (host + jump) % hosts, 1e9, duplex=False)
    return draft.freeze(), tuple(jumps)


def all_pairs(fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    return np.nonzero(~np.eye(fabric.hosts, dtype=bool))


def paths(routes: Routes, pair: int) -> list[list[int]]:
    rows = range(routes.path_start[pair], routes.path_start[pair + 1])
    return [routes.link[routes.link_start[row] : routes.link_start[row + 1]].tolist() for row in rows]


def load(routes: Routes) -> np.ndarray:
    return routes.link_bytes(np.arange(routes.pairs), np.ones(routes.pairs))


def tables_lead_where_the_routes_lead(routes: Routes) -> None:
    tables = forwarding_of(routes)
    for pair in range(routes.pairs):
        target = int(routes.pair_dst[pair])
        for path in paths(routes, pair):
            nodes = [int(routes.fabric.link_src[path[0]]), *routes.fabric.link_dst[path].tolist()]
            assert tables.follow(path[0], target) == nodes


@given(circulants(), st.booleans())
@settings(max_examples=50)
def test_coin_change_routes_keep_the_contract_have_the_fewest_hops_and_fit_tables(world, shared):
    fabric, jumps = world
    routes = coin_change_routes(fabric, jumps, *all_pairs(fabric), shared=shared)
    routes.check()
    coins = np.unique((fabric.link_dst - fabric.link_src) % fabric.hosts)
    hops = coin_change(fabric.hosts, coins.tolist()).hops
    apart = (routes.pair_dst - routes.pair_src) % fabric.hosts
    assert (routes.hops == hops[apart][routes.pair_of_path]).all()
    assert shared or routes.paths == routes.pairs
    tables_lead_where_the_routes_lead(routes)


@given(circulants())
@settings(max_examples=30)
def test_links_of_a_coin_carry_the_same_and_shares_never_fill_a_link_more_than_single_paths(world):
    fabric, jumps = world
    single, shared = (
        load(coin_change_routes(fabric, jumps, *all_pairs(fabric), shared=shared)) for shared in (False, True)
    )
    assert shared @ shared <= single @ single * (1 + 1e-6)
    coin = (fabric.link_dst - fabric.link_src) % fabric.hosts
    for one in np.unique(coin):
        assert np.ptp(single[coin == one]) == pytest.approx(0, abs=1e-6)


@given(circulants())
def test_a_circulant_is_recognised_and_its_jumps_route_it(world):
    fabric, jumps = world
    known = common_jumps(fabric)
    assert {min(jump, fabric.hosts - jump) for jump in known} == {min(jump, fabric.hosts - jump) for jump in jumps}


@pytest.mark.parametrize(("hosts", "jumps"), [(16, (1, 3)), (64, (1, 7)), (128, (1, 13)), (128, (1, 5, 21, 35))])
def test_shares_come_within_five_percent_of_the_best_that_any_shortest_payments_allow(hosts, jumps):
    change = coin_change(hosts, [*jumps, *(hosts - jump for jump in jumps)])
    columns = [(residue, payment) for residue in range(1, hosts) for payment in change.payments(residue)]
    count = np.array([[payment.count(coin) for coin in change.coins] for _, payment in columns], float)
    owner = np.array([residue for residue, _ in columns])
    least = linprog(
        [*np.zeros(len(columns)), 1.0],
        A_ub=np.column_stack([count.T, -np.ones(len(change.coins))]),
        b_ub=np.zeros(len(change.coins)),
        A_eq=np.column_stack([owner[None] == np.arange(1, hosts)[:, None], np.zeros(hosts - 1)]),
        b_eq=np.ones(hosts - 1),
    ).fun
    fabric = Circulant(hosts, jumps).build()
    assert least * (1 - 1e-9) <= load(coin_change_routes(fabric, jumps, *all_pairs(fabric))).max() <= least * 1.05


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    kind = draw(st.integers(0, 2))
    if kind == 0:
        return RandomRegular(
            draw(st.sampled_from([8, 10, 12])), draw(st.integers(3, 4)), seed=draw(st.integers(0, 9))
        ).build()
    if kind == 1:
        return FatTree(4).build()
    return draw(circulants().map(lambda world: world[0]).filter(lambda fabric: fabric.hosts <= 14))


@given(fabrics(), st.integers(1, 6), st.sampled_from([0, 1, 2, None]))
@settings(max_examples=40)
def test_k_shortest_paths_are_those_of_networkx_in_length_with_equal_shares(fabric, k, extra_hops):
    src, dst = all_pairs(fabric)
    routes = k_shortest(k, extra_hops=extra_hops)(fabric, src[:40], dst[:40])
    routes.check()
    for pair in range(routes.pairs):
        a, b = int(routes.pair_src[pair]), int(routes.pair_dst[pair])
        graph = nx.DiGraph(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True))
        if fabric.switches:
            graph.remove_nodes_from(set(range(fabric.hosts)) - {a, b})
        lengths = [len(path) - 1 for path in islice(nx.shortest_simple_paths(graph, a, b), k)]
        if extra_hops is not None:
            lengths = [length for length in lengths if length <= lengths[0] + extra_hops]
        found = paths(routes, pair)
        assert [len(path) for path in found] == lengths
        assert found == sorted(found, key=lambda path: (len(path), path))
        assert len({tuple(path) for path in found}) == len(found)
    assert routes.share == pytest.approx((1 / np.diff(routes.path_start))[routes.pair_of_path])


@given(fabrics(), st.integers(1, 6), st.sampled_from([0, 1, None]))
@settings(max_examples=20)
def test_any_k_shortest_routes_can_be_made_to_fit_tables_and_keep_their_first_paths(fabric, k, extra_hops):
    routes = k_shortest(k, extra_hops=extra_hops)(fabric, *all_pairs(fabric))
    repaired = consistent(routes)
    repaired.check()
    assert len(disagreements(repaired)) == 0
    tables_lead_where_the_routes_lead(repaired)
    for pair in range(routes.pairs):
        assert paths(repaired, pair)[0] == paths(routes, pair)[0]


@given(fabrics(), st.integers(0, 9))
@settings(max_examples=30)
def test_hashed_shortest_paths_are_repaired_without_getting_longer(fabric, seed):
    routes = ecmp(seed)(fabric, *all_pairs(fabric))
    repaired = consistent(routes)
    repaired.check()
    assert repaired.hops.tolist() == routes.hops.tolist()
    tables_lead_where_the_routes_lead(repaired)


@given(circulants(), st.booleans())
@settings(max_examples=20)
def test_routes_that_fit_tables_are_left_as_they_are(world, shared):
    fabric, jumps = world
    routes = coin_change_routes(fabric, jumps, *all_pairs(fabric), shared=shared)
    kept = consistent(routes)
    assert [paths(kept, pair) for pair in range(kept.pairs)] == [paths(routes, pair) for pair in range(routes.pairs)]
    assert kept.share == pytest.approx(routes.share)


@given(fabrics(), st.integers(2, 5), st.integers(0, 9))
@settings(max_examples=30)
def test_balancing_lowers_the_squares_of_link_times_and_keeps_the_contract(fabric, k, seed):
    routes = k_shortest(k, extra_hops=1)(fabric, *all_pairs(fabric))
    size_bytes = np.random.default_rng(seed).integers(0, 4, routes.pairs).astype(float)
    after = balanced(routes, np.arange(routes.pairs), size_bytes)
    after.check()
    squares = [
        float(np.square(one.link_bytes(np.arange(one.pairs), size_bytes) / fabric.bandwidth).sum())
        for one in (routes, after)
    ]
    assert squares[1] <= squares[0] * (1 + 1e-5)
