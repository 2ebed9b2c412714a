"""Optima of collectives: what the model of a fabric is, what is refused, and answers that follow from a sentence."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from optimum_bounds import narrowest_cut
from optimum_worlds import both_ways, fabric_of

from ropewalk.collectives.optimum import (
    OPTIMA,
    ROOTED_OPTIMA,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    network_of,
    reduce,
    reduce_scatter,
    reduce_scatter_then_all_gather,
)
from ropewalk.collectives.optimum.maxflow import FlowNetwork
from ropewalk.collectives.optimum.optima import BY_CUTS, BY_HALVES, BY_SHARING
from ropewalk.collectives.optimum.rational import meant
from ropewalk.errors import ProgramError
from ropewalk.fabric import Dgx, Fabric, IdealSwitch, Mesh, Ring, Torus

GB = 10**9


def _path(*speeds: float) -> Fabric:
    return fabric_of(len(speeds) + 1, 0, both_ways([(u, u + 1, speed) for u, speed in enumerate(speeds)]))


def test_a_fraction_survives_floating_point():
    assert meant(float(Fraction(25, 3) * GB)) == Fraction(25, 3) * GB
    assert meant(0.1) == Fraction(1, 10)


def test_parallel_links_are_one_arc():
    twice = fabric_of(2, 0, both_ways([(0, 1, 3), (0, 1, 4)]))
    network = network_of(twice)
    assert (network.arcs, network.bandwidth(network.capacity[0])) == (2, 7)
    assert network.links == ((0, 2), (1, 3))


def test_the_cut_of_a_path_is_its_slow_link():
    fabric = _path(8, 2, 8)
    found = all_gather(network_of(fabric))
    assert found.bottleneck.members in {(0, 1), (2, 3)}
    assert [fabric.link_name(link) for link in found.bottleneck.links] in (["h1->h2"], ["h2->h1"])
    assert (found.algbw, found.method) == (4, BY_CUTS)
    assert "2 members (h" in found.bottleneck.described(fabric)


def test_the_cut_of_a_reduce_scatter_names_links_in_the_direction_of_the_data():
    """Host 0 receives slowly but sends fast: all its contributions leave, and the sum it keeps must come in."""
    fabric = fabric_of(3, 0, [(0, 1, Fraction(9)), (1, 0, Fraction(1)), (1, 2, Fraction(9)), (2, 1, Fraction(9))])
    found = reduce_scatter(network_of(fabric))
    assert found.algbw == 3
    assert [fabric.link_name(link) for link in found.bottleneck.links] == ["h1->h0"]


def test_a_member_that_brings_everything_makes_an_all_gather_a_broadcast():
    network = network_of(Mesh((3, 3), bandwidth=1.0).build(), shards=[0, 0, 0, 0, 1, 0, 0, 0, 0])
    assert all_gather(network).algbw == broadcast(network, 4).algbw == 2


def test_a_large_shard_is_limited_by_its_owner():
    """Three quarters of the data sit on one host of a switch, which sends 1 byte/s."""
    assert all_gather(network_of(IdealSwitch(3, bandwidth=1.0).build(), shards=[6, 1, 1])).algbw == Fraction(8, 7)
    assert all_gather(network_of(IdealSwitch(3, bandwidth=1.0).build(), shards=[6, 0, 2])).algbw == 1


def test_idle_hosts_relay_for_a_group():
    """Neighbours on a ring have their own link and the long way round through hosts that are not in the group."""
    ring = Ring(6, bandwidth=1.0).build()
    assert all_gather(network_of(ring, [0, 1])).algbw == 4
    assert broadcast(network_of(ring, [0, 1]), 0).algbw == 2


def test_the_order_of_a_group_does_not_matter():
    torus = Torus((3, 3)).build()
    assert all_gather(network_of(torus, [5, 0, 4])).algbw == all_gather(network_of(torus, [0, 4, 5])).algbw


def test_all_reduce_on_a_mesh_beats_its_two_halves_by_a_half():
    network = network_of(Mesh((4, 4)).build())
    assert all_reduce(network).algbw == Fraction(3, 2) * reduce_scatter_then_all_gather(network).algbw


def test_the_two_halves_are_best_between_equal_servers():
    found = all_reduce(network_of(Dgx(2).build()))
    assert (found.algbw, found.method, found.exact) == (Fraction(520 * GB, 3), BY_HALVES, True)


def test_a_slow_nic_costs_its_part_of_what_all_gpus_exchange():
    """Its rail runs at a quarter both ways: 16 x 300 + 14 x 25 + 2 x 6.25 GB/s are left for 2 x 15 messages."""
    fabric = Dgx(2).build()
    bandwidth = fabric.bandwidth.copy()
    bandwidth[32:34] /= 4
    found = all_reduce(network_of(replace(fabric, bandwidth=bandwidth)))
    assert (found.algbw, found.method, found.exact) == (Fraction(2065 * GB, 12), BY_SHARING, True)
    assert all(weight > 0 for _, weight in found.cuts)


def test_an_unbalanced_switch_cannot_multiply_what_it_receives():
    """Host 0 sends 1 to a switch that could send 4 to each of three hosts, which can pass on nothing."""
    links = [(0, 4, 1), *[(4, host, 4) for host in (1, 2, 3)], *[(host, 5, 1) for host in (1, 2, 3)], (5, 0, 3)]
    fabric = fabric_of(4, 2, [(u, v, Fraction(c)) for u, v, c in links])
    plain, copying = (broadcast(network_of(fabric, copying=copies), 0) for copies in (False, True))
    assert (plain.algbw, plain.exact) == (Fraction(1, 3), True)
    assert (copying.algbw, copying.exact) == (1, False)


def test_limits_of_hosts_appear_in_the_cut():
    network = network_of(Ring(4, bandwidth=10.0).build(), host_limits=[1.0, 10.0, 10.0, 10.0])
    found = all_gather(network)
    assert (found.algbw, found.bottleneck.limits, found.bottleneck.links) == (Fraction(4, 3), (0,), ())


def test_limits_above_the_links_change_nothing():
    ring = Ring(4, bandwidth=10.0).build()
    free, limited = network_of(ring), network_of(ring, host_limits=[20.0] * 4)
    for collective in OPTIMA.values():
        assert collective(free).algbw == collective(limited).algbw
    for rooted in ROOTED_OPTIMA.values():
        assert rooted(free, 2).algbw == rooted(limited, 2).algbw


def test_reduce_is_broadcast_backwards():
    one_way = fabric_of(3, 0, [(u, v, Fraction(c)) for u, v, c in [(0, 1, 4), (1, 2, 3), (2, 0, 2), (1, 0, 1)]])
    assert broadcast(network_of(one_way), 0).algbw == 3
    assert reduce(network_of(one_way), 0).algbw == 2


def test_all_to_all_across_a_slow_link_shares_it_among_all_pairs():
    found = all_to_all(network_of(_path(9, 1, 9)))
    assert (found.algbw, found.exact) == (1, True)
    assert len(found.bottleneck.members) == 2


def test_awkward_capacities_stay_exact():
    """Two speeds whose common unit is tiny, so that flows need more than 64 bits."""
    speeds = (1e9 + 1 / 3, 7e9 + 1 / 7)
    fabric = fabric_of(3, 0, [(u, v, c) for u, v in [(0, 1), (1, 2), (2, 0)] for c in map(meant, speeds)])
    assert all_gather(network_of(fabric)).algbw == Fraction(3, 2) * sum(map(meant, speeds))


def test_flows_beyond_64_bits_equal_scaled_ones():
    flows = FlowNetwork(4, np.array([0, 0, 1, 2, 1]), np.array([1, 2, 3, 3, 2]))
    capacity = [5, 3, 2, 9, 4]
    assert flows.flow(capacity, 0, 3) == 8
    assert flows.flow([c << 80 for c in capacity], 0, 3) == 8 << 80
    assert flows.cut(capacity, 0, 3).source_side.tolist() == [True, False, False, False]


@pytest.mark.parametrize("scale", [1, 1 << 80])
def test_a_sink_that_gets_enough_is_not_short_and_one_that_lacks_anything_is(scale):
    flows = FlowNetwork(5, np.array([0, 0, 1, 2, 1, 3, 4]), np.array([1, 2, 3, 3, 2, 4, 1]))
    capacity = [c * scale for c in [5, 3, 2, 9, 4, 7, 6]]
    sinks = np.array([3, 4])
    for need in range(8):
        assert flows.first_shortfall(capacity, 0, sinks, need * scale) is None
    for need in (8 * scale, 7 * scale + 1):
        short = flows.first_shortfall(capacity, 0, sinks, need)
        assert (short.position, short.flow) == (1, 7 * scale)
        assert short.source_side.tolist() == [True, True, True, True, False]


def test_the_narrowest_cut_looks_both_ways():
    fabric = fabric_of(2, 0, [(0, 1, Fraction(5)), (1, 0, Fraction(2))])
    assert narrowest_cut(network_of(fabric)) == 2


@pytest.mark.parametrize(
    ("fabric", "options", "message"),
    [
        (Ring(4).build(), {"group": [0, 1, 1]}, "host h1 is in the group 2 times: list every host once"),
        (Ring(4).build(), {"group": [2]}, "give at least two"),
        (Ring(4).build(), {"group": [0, 9]}, "9 is not one of its 4 hosts: give hosts 0…3"),
        (Ring(4).build(), {"shards": [1, 2]}, "there are 2 shards for 4 members: give one for each member"),
        (Ring(4).build(), {"shards": [1, 2, -1, 3]}, "shards must be numbers of at least 0"),
        (Ring(4).build(), {"host_limits": [1.0]}, "there are 1 limits for 4 hosts: give one for each host"),
        (Ring(4).build(), {"host_limits": [1.0, 0.0, 1.0, 1.0]}, "the limit of host 1 is 0 bytes/s"),
        (_path(1, 0), {}, "link h1->h2 has a bandwidth of 0 bytes/s: remove it, or give a higher bandwidth"),
        (
            fabric_of(3, 0, both_ways([(0, 1, 1)])),
            {},
            "h0 and h2 cannot reach each other in both directions: add links",
        ),
        (fabric_of(2, 0, [(0, 1, Fraction(1))]), {}, "h0 and h1 cannot reach each other in both directions"),
    ],
)
def test_what_has_no_optimum_is_refused_with_a_remedy(fabric, options, message):
    with pytest.raises(ProgramError, match=message):
        network_of(fabric, **options)


def test_a_root_outside_the_group_and_an_uneven_all_to_all_are_refused():
    ring = Ring(4).build()
    with pytest.raises(ProgramError, match="host 3 is not in the group"):
        broadcast(network_of(ring, [0, 1]), 3)
    with pytest.raises(ProgramError, match="leave the shards out"):
        all_to_all(network_of(ring, shards=[1, 2, 3, 4]))


def test_a_host_a_billion_times_slower_than_the_links_still_counts_exactly():
    network = network_of(IdealSwitch(4, bandwidth=1e15).build(), host_limits=[1e12, 1e6, 1e9, 12.5e9])
    slow = 10**6
    for found, algbw in [(all_to_all(network), Fraction(4, 3) * slow), (broadcast(network, 0), slow)]:
        assert (found.algbw, found.exact) == (algbw, True)


def test_what_a_slow_host_can_receive_bounds_an_all_gather_on_links_of_six_magnitudes():
    rows = [(5, 4, "25/2"), (4, 0, "1/1000"), (0, 2, 400), (2, 3, 1000), (3, 1, 1), (1, 5, 400), (3, 5, "3/7")]
    fabric = fabric_of(5, 1, [(u, v, Fraction(speed) * GB) for u, v, speed in [*rows, (1, 2, "1/1000")]])
    limits = [1e12, 1e6, 1e9, 12.5e9, 1e9]
    found = all_gather(network_of(fabric, shards=[0.5, 0, 1, 2, 7], host_limits=limits))
    assert (found.algbw, found.exact) == (10**6, True)
