"""TopoAdopt: forests near the optimum that prove how near, on fabrics small enough to know the answer."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from optimum_worlds import both_ways, fabric_of

from ropewalk.collectives.forest import AllReduceForest, Forest
from ropewalk.collectives.forest.program import forest_schedule
from ropewalk.collectives.optimum import all_gather, all_reduce, broadcast, network_of, reduce, reduce_scatter
from ropewalk.collectives.topoadopt import (
    topoadopt_all_gather,
    topoadopt_broadcast,
    topoadopt_forest,
    topoadopt_reduce,
    topoadopt_reduce_scatter,
)
from ropewalk.collectives.topoadopt._evening import even_out
from ropewalk.collectives.topoadopt.apportioning import apportioned
from ropewalk.collectives.topoadopt.growing import centre, depths_from, rerooted
from ropewalk.errors import ProgramError
from ropewalk.fabric import BCube, Dgx, FatTree, IdealSwitch, LeafSpine, Mesh, Ring, Torus

SMALL = [Ring(5), Mesh((3, 3)), Torus((3, 3)), BCube(3, 2), Dgx(2), FatTree(4), LeafSpine(2, 3, 4), IdealSwitch(6)]


@pytest.mark.parametrize("builder", SMALL, ids=lambda builder: builder.expression)
def test_every_collective_is_within_five_hundredths_of_its_optimum(builder):
    network = network_of(builder.build())
    for found, optimum in [
        (topoadopt_forest(network), all_reduce(network)),
        (topoadopt_all_gather(network), all_gather(network)),
        (topoadopt_reduce_scatter(network), reduce_scatter(network)),
        (topoadopt_broadcast(network, 1), broadcast(network, 1)),
        (topoadopt_reduce(network, 1), reduce(network, 1)),
    ]:
        found.check()
        assert Fraction(95, 100) * found.bound <= found.algbw <= optimum.algbw <= found.bound
        assert found.proved_ratio >= found.guarantee == Fraction(95, 100)


def test_a_wish_for_less_distance_is_granted():
    """Links that differ by direction, so that a coarse search is not enough by itself."""
    links = [(0, 1, 3), (1, 2, 5), (2, 3, 2), (3, 4, 7), (4, 0, 4), (0, 2, 1), (2, 4, 6), (3, 1, 2), (1, 0, 9)]
    network = network_of(fabric_of(5, 0, [(u, v, Fraction(speed)) for u, v, speed in links]))
    for epsilon in (0.3, 0.1, 0.02, 0.01):
        for found, optimum in (
            (topoadopt_forest(network, epsilon), all_reduce(network)),
            (topoadopt_all_gather(network, epsilon), all_gather(network)),
        ):
            found.check()
            assert found.guarantee * optimum.algbw <= found.algbw <= optimum.algbw <= found.bound


def test_two_rings_share_a_ring_and_the_bound_is_the_optimum_itself():
    found = topoadopt_forest(network_of(Ring(4, bandwidth=3e9).build()))
    assert (found.algbw, found.bound, found.chunks) == (4 * 10**9, 4 * 10**9, 4)


def test_a_star_with_a_worker_as_hub_reduces_to_the_hub():
    """Reducing and spreading use every link once; a ring of four would use the hub's links twice."""
    network = network_of(fabric_of(4, 0, both_ways([(0, 1, 1), (0, 2, 1), (0, 3, 1)])))
    found = topoadopt_forest(network)
    assert found.algbw == found.bound == 1
    assert found.trees == 2
    assert found.forest.spreading.root_rates() == {0: 1}


def test_switches_only_forward_so_a_byte_to_three_hosts_leaves_its_host_three_times():
    network = network_of(IdealSwitch(4, bandwidth=3.0).build())
    found = topoadopt_broadcast(network, 0)
    found.check()
    # Each receiver can pass it on: every host sends and receives once, and the last receiver sends nothing.
    assert found.algbw == found.bound == 3
    assert found.algbw == broadcast(network, 0).algbw


def test_hosts_outside_the_group_forward():
    network = network_of(Ring(6, bandwidth=2.0).build(), [0, 2, 3])
    found = topoadopt_forest(network)
    found.check()
    assert found.bound >= all_reduce(network).algbw >= found.algbw >= Fraction(95, 100) * found.bound
    used = {vertex for ends in found.forest.spreading.arc_loads() for vertex in ends}
    assert used - {0, 2, 3}, "the way round the ring leads over hosts that are not in the group"


