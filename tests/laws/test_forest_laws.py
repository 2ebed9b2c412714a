"""Laws of forests: on any small fabric the trees carry exactly the optimum."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from optimum_worlds import fabric_of, small_fabrics

from ropewalk.collective.forest import all_gather_forest, all_reduce_forest, broadcast_forest, reduce_scatter_forest
from ropewalk.collective.optimum import all_gather, all_reduce, broadcast, network_of, reduce_scatter


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
