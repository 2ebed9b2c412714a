"""Links that can never be the bottleneck, found by hand."""

import numpy as np
import pytest

from ropewalk.fabric import FatTree
from ropewalk.routing import dmodk
from ropewalk.sim.flow.dominated import dominated_links


def dominated(routes, capacity, weight=None):
    start = np.cumsum([0, *map(len, routes)])
    link = np.concatenate(routes).astype(np.int32)
    weight = np.ones(len(link)) if weight is None else np.array(weight)
    return np.flatnonzero(dominated_links(start, link, weight, np.array(capacity, float))).tolist()


@pytest.mark.parametrize(
    ("routes", "capacity", "found"),
    [
        ([[0, 1]], [1, 2], [1]),
        ([[0, 1]], [2, 1], [0]),
        ([[0, 1]], [1, 1], [1]),
        ([[0, 1], [1]], [1, 1], [0]),
        ([[0, 2], [1, 2]], [1, 1, 1], [0, 1]),
        ([[0, 2], [1, 2]], [1, 1, 2], []),
        ([[0, 1, 2]], [1, 1, 1], [1, 2]),
        ([[0, 1], [1, 2]], [3, 3, 3], [0, 2]),
        ([[0, 1], [0, 2]], [1, 5, 5], [1, 2]),
    ],
)
def test_a_link_is_dominated_when_all_its_flows_are_held_elsewhere(routes, capacity, found):
    assert dominated(routes, capacity) == found


def test_half_of_a_flow_makes_a_link_half_as_tight():
    assert dominated([[0, 1]], [1, 1], [0.5, 1.0]) == [0]


def test_the_way_down_a_fat_tree_is_dominated_by_d_mod_k():
    fabric = FatTree(4).build()
    src, dst = np.nonzero(~np.eye(16, dtype=bool))
    routes = dmodk(fabric, src.astype(np.int32), dst.astype(np.int32))
    start, link, share = routes.usage()
    found = dominated_links(start, link, share, fabric.bandwidth)
    down = (fabric.level[fabric.link_src] > fabric.level[fabric.link_dst]) & (fabric.link_dst >= 16)
    assert down.sum() == 32
    assert found[down].all()
    assert not found[fabric.link_dst < 16].any()
