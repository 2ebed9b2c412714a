"""Laws of optima: no cut is exceeded, the narrowest is reached, more bandwidth never hurts, units scale through."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import optimum_reference as reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optimum_bounds import all_members_exchange, distances, narrowest_cut, one_member_gathers
from optimum_worlds import fabric_of, small_fabrics

from ropewalk.collectives.optimum import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    network_of,
    reduce,
    reduce_scatter,
)
from ropewalk.collectives.optimum.sharing import best_sharing
from ropewalk.collectives.optimum.strength import strength
from ropewalk.fabric import Fabric, Hypercube, IdealSwitch, LeafSpine, Torus

COLLECTIVES = (all_gather, reduce_scatter, all_reduce, all_to_all)


@given(small_fabrics(alike=True, most_hosts=7, most_switches=3), st.data())
@settings(max_examples=60)
def test_all_gather_is_the_narrowest_of_all_cuts(world, data):
    hosts, switches, links = world
    weight = data.draw(st.lists(st.integers(0, 4), min_size=hosts, max_size=hosts).filter(any))
    found = all_gather(network_of(fabric_of(hosts, switches, links), shards=weight))
    assert found.exact
    assert found.algbw == reference.gather_by_all_cuts(hosts, hosts + switches, links, weight)


@given(small_fabrics(most_hosts=4), st.booleans())
@settings(max_examples=40)
def test_gathering_over_any_switches_equals_the_program_with_a_flow_for_every_member(world, backwards):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links))
    found = reduce_scatter(network) if backwards else all_gather(network)
    turned = [(v, u, c) for u, v, c in links] if backwards else links
    expected = reference.sharing_by_flows(hosts, hosts + switches, turned, share=[1 / hosts] * hosts, reduces=False)
    assert float(found.algbw) == pytest.approx(expected, rel=1e-7)
    assert found.algbw <= reference.gather_by_all_cuts(hosts, hosts + switches, turned)


@given(small_fabrics(most_hosts=4), st.booleans())
@settings(max_examples=40)
def test_broadcast_over_any_switches_equals_the_program_with_a_flow_for_every_member(world, backwards):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links))
    found = reduce(network, 0) if backwards else broadcast(network, 0)
    turned = [(v, u, c) for u, v, c in links] if backwards else links
    share = [1.0] + [0.0] * (hosts - 1)
    expected = reference.sharing_by_flows(hosts, hosts + switches, turned, share=share, reduces=False)
    assert float(found.algbw) == pytest.approx(expected, rel=1e-7)


@given(small_fabrics(most_hosts=4), st.booleans())
@settings(max_examples=40)
def test_all_reduce_equals_the_program_with_a_flow_for_every_member(world, copying):
    hosts, switches, links = world
    found = all_reduce(network_of(fabric_of(hosts, switches, links), copying=copying))
    expected = reference.sharing_by_flows(hosts, hosts + switches, links, share=None, reduces=True, copying=copying)
    assert float(found.algbw) == pytest.approx(expected, rel=1e-7)


@given(small_fabrics(alike=True, most_hosts=4))
@settings(max_examples=30)
def test_one_root_is_enough_where_links_are_alike_both_ways(world):
    hosts, switches, links = world
    found = all_reduce(network_of(fabric_of(hosts, switches, links)))
    expected = reference.sharing_by_flows(hosts, hosts + switches, links, share=None, reduces=True)
    assert float(found.algbw) == pytest.approx(expected, rel=1e-7)


@given(small_fabrics(alike=True, most_hosts=7, most_switches=0))
@settings(max_examples=60)
def test_strength_is_the_narrowest_of_all_partitions_and_the_sharing_of_links(world):
    hosts, _, links = world
    network = network_of(fabric_of(hosts, 0, links))
    expected = reference.strength_by_all_partitions(hosts, links)
    assert network.bandwidth(strength(network).value) == expected
    root = (Fraction(1), *[Fraction(0)] * (hosts - 1))
    assert best_sharing(network, share=root).rate * float(network.unit) == pytest.approx(float(expected), rel=1e-9)


@given(small_fabrics(most_hosts=4))
@settings(max_examples=40)
def test_all_to_all_equals_the_program_with_a_flow_for_every_pair(world):
    hosts, switches, links = world
    found = all_to_all(network_of(fabric_of(hosts, switches, links)))
    expected = hosts * reference.concurrent_by_pairs(hosts, hosts + switches, links)
    assert float(found.algbw) == pytest.approx(expected, rel=1e-7)


@given(small_fabrics(), st.sampled_from([Fraction(1, 3), Fraction(7), Fraction(25, 2)]))
@settings(max_examples=25)
def test_scaling_every_link_scales_every_optimum(world, factor):
    hosts, switches, links = world
    before = network_of(fabric_of(hosts, switches, links))
    after = network_of(fabric_of(hosts, switches, [(u, v, factor * c) for u, v, c in links]))
    for collective in COLLECTIVES:
        one, other = collective(before), collective(after)
        assert one.exact == other.exact
        assert (
            other.algbw == factor * one.algbw
            if one.exact
            else float(other.algbw) == pytest.approx(float(factor * one.algbw))
        )


@given(small_fabrics(), st.data())
@settings(max_examples=25)
def test_one_more_link_never_lowers_an_optimum(world, data):
    hosts, switches, links = world
    nodes = hosts + switches
    u = data.draw(st.integers(0, nodes - 1))
    v = (u + data.draw(st.integers(1, nodes - 1))) % nodes
    before = network_of(fabric_of(hosts, switches, links))
    after = network_of(fabric_of(hosts, switches, [*links, (u, v, Fraction(data.draw(st.integers(1, 9))))]))
    for collective in COLLECTIVES:
        assert float(collective(after).algbw) >= float(collective(before).algbw) * (1 - 1e-9)


@given(small_fabrics())
@settings(max_examples=25)
def test_no_optimum_is_above_its_bounds(world):
    hosts, switches, links = world
    network = network_of(fabric_of(hosts, switches, links))
    above = 1 + Fraction(1, 10**9)
    assert all_gather(network).algbw <= one_member_gathers(network) * above
    assert all_reduce(network).algbw <= min(all_members_exchange(network), narrowest_cut(network)) * above
    assert all_to_all(network).algbw <= distances(network) * above
    nodes = hosts + switches
    assert all(all_reduce(network).algbw <= capacity * above for _, capacity in reference.all_cuts(hosts, nodes, links))


@pytest.mark.parametrize(
    "fabric",
    [Torus((3, 4)).build(), Hypercube(3).build(), LeafSpine(2, 2, 4).build(), IdealSwitch(5).build()],
    ids=lambda fabric: fabric.name,
)
def test_symmetry_does_not_change_any_optimum(fabric: Fabric):
    network = network_of(fabric)
    assert network.symmetry is not None
    plain = replace(network, symmetry=None)
    for collective in COLLECTIVES:
        assert collective(network).algbw == collective(plain).algbw
        assert collective(network).exact


def test_a_slow_link_takes_the_symmetry_away():
    torus = Torus((3, 3)).build()
    bandwidth = torus.bandwidth.copy()
    bandwidth[0] /= 2
    assert network_of(replace(torus, bandwidth=np.asarray(bandwidth))).symmetry is None
