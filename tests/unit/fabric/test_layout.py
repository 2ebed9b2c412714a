"""Drawings: finite, distinct, and as people draw them."""

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.fabric import (
    BCube,
    Circulant,
    Dgx,
    Dragonfly,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    RandomRegular,
    Ring,
    ServerFabric,
    ServerGroup,
    Torus,
)
from ropewalk.fabric.layout import DRAWINGS, layout

ALL = [
    FatTree(4),
    FatTree(2),
    FatTree(8, 4),
    LeafSpine(4, 2, 4, cables=2),
    LeafSpine(2, 9, 1),
    BCube(4, 2),
    BCube(3, 3),
    BCube(2, 5),
    BCube(4, 1),
    Torus((4, 4)),
    Torus((3, 3, 3)),
    Torus((2, 3, 2, 3)),
    Torus((7,)),
    Mesh((5,)),
    Mesh((3, 4)),
    Ring(8),
    Ring(2),
    Hypercube(1),
    Hypercube(7),
    Dragonfly(9, 4, 2, 2),
    Dragonfly(2, 1, 1, 1),
    IdealSwitch(64),
    RandomRegular(64, 4),
    Circulant(16, (1, 3, 8)),
    Dgx(2),
    Dgx(4, 8, 4, 2),
    Dgx(1, 3),
    ServerFabric(LeafSpine(4, 4, 4), (ServerGroup(2, 8, 300e9),)),
    ServerFabric(FatTree(4), (ServerGroup(2, 8, 150e9, nics=4), ServerGroup(1, 4, 150e9, nics=2))),
    ServerFabric(Torus((2, 2)), (ServerGroup(3, 2, 150e9, nics=1), ServerGroup(1, 1, 150e9))),
]


def closest(at):
    apart = np.linalg.norm(at[:, None] - at[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return apart.min()


@pytest.mark.parametrize("builder", ALL, ids=lambda b: b.expression)
def test_every_node_has_its_own_place(builder):
    fabric = builder.build()
    at = layout(fabric)
    assert at.shape == (fabric.nodes, 2)
    assert np.isfinite(at).all()
    assert closest(at) > 0.5
    assert (layout(builder.build()) == at).all()


@pytest.mark.parametrize("builder", ALL, ids=lambda b: b.expression)
def test_a_graph_without_a_builder_has_places_too(builder):
    fabric = replace(builder.build(), builder=None)
    at = layout(fabric)
    assert np.isfinite(at).all()
    assert closest(at) > 0.05
    assert (layout(fabric) == at).all()


def test_every_family_has_a_drawing():
    assert {type(builder) for builder in ALL} == set(DRAWINGS)


def test_tree_stands_on_its_hosts_with_switches_centred_over_their_children():
    fabric = FatTree(4).build()
    at = layout(fabric)
    assert (np.diff(at[fabric.level == 0, 0]) > 0).all()
    heights = [set(at[fabric.level == level, 1]) for level in range(4)]
    assert all(len(height) == 1 for height in heights)
    assert sorted(heights, key=min) == heights
    edges = at[fabric.level == 1, 0]
    assert edges == pytest.approx(at[:16, 0].reshape(8, 2).mean(axis=1))
    assert at[fabric.level == 3, 0].mean() == pytest.approx(at[:16, 0].mean())


def test_torus_is_a_grid_and_its_third_axis_makes_slices():
    grid = [[0, 0], [1, 0], [2, 0], [0, -1], [1, -1], [2, -1]]
    assert layout(Mesh((2, 3)).build()).tolist() == grid
    assert np.abs(layout(Torus((2, 3)).build()) - grid).max() < 0.31
    at = layout(Torus((3, 4, 5)).build()).reshape(3, 4, 5, 2)
    assert at[0, ..., 0].max() < at[1, ..., 0].min() < at[1, ..., 0].max() < at[2, ..., 0].min()
    assert np.allclose(at[0, ..., 1] - at[1, ..., 1], 0.4)


def test_link_that_closes_a_row_of_a_torus_does_not_cross_the_hosts_between():
    at = layout(Torus((5, 5)).build()).reshape(5, 5, 2)
    for row in at:
        assert (row[1:-1, 1] > row[0, 1] + 0.1).all()


def test_bcube_switches_stand_at_the_ends_of_their_rows_and_columns():
    cube = BCube(4, 2)
    at = layout(cube.build())
    rows, columns = at[16:20], at[20:24]
    assert (rows[:, 0] == 4).all()
    assert rows[:, 1].tolist() == (at[0:16:4, 1] - 0.5).tolist()
    assert columns[:, 0].tolist() == (at[0:4, 0] - 0.5).tolist()
    assert len(set(columns[:, 1])) == 1


def test_ring_is_a_circle_from_the_top():
    at = layout(Ring(12).build())
    assert np.ptp(np.linalg.norm(at, axis=1)) < 1e-12
    assert at[0, 1] == at[:, 1].max()
    assert at[1, 0] > 0


def test_dgx_server_is_a_box_around_its_nvswitch():
    fabric = Dgx(2).build()
    at = layout(fabric)
    for server in range(2):
        gpus = at[:16][fabric.server == server]
        assert at[16 + server] == pytest.approx(gpus.mean(axis=0))
    assert at[:8, 0].max() < at[8:16, 0].min()
    assert at[18:, 1].min() > at[:16, 1].max()


def test_thousands_of_unknown_nodes_are_drawn_apart():
    at = layout(replace(RandomRegular(4000, 4).build(), builder=None))
    assert len(np.unique(at, axis=0)) == 4000


def test_neighbours_of_an_unknown_ring_are_drawn_near_each_other():
    at = layout(replace(Ring(40).build(), builder=None))
    beside = np.linalg.norm(at - np.roll(at, 1, axis=0), axis=1)
    across = np.linalg.norm(at - np.roll(at, 20, axis=0), axis=1)
    assert across.min() > 3 * beside.max()
