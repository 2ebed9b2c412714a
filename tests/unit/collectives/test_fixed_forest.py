"""Forests with a fixed number of trees: all of one weight, one way for each branch."""

from __future__ import annotations

from fractions import Fraction

import pytest
from optimum_worlds import fabric_of

from ropewalk.collectives.forest.fixed import fixed_forest
from ropewalk.collectives.optimum import all_gather, network_of
from ropewalk.errors import ProgramError
from ropewalk.fabric import Dgx, LeafSpine, Ring, Torus


def test_one_tree_for_each_root_of_an_odd_ring_loses_nothing():
    network = network_of(Ring(5).build())
    assert fixed_forest(network, 1, "allgather").algbw == all_gather(network).algbw


def test_one_tree_for_each_root_of_an_even_ring_loses_an_eighth():
    """Eight hosts receive seven shards over two links: four over one of them, where three and a half would do."""
    network = network_of(Ring(8).build())
    assert fixed_forest(network, 1, "allgather").algbw == all_gather(network).algbw * Fraction(7, 8)
    assert fixed_forest(network, 2, "allgather").algbw == all_gather(network).algbw


@pytest.mark.parametrize("kind", ["allgather", "reducescatter", "allreduce"])
def test_trees_have_one_weight_and_branches_one_way(kind):
    forest = fixed_forest(network_of(LeafSpine(2, 2, 4).build()), 3, kind)
    forest.check()
    halves = [forest.reducing, forest.spreading] if kind == "allreduce" else [forest]
    for half in halves:
        assert len(half.trees) == 3 * 8
        assert len({tree.rate for tree in half.trees}) == 1
        assert {len(branch.ways) for tree in half.trees for branch in tree.branches} == {1}


def test_an_all_reduce_is_half_as_fast_as_its_halves():
    network = network_of(Dgx(2).build())
    assert fixed_forest(network, 7, "allreduce").algbw * 2 == fixed_forest(network, 7, "allgather").algbw


def test_larger_shards_get_more_trees():
    forest = fixed_forest(network_of(Torus((3, 3)).build(), shards=[2, 1, 1, 1, 1, 1, 1, 1, 0]), 2, "allgather")
    forest.check()
    assert [sum(tree.root == host for tree in forest.trees) for host in (0, 1, 8)] == [4, 2, 0]


def test_what_cannot_be_fixed_is_refused():
    network = network_of(Ring(4).build())
    with pytest.raises(ProgramError, match="broadcast has no fixed number of trees per root: give one of"):
        fixed_forest(network, 1, "broadcast")
    with pytest.raises(ProgramError, match="give at least 1"):
        fixed_forest(network, 0, "allgather")
    links = [(0, 2, Fraction(3)), (2, 0, Fraction(2)), (1, 2, Fraction(1)), (2, 1, Fraction(3))]
    with pytest.raises(ProgramError, match="equal bandwidth in both directions"):
        fixed_forest(network_of(fabric_of(2, 1, links)), 1, "allgather")
