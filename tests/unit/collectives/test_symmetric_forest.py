"""Symmetric forests: one root's trees stand for all, at any size."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ropewalk.collectives.forest import all_gather_forest, all_reduce_forest
from ropewalk.collectives.forest.mixing import mixed_forest
from ropewalk.collectives.forest.symmetric import SymmetricForest, symmetric_forest
from ropewalk.collectives.optimum import all_gather, network_of
from ropewalk.collectives.optimum.gather import largest_ratio
from ropewalk.errors import ProofError
from ropewalk.fabric import BCube, Dgx, FatTree, Hypercube, LeafSpine, Ring, Torus

THOUSAND = [
    (Torus((32, 32)), 32),
    (Torus((16, 8, 8)), 16),
    (Hypercube(10), 10),
    (Dgx(128), 2),
    (LeafSpine(64, 4, 16), 2),
    (FatTree(16), 1),
]


@pytest.mark.parametrize(("builder", "hops"), THOUSAND, ids=lambda value: getattr(value, "expression", value))
def test_forests_of_a_thousand_hosts_reach_the_optimum_and_are_shallow(builder, hops):
    network = network_of(builder.build())
    forest = all_gather_forest(network)
    assert isinstance(forest, SymmetricForest)
    forest.check()
    assert (forest.algbw, forest.depth) == (all_gather(network).algbw, hops)
    assert len(forest.trees) == 1024 * len(forest.first)
    assert forest.trees[-1].root == 1023


def test_an_all_reduce_of_a_thousand_hosts_is_two_symmetric_halves():
    network = network_of(Torus((32, 32)).build())
    forest = all_reduce_forest(network)
    forest.check()
    assert (forest.algbw, forest.depth) == (all_gather(network).algbw / 2, 64)


@pytest.mark.parametrize("builder", [Ring(6), Torus((3, 4)), Dgx(2), BCube(3, 2)], ids=lambda b: b.expression)
def test_written_out_it_is_the_same_forest(builder):
    network = network_of(builder.build())
    forest = mixed_forest(network, 1 / largest_ratio(network).value)
    plain = forest.written_out()
    plain.check()
    assert (plain.algbw, plain.depth, len(plain.trees)) == (forest.algbw, forest.depth, len(forest.trees))
    assert plain.arc_loads() == forest.arc_loads()
    assert plain.root_rates() == forest.root_rates()
    assert [tree.root for tree in forest.trees[-2:]] == [tree.root for tree in plain.trees[-2:]]


def test_a_rate_above_the_optimum_has_no_mix():
    network = network_of(Torus((4, 4)).build())
    assert mixed_forest(network, Fraction(11, 10) / largest_ratio(network).value) is None


def test_a_tampered_symmetric_forest_does_not_pass():
    network = network_of(Torus((3, 3)).build())
    forest = mixed_forest(network, 1 / largest_ratio(network).value)
    with pytest.raises(ProofError, match="more than it can"):
        forest.scaled(Fraction(11, 10)).check()
    first = forest.first[0]
    with pytest.raises(ProofError, match="misses members"):
        symmetric_forest(network, forest.shifts, (replace(first, branches=first.branches[:-1]),)).check()
    uneven = replace(network, capacity=(2, *network.capacity[1:]))
    with pytest.raises(ProofError, match="does not carry"):
        symmetric_forest(uneven, replace(forest.shifts, network=uneven), forest.first).check()
    with pytest.raises(IndexError):
        forest.trees[len(forest.trees)]
