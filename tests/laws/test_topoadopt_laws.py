"""Laws of near-optimal forests: the bound is never below the optimum, the forest never above it nor far below.

The kernels are compared with plain Python that tries everything.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from optimum_worlds import fabric_of, small_fabrics

from ropewalk.collectives.optimum import all_gather, all_reduce, broadcast, network_of, reduce_scatter
from ropewalk.collectives.topoadopt import (
    topoadopt_all_gather,
    topoadopt_broadcast,
    topoadopt_forest,
    topoadopt_reduce_scatter,
)
from ropewalk.collectives.topoadopt._arborescence import cheapest_arborescence, cheapest_spanning_tree
from ropewalk.collectives.topoadopt._ways import shortest_ways, write_way
from ropewalk.collectives.topoadopt.apportioning import apportioned
from ropewalk.collectives.topoadopt.graph import graph_of


def _within(found, optimum):
    found.check()
    assert found.guarantee * found.bound <= found.algbw <= found.bound
    # An optimum that is not proved is known in floating point.
    slack = 0 if optimum.exact else 1e-6
    assert found.algbw <= optimum.algbw * (1 + slack)
    assert optimum.algbw * (1 - slack) <= found.bound


@st.composite
def tables(draw):
    n = draw(st.integers(2, 5))
    costs = st.one_of(st.integers(0, 4), st.integers(0, 1000))
    table = np.array(draw(st.lists(st.lists(costs, min_size=n, max_size=n), min_size=n, max_size=n)), np.float64)
    missing = np.array(draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)))
    # A cycle keeps all of them reachable from each other.
    cycle = draw(st.permutations(range(n)))
    missing[cycle, np.roll(cycle, -1)] = False
    table[missing] = np.inf
    np.fill_diagonal(table, np.inf)
    return table


def _is_tree(parent, root):
    for vertex in range(len(parent)):
        steps = 0
        while vertex != root:
            vertex, steps = parent[vertex], steps + 1
            if vertex < 0 or steps > len(parent):
                return False
    return True


def _cheapest_by_trying(table, root):
    n = len(table)
    choices = [[-1] if vertex == root else [u for u in range(n) if u != vertex] for vertex in range(n)]
    return min(
        sum(table[parent[vertex], vertex] for vertex in range(n) if vertex != root)
        for parent in product(*choices)
        if _is_tree(parent, root)
    )


@given(tables())
@settings(max_examples=150)
def test_the_cheapest_tree_is_the_cheapest_of_all(table):
    for root in range(len(table)):
        parent = np.empty(len(table), np.int64)
        cost = cheapest_arborescence(table, root, parent)
        assert parent[root] == -1
        assert _is_tree(parent.tolist(), root)
        assert cost == _cheapest_by_trying(table, root)
        assert cost == sum(table[parent[v], v] for v in range(len(table)) if v != root)


@given(tables())
def test_on_costs_equal_both_ways_every_root_has_the_same_tree(table):
    equal = np.minimum(table, table.T)
    parent = np.empty(len(table), np.int64)
    cost = cheapest_spanning_tree(equal, parent)
    assert _is_tree(parent.tolist(), 0)
    assert cost == _cheapest_by_trying(equal, 0)
    for root in range(len(table)):
        assert cheapest_arborescence(equal, root, parent) == cost


@given(small_fabrics(most_hosts=4, most_switches=3), st.data())
@settings(max_examples=60)
def test_ways_pass_no_other_member_and_none_is_shorter(world, data):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links))
    graph = graph_of(network)
    cost = np.array(data.draw(st.lists(st.integers(0, 9), min_size=network.arcs, max_size=network.arcs)), np.float64)
    between = np.empty((hosts, hosts))
    last = np.empty((hosts, network.vertices), np.int64)
    shortest_ways(graph.first, graph.leaving, graph.head, graph.members, graph.forwarders, cost, between, last)
    for start in range(hosts):
        distance = {start: 0.0}
        for _ in range(network.vertices):
            for arc, (u, v) in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True)):
                if u in distance and (u == start or u >= hosts):
                    distance[v] = min(distance.get(v, math.inf), distance[u] + cost[arc])
        for end in range(hosts):
            if end == start:
                continue
            assert between[start, end] == distance.get(end, math.inf)
            if math.isfinite(between[start, end]):
                way = np.empty(network.vertices, np.int64)
                arcs = way[: write_way(last, graph.tail, graph.members, start, end, way)][::-1]
                assert cost[arcs].sum() == between[start, end]
                assert network.tail[arcs[0]] == start
                assert network.head[arcs[-1]] == end
                assert (network.head[arcs[:-1]] == network.tail[arcs[1:]]).all()
                assert (network.head[arcs[:-1]] >= hosts).all()


@given(small_fabrics(alike=True, most_hosts=6, most_switches=3), st.sampled_from([0.02, 0.05, 0.2]))
@settings(max_examples=40)
def test_on_links_equal_both_ways_forests_keep_their_promise(world, epsilon):
    network = network_of(fabric_of(*world))
    _within(topoadopt_forest(network, epsilon), all_reduce(network))
    _within(topoadopt_all_gather(network, epsilon), all_gather(network))
    _within(topoadopt_broadcast(network, 1, epsilon), broadcast(network, 1))


@given(small_fabrics(most_hosts=5, most_switches=2), st.sampled_from([0.02, 0.05, 0.2]))
@settings(max_examples=40)
def test_on_links_that_differ_by_direction_forests_keep_their_promise(world, epsilon):
    network = network_of(fabric_of(*world))
    _within(topoadopt_forest(network, epsilon), all_reduce(network))
    _within(topoadopt_all_gather(network, epsilon), all_gather(network))
    _within(topoadopt_reduce_scatter(network, epsilon), reduce_scatter(network))


@given(small_fabrics(alike=True, most_hosts=6, most_switches=1), st.data())
@settings(max_examples=25)
def test_groups_limits_and_shards_keep_the_promise_too(world, data):
    hosts = world[0]
    limits = data.draw(st.lists(st.integers(1, 9).map(float), min_size=hosts, max_size=hosts))
    group = data.draw(st.lists(st.integers(0, hosts - 1), min_size=2, max_size=hosts, unique=True))
    shards = data.draw(st.lists(st.integers(0, 3), min_size=len(group), max_size=len(group)).filter(any))
    network = network_of(fabric_of(*world), group, shards=shards, host_limits=limits)
    _within(topoadopt_forest(network), all_reduce(network))
    found = topoadopt_all_gather(network)
    _within(found, all_gather(network))
    rates = found.forest.root_rates()
    for host, shard in zip(group, shards, strict=True):
        assert rates.get(host, Fraction(0)) * sum(shards) == shard * found.algbw


@given(st.integers(0, 10**6), st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30))
def test_whole_numbers_add_up_and_are_off_by_less_than_one(total, rates):
    rate = np.array(rates)
    whole = apportioned(total, rate)
    assert whole.sum() == total
    assert (np.abs(whole - rate * total / rate.sum()) <= 1 + 1e-5).all()
    assert (whole >= 0).all()
