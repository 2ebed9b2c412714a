"""Forests: trees that reach everyone within the links, at exactly the promised rate."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from optimum_worlds import both_ways, fabric_of

import ropewalk.collectives.forest.splitting as splitting
from ropewalk.collectives.forest import (
    AllReduceForest,
    all_gather_forest,
    all_reduce_forest,
    broadcast_forest,
    reduce_forest,
    reduce_scatter_forest,
)
from ropewalk.collectives.forest.demand import CapacityGraph
from ropewalk.collectives.forest.packing import packed, packed_together
from ropewalk.collectives.forest.splitting import split_switches
from ropewalk.collectives.forest.symmetric import backwards
from ropewalk.collectives.optimum import all_gather, all_reduce, broadcast, network_of, reduce, reduce_scatter
from ropewalk.errors import ProgramError, ProofError
from ropewalk.fabric import BCube, Dgx, FatTree, IdealSwitch, LeafSpine, Mesh, Ring, Torus

SMALL = [Ring(5), Mesh((3, 3)), Torus((3, 3)), BCube(3, 2), Dgx(2), FatTree(4), LeafSpine(2, 3, 4), IdealSwitch(6)]


@pytest.mark.parametrize("builder", SMALL, ids=lambda builder: builder.expression)
def test_every_forest_reaches_its_optimum(builder):
    network = network_of(builder.build())
    for forest, optimum in [
        (all_gather_forest(network), all_gather(network)),
        (reduce_scatter_forest(network), reduce_scatter(network)),
        (broadcast_forest(network, 1), broadcast(network, 1)),
        (reduce_forest(network, 1), reduce(network, 1)),
        (all_reduce_forest(network), all_reduce(network)),
    ]:
        forest.check()
        assert forest.algbw == optimum.algbw


def test_servers_with_rails_need_two_hops():
    """A root sends to its rail peer in every other server, and each receiver to the GPUs next to it."""
    assert all_gather_forest(network_of(Dgx(4).build())).depth == 2


@pytest.mark.parametrize(
    ("builder", "hops"),
    [
        (Dgx(2), 2),
        (Dgx(3, spines=3), 2),
        (LeafSpine(4, 1, 4), 2),
        (FatTree(4), 1),
        (BCube(3, 2), 2),
        (Torus((4, 6)), 5),
    ],
    ids=lambda value: getattr(value, "expression", value),
)
def test_trees_are_shallow_with_and_without_the_help_of_symmetry(builder, hops):
    network = network_of(builder.build())
    assert network.symmetry is not None
    for each in (network, replace(network, symmetry=None)):
        forest = all_gather_forest(each)
        forest.check()
        assert (forest.algbw, forest.depth) == (all_gather(network).algbw, hops)


@pytest.mark.parametrize("builder", [IdealSwitch(9), FatTree(4), LeafSpine(4, 4, 4)], ids=lambda b: b.expression)
def test_a_broadcast_through_switches_goes_by_way_of_everyone(builder):
    network = network_of(builder.build())
    forest = broadcast_forest(network, 2)
    forest.check()
    assert (forest.algbw, forest.depth) == (broadcast(network, 2).algbw, 2)
    assert len(forest.trees) == len(network.members) - 1


def test_an_all_reduce_runs_around_the_middle_of_its_trees():
    """Seven hosts in a line: the far ends are three hops from the middle one."""
    forest = all_reduce_forest(network_of(Mesh((7,)).build()))
    forest.check()
    assert (forest.depth, list(forest.spreading.root_rates())) == (6, [3])


def test_trees_come_back_the_way_they_went():
    network = network_of(Ring(4, bandwidth=10.0).build(), host_limits=[4.0, 10.0, 10.0, 10.0])
    forest = all_gather_forest(network)
    back = backwards(forest)
    back.check()
    assert back.arc_loads() == {
        (int(network.opposite[u]), int(network.opposite[v])): rate for (u, v), rate in forest.arc_loads().items()
    }


def test_a_bottleneck_cut_is_used_up():
    network = network_of(Dgx(4).build())
    forest, cut = all_gather_forest(network), all_gather(network).bottleneck
    across = {link: network.fabric.link_name(link) for link in cut.links}
    ends = {(int(network.fabric.link_src[link]), int(network.fabric.link_dst[link])) for link in across}
    assert sum(rate for arc, rate in forest.arc_loads().items() if arc in ends) == cut.capacity


def test_shards_decide_how_much_each_root_carries():
    forest = all_gather_forest(network_of(Ring(4).build(), shards=[1, 2, 3, 0]))
    forest.check()
    rates = forest.root_rates()
    assert (rates[1], rates[2], 3 in rates) == (2 * rates[0], 3 * rates[0], False)


def test_hosts_outside_the_group_only_forward():
    network = network_of(Ring(6, bandwidth=1.0).build(), [0, 1, 3])
    forest = all_gather_forest(network)
    forest.check()
    assert forest.algbw == all_gather(network).algbw
    inner = {node for tree in forest.trees for branch in tree.branches for way, _ in branch.ways for node in way[1:-1]}
    assert inner <= {2, 4, 5}


def test_host_limits_hold_in_the_forest():
    network = network_of(Ring(4, bandwidth=10.0).build(), host_limits=[4.0, 10.0, 10.0, 10.0])
    forest = all_gather_forest(network)
    forest.check()
    assert forest.algbw == all_gather(network).algbw == Fraction(16, 3)
    sent = [rate for (tail, _), rate in forest.arc_loads().items() if tail == 0]
    assert sum(sent) <= 4


def test_an_unbalanced_switch_forwards_each_byte_once():
    links = [(0, 4, 1), *[(4, host, 4) for host in (1, 2, 3)], *[(host, 5, 1) for host in (1, 2, 3)], (5, 0, 3)]
    network = network_of(fabric_of(4, 2, [(u, v, Fraction(c)) for u, v, c in links]))
    forest = broadcast_forest(network, 0)
    forest.check()
    assert forest.algbw == Fraction(1, 3)


def test_all_reduce_on_a_mesh_beats_the_two_halves():
    forest = all_reduce_forest(network_of(Mesh((3, 3), bandwidth=1.0).build()))
    forest.check()
    assert forest.algbw == Fraction(3, 2)


def test_all_reduce_on_one_way_links_has_several_roots():
    kautz = [(0, 1, 2), (1, 2, 1), (2, 0, 1), (1, 0, 1), (2, 1, 1)]
    network = network_of(fabric_of(3, 0, [(u, v, Fraction(c)) for u, v, c in kautz]))
    forest = all_reduce_forest(network)
    forest.check()
    assert forest.algbw == all_reduce(network).algbw


@pytest.mark.parametrize("builder", [Dgx(2), LeafSpine(2, 2, 3), BCube(2, 2)], ids=lambda builder: builder.expression)
def test_pair_by_pair_splitting_keeps_the_optimum_without_any_guess(builder, monkeypatch):
    monkeypatch.setattr(splitting, "guesses", lambda *_: iter(()))
    network = network_of(builder.build())
    forest = all_gather_forest(network)
    forest.check()
    assert forest.algbw == all_gather(network).algbw


def test_a_switch_that_multiplies_cannot_be_split():
    wiring = CapacityGraph(3, {0: 1}, (0, 1), Fraction(1))
    wiring.add((0, 2), 1)
    wiring.add((2, 1), 2)
    with pytest.raises(ProofError, match="vertex 2 receives 1 and sends 2"):
        split_switches(wiring, [2])


def test_too_many_trees_are_refused():
    wiring = CapacityGraph(2, {0: 2}, (0, 1), Fraction(1))
    wiring.add((0, 1), 1)
    for pack in (packed, packed_together):
        with pytest.raises(ProofError, match="cannot reach every rank"):
            pack(wiring)


def test_a_tampered_forest_does_not_pass():
    network = network_of(Ring(4).build())
    forest = all_gather_forest(network)
    with pytest.raises(ProofError, match="more than it can"):
        forest.scaled(Fraction(11, 10)).check()
    first = forest.trees[0]
    with pytest.raises(ProofError, match="misses members"):
        replace(forest, trees=(replace(first, branches=first.branches[:-1]),)).check()
    with pytest.raises(ProofError, match="does not grow"):
        replace(forest, trees=(replace(first, branches=first.branches[1:]),)).check()
    with pytest.raises(ProofError, match="do not carry its rate"):
        replace(forest, trees=(replace(first, rate=first.rate / 2),)).check()
    both = AllReduceForest(forest, forest)
    with pytest.raises(ProofError, match="more than it can"):
        both.check()


def test_what_has_no_forest_is_refused():
    fabric = fabric_of(2, 1, both_ways([(0, 2, 1), (1, 2, 1)]))
    with pytest.raises(ProgramError, match="leave in-network multicast out"):
        all_reduce_forest(network_of(fabric, copying=True))
    with pytest.raises(ProgramError, match="host 7 is not in the group"):
        broadcast_forest(network_of(fabric), 7)


def test_links_of_very_different_speeds_still_have_a_proved_forest():
    slow, odd = Fraction(1, 1000), Fraction(3, 7)
    links = both_ways([(2, 0, odd), (0, 1, 400), (1, 2, 1000), (1, 0, Fraction(25, 2)), (0, 1, slow), (0, 1, 1)])
    network = network_of(fabric_of(3, 0, links))
    forest = all_reduce_forest(network)
    forest.check()
    assert forest.algbw == all_reduce(network).algbw == odd + 400 + Fraction(25, 2) + slow + 1
