"""Hierarchies: 2(N-1)/N of the buffer per rank whatever the levels, with fewer rounds, and level by level."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives import (
    Process,
    hips,
    hips_bcube,
    hips_fat_tree,
    hips_leaf_spine,
    hips_torus,
    hips_two_levels,
    mesh_inside,
    near_square,
    reverse_ring_inside,
    ring_inside,
    rotated,
)
from ropewalk.errors import ProgramError
from ropewalk.fabric import BCube, FatTree, LeafSpine, Torus


def proved(halves):
    """Prove all three collectives of a hierarchy and the law of its volume; give back the all-reduce."""
    halves.reduce_scatter("reduce-scatter").check()
    halves.all_gather("all-gather").check()
    program = halves.all_reduce("all-reduce")
    program.check()
    assert (program.sent_chunks() * program.ranks == 2 * (program.ranks - 1) * program.chunks).all()
    assert (program.received_chunks() == program.sent_chunks()).all()
    return program


@pytest.mark.parametrize("tree", [FatTree(2), FatTree(4), FatTree(4, 2), FatTree(4, 3), FatTree(6), FatTree(6, 3)])
def test_fat_tree_takes_six_rounds_inside_edge_pod_and_core(tree):
    program = proved(hips_fat_tree(tree))
    levels = [tree.half, tree.half, tree.pod_count]
    assert len(program.rounds) == 2 * sum(size > 1 for size in levels)


def test_fat_tree_sends_its_largest_pieces_below_the_edge_switches():
    program = hips_fat_tree(FatTree(4)).all_reduce("hips")
    edge, pod, core = (step.pattern for step in program.rounds[:3])
    assert (edge.src // 2 == edge.dst // 2).all()
    assert (pod.src // 4 == pod.dst // 4).all()
    assert (pod.src % 2 == pod.dst % 2).all()
    assert (core.src % 4 == core.dst % 4).all()
    assert [int(pattern.chunks[0]) for pattern in (edge, pod, core)] == [8, 4, 1]


@pytest.mark.parametrize("fabric", [LeafSpine(2, 1, 2), LeafSpine(4, 2, 3), LeafSpine(5, 2, 1), LeafSpine(1, 1, 4)])
def test_leaf_spine_takes_two_levels(fabric):
    program = proved(hips_leaf_spine(fabric))
    assert len(program.rounds) == 2 * ((fabric.leafs > 1) + (fabric.hosts_per_leaf > 1))


@pytest.mark.parametrize("ports", [2, 3, 4, 5])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_bcube_uses_every_nic_alike_in_every_round(ports, levels):
    cube = BCube(ports, levels)
    program = proved(hips_bcube(cube))
    assert program.lanes == levels
    assert len(program.rounds) == 2 * levels
    for step in program.rounds:
        pattern = step.pattern
        digits = np.arange(levels)
        differs = cube.digit(pattern.src[:, None], digits) != cube.digit(pattern.dst[:, None], digits)
        assert (differs.sum(axis=1) == 1).all()
        nic = pattern.src * levels + np.argmax(differs, axis=1)
        load = np.bincount(nic, weights=pattern.chunks, minlength=cube.hosts * levels)
        assert (load == load[0]).all()


@pytest.mark.parametrize(
    "shape", [(2,), (5,), (1, 3), (2, 2), (3, 3), (4, 4), (3, 4), (2, 5), (1, 4, 2), (3, 3, 3), (2, 3, 4)]
)
def test_torus_runs_both_ways_around_every_axis(shape):
    program = proved(hips_torus(Torus(shape)))
    sides = [side for side in shape if side > 1]
    assert program.lanes == 2 * len(sides)
    assert len(program.rounds) == 2 * sum(side - 1 for side in sides)
    for pattern in program.patterns:
        here, there = (np.stack(np.unravel_index(ends, shape), axis=1) for ends in (pattern.src, pattern.dst))
        step = (there - here) % np.array(shape)
        assert (np.count_nonzero(step, axis=1) == 1).all()
        assert ((step == 0) | (step == 1) | (step == np.array(shape) - 1)).all()


@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (3, 3, 3)])
def test_torus_with_equal_sides_uses_every_link_alike_in_every_round(shape):
    program = hips_torus(Torus(shape)).all_reduce("hips")
    for pattern in program.patterns:
        pairs, link = np.unique(np.stack([pattern.src, pattern.dst]), axis=1, return_inverse=True)
        load = np.bincount(link, weights=pattern.chunks)
        assert pairs.shape[1] == program.ranks * 2 * len(shape)
        assert (load == load[0]).all()


@pytest.mark.parametrize("inside", [mesh_inside, ring_inside, reverse_ring_inside])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (4, 1, 2), (2, 2, 3)])
def test_any_grid_any_order_and_any_exchange_is_proved(inside, shape):
    grid = np.random.default_rng(1).permutation(int(np.prod(shape))).reshape(shape)
    proved(hips(grid, rotated(len(shape), [inside])))
    proved(hips(grid, [Process(tuple(reversed(range(len(shape)))), inside)]))


@pytest.mark.parametrize("inside", [mesh_inside, ring_inside])
def test_the_all_gather_visits_the_levels_in_exactly_the_reverse_order(inside):
    halves = hips(np.arange(24).reshape(2, 3, 4), [Process((1, 0, 2), inside)])
    level = {4: 1, 8: 1, 12: 0, 1: 2, 2: 2, 3: 2}

    def levels(rounds):
        return [level[int(np.abs(step.pattern.src - step.pattern.dst).min())] for step in rounds]

    assert levels(halves.scatter) == levels(halves.gather)[::-1]
    assert sorted(set(levels(halves.scatter)), key=levels(halves.scatter).index) == [1, 0, 2]


@pytest.mark.parametrize("ranks", [*range(2, 21), 27, 64])
def test_a_near_square_hierarchy_exists_for_every_number_of_ranks(ranks):
    groups, size = near_square(ranks)
    assert groups * size == ranks
    assert groups >= size
    proved(hips_two_levels(groups, size))


def test_bcube_of_256_hosts_is_proved():
    hips_bcube(BCube(16, 2)).all_reduce("hips").check()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: hips([0], [Process((0,), mesh_inside)]), "give at least 2 ranks"),
        (lambda: hips([0, 2], [Process((0,), mesh_inside)]), "on the grid once"),
        (lambda: hips([[0, 1], [2, 3]], [Process((0, 0), mesh_inside)]), "name each level exactly once"),
    ],
)
def test_grids_and_orders_that_are_no_hierarchy_are_refused(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
