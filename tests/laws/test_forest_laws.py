"""Laws of forests: on any small fabric the trees carry exactly the optimum."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from optimum_worlds import fabric_of, small_fabrics

from ropewalk.collectives.forest import all_gather_forest, all_reduce_forest, broadcast_forest, reduce_scatter_forest
from ropewalk.collectives.forest._layering import brought
from ropewalk.collectives.forest.fixed import fixed_forest
from ropewalk.collectives.forest.mixing import mixed_forest
from ropewalk.collectives.optimum import all_gather, all_reduce, broadcast, network_of, reduce_scatter
from ropewalk.collectives.optimum.gather import largest_ratio
from ropewalk.collectives.optimum.maxflow import FlowNetwork
from ropewalk.collectives.optimum.rational import common_unit
from ropewalk.fabric import Torus


@given(small_fabrics(alike=True, most_hosts=6, most_switches=3), st.data())
@settings(max_examples=40)
def test_gathering_forests_reach_the_optimum_with_any_shards(world, data):
    hosts, switches, links = world
    shards = data.draw(st.lists(st.integers(0, 3), min_size=hosts, max_size=hosts).filter(any))
    network = network_of(fabric_of(hosts, switches, links), shards=shards)
    for grow, optimum in ((all_gather_forest, all_gather), (reduce_scatter_forest, reduce_scatter)):
        forest = grow(network)
        forest.check()
        assert forest.algbw == optimum(network).algbw
        rates = forest.root_rates()
        assert all(rates.get(host, 0) * sum(shards) == forest.algbw * shards[host] for host in range(hosts))


@given(small_fabrics(alike=True, most_hosts=5, most_switches=3))
@settings(max_examples=30)
def test_all_reduce_and_broadcast_forests_reach_the_optimum(world):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links))
    both, rooted = all_reduce_forest(network), broadcast_forest(network, hosts - 1)
    both.check()
    rooted.check()
    assert (both.algbw, rooted.algbw) == (all_reduce(network).algbw, broadcast(network, hosts - 1).algbw)


@given(small_fabrics(most_hosts=4))
@settings(max_examples=30)
def test_forests_on_one_way_links_and_unbalanced_switches_reach_a_proved_optimum(world):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links))
    if all_gather(network).exact:
        forest = all_gather_forest(network)
        forest.check()
        assert forest.algbw == all_gather(network).algbw
    if all_reduce(network).exact:
        both = all_reduce_forest(network)
        both.check()
        assert both.algbw == all_reduce(network).algbw


@given(small_fabrics(alike=True, most_hosts=5, most_switches=2), st.integers(1, 3))
@settings(max_examples=30)
def test_fixed_numbers_of_trees_stay_below_the_optimum_and_reach_it_with_enough_trees(world, trees):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links))
    best = all_gather(network).algbw
    forest = fixed_forest(network, trees, "allgather")
    forest.check()
    assert forest.algbw <= best
    # As many trees as the optimal rate has units that every capacity is a whole multiple of.
    enough = (best / hosts / common_unit([best / hosts, network.unit])).numerator
    if enough <= 64:
        assert fixed_forest(network, enough, "allgather").algbw == best


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3).filter(lambda shape: 3 <= prod(shape) <= 40))
@settings(max_examples=20)
def test_shifted_trees_carry_what_trees_of_their_own_carry(shape):
    network = network_of(Torus(tuple(shape)).build())
    shifted = mixed_forest(network, 1 / largest_ratio(network).value)
    plain = all_gather_forest(replace(network, symmetry=None))
    shifted.check()
    assert shifted.algbw == plain.algbw
    assert shifted.depth == sum(side // 2 for side in shape)


@given(st.data())
@settings(max_examples=100)
def test_neighbours_bring_trees_exactly_when_a_flow_says_they_can(data):
    roots, arcs = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 4))
    allowed = st.lists(st.lists(st.booleans(), min_size=arcs, max_size=arcs), min_size=roots, max_size=roots)
    before = np.array(data.draw(allowed))
    before[0] = False  # the member itself
    wanted = np.array(data.draw(st.lists(st.integers(0, 4), min_size=roots, max_size=roots)))
    capacity = np.array(data.draw(st.lists(st.integers(0, 6), min_size=arcs, max_size=arcs)))
    amount = brought(0, before, wanted, capacity)
    ways = [(root, roots + arc) for root in range(1, roots) for arc in range(arcs) if before[root, arc]]
    ends = (
        [(roots + arcs, root) for root in range(1, roots)] + ways + [(roots + a, roots + arcs + 1) for a in range(arcs)]
    )
    tail, head = (np.array(column) for column in zip(*ends, strict=True))
    sizes = [*wanted[1:].tolist(), *[99] * len(ways), *capacity.tolist()]
    flow = FlowNetwork(roots + arcs + 2, tail, head).flow(sizes, roots + arcs, roots + arcs + 1)
    if flow < wanted[1:].sum():
        assert amount[0, 0] == -1
    else:
        assert (amount[1:].sum(axis=1) == wanted[1:]).all()
        assert (amount.sum(axis=0) <= capacity).all()
        assert not amount[~before].any()