def test_limits_of_hosts_bind_where_links_do_not():
    hosts, limits = 4, [2.0, 1.0, 1.0, 1.0]
    mesh = fabric_of(hosts, 0, both_ways([(u, v, 100) for u, v in combinations(range(hosts), 2)]))
    found = topoadopt_forest(network_of(mesh, host_limits=limits))
    found.check()
    assert Fraction(95, 100) * Fraction(5, 6) <= found.algbw <= Fraction(5, 6) <= found.bound


def test_shards_are_kept_in_their_proportion_even_where_one_has_none():
    network = network_of(Torus((2, 3), bandwidth=1.0).build(), shards=[3, 0, 1, 2, 1, 1])
    for found in (topoadopt_all_gather(network), topoadopt_reduce_scatter(network)):
        found.check()
        rates = found.forest.root_rates()
        assert [rates.get(host, 0) * 8 / found.algbw for host in range(6)] == [3, 0, 1, 2, 1, 1]


def test_links_that_differ_by_a_million_do_not_drown_in_rounding():
    network = network_of(fabric_of(4, 0, both_ways([(0, 1, 10**6), (2, 3, 10**6), (0, 2, 1), (1, 3, 1)])))
    found = topoadopt_forest(network)
    found.check()
    assert Fraction(95, 100) * 2 <= found.algbw <= 2 <= found.bound


def test_forests_are_the_types_that_schedules_are_made_from():
    network = network_of(Mesh((3, 3)).build())
    both, gather = topoadopt_forest(network), topoadopt_all_gather(network)
    assert isinstance(both.forest, AllReduceForest)
    assert isinstance(gather.forest, Forest)
    for found, collective in ((both, "allreduce"), (gather, "allgather")):
        schedule = forest_schedule(found.forest, collective)
        schedule.program.check()
        assert schedule.program.chunks == found.chunks
        assert schedule.promise == found.algbw


def test_the_same_network_gives_the_same_forest():
    first, again = (topoadopt_all_gather(network_of(Dgx(2).build())).forest for _ in range(2))
    assert first.trees == again.trees


def test_pruning_leaves_fewer_trees_than_were_found():
    found = topoadopt_all_gather(network_of(Mesh((4, 4)).build()))
    assert found.trees < found.trees_found <= found.iterations


@pytest.mark.parametrize("epsilon", [0.0, 0.001, 0.9, float("nan")])
def test_a_distance_that_cannot_be_kept_is_refused(epsilon):
    with pytest.raises(ProgramError, match="or build the exact forest"):
        topoadopt_forest(network_of(Ring(4).build()), epsilon)


def test_a_root_outside_the_group_is_refused():
    with pytest.raises(ProgramError, match="host 3 is not in the group"):
        topoadopt_broadcast(network_of(Ring(4).build(), [0, 1]), 3)


def test_switches_that_copy_are_refused():
    with pytest.raises(ProgramError, match="leave in-network multicast out"):
        topoadopt_forest(network_of(Dgx(1).build(), copying=True))


def test_a_tree_hangs_from_its_centre():
    chain = np.array([-1, 0, 1, 2, 3, 4])
    assert centre(chain) == 2
    hung = rerooted(chain, 2)
    assert hung.tolist() == [1, 2, -1, 2, 3, 4]
    assert depths_from(hung).tolist() == [2, 1, 0, 1, 2, 3]
    assert centre(np.array([-1, 0])) == 0


def test_numbers_nearly_whole_are_taken_as_whole():
    assert apportioned(6, np.array([1 / 3 - 1e-12, 2 / 3])).tolist() == [2, 4]
    assert apportioned(1, np.array([1.0, 1.0, 1.0])).tolist() == [1, 0, 0]


def test_units_move_off_the_fullest_arc_within_their_group():
    """Trees 0 and 1 can stand in for each other, tree 2 only for itself; trees 0 and 2 share arc 0."""
    first, arc, times = np.array([0, 1, 2, 3]), np.array([0, 1, 0]), np.array([1, 1, 1])
    start, end = np.array([0, 0, 2]), np.array([2, 2, 3])
    counts = np.array([4, 0, 2])
    assert even_out(first, arc, times, start, end, np.array([1.0, 1.0]), counts) == 3
    assert counts.tolist() == [1, 3, 2]
