"""D-mod-K and spraying on trees."""

import numpy as np
import pytest

from ropewalk.errors import RouteError
from ropewalk.fabric import FatTree, IdealSwitch, LeafSpine, Torus
from ropewalk.routing import Router, Routes, dmodk, spray


def all_to_all(hosts: int) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.divmod(np.arange(hosts * hosts), hosts)
    return src[src != dst], dst[src != dst]


def flows(routes: Routes) -> np.ndarray:
    routes.check()
    return routes.link_bytes(np.arange(routes.pairs), np.ones(routes.pairs))


def way(router: Router, fabric: object, src: int, dst: int) -> list[str]:
    routes = router(fabric, np.array([src]), np.array([dst]))
    routes.check()
    return [fabric.node_names[node] for node in fabric.link_dst[routes.link]]


def test_dmodk_climbs_by_the_digits_of_the_destination():
    fabric = FatTree(4).build()
    assert way(dmodk, fabric, 0, 1) == ["edge0.0", "h1"]
    assert way(dmodk, fabric, 0, 3) == ["edge0.0", "agg0.1", "edge0.1", "h3"]
    # h14 is host 0 of edge 1 of pod 3: aggregation 0, core 1.
    assert way(dmodk, fabric, 0, 14) == ["edge0.0", "agg0.0", "core0.1", "agg3.0", "edge3.1", "h14"]


def test_dmodk_on_leaf_spine_uses_all_cables():
    fabric = LeafSpine(leafs=2, spines=2, hosts_per_leaf=4, cables=2).build()
    src, dst = np.zeros(4, np.int32), np.arange(4, 8)
    routes = dmodk(fabric, src, dst)
    routes.check()
    assert len(set(routes.link.reshape(4, 4)[:, 1].tolist())) == 4


@pytest.mark.parametrize("tree", [FatTree(2), FatTree(4), FatTree(8), FatTree(6, pods=3)])
def test_dmodk_all_to_all_on_a_fat_tree_is_free_of_collisions(tree):
    load = flows(dmodk(tree.build(), *all_to_all(tree.hosts)))
    hosts, m = tree.hosts, tree.half
    tiers = load.reshape(3, 2 * hosts)
    assert (tiers[0] == hosts - 1).all()
    assert (tiers[1] == hosts - m).all()
    assert (tiers[2] == hosts - m * m).all()


def test_dmodk_all_to_all_on_a_nonblocking_leaf_spine_is_free_of_collisions():
    tree = LeafSpine(leafs=4, spines=2, hosts_per_leaf=4, cables=2)
    load = flows(dmodk(tree.build(), *all_to_all(16)))
    assert (load[:32] == 15).all()
    assert (load[32:] == 12).all()


@pytest.mark.parametrize("tree", [FatTree(4), FatTree(6, pods=3), LeafSpine(3, 2, 2, cables=2)])
def test_spraying_all_to_all_loads_every_link_of_a_tier_alike(tree):
    fabric = tree.build()
    load = flows(spray(fabric, *all_to_all(tree.hosts)))
    tier = np.maximum(fabric.level[fabric.link_src], fabric.level[fabric.link_dst])
    assert np.ptp(load[tier == 1]) == pytest.approx(0, abs=1e-9)
    for level in range(2, tier.max() + 1):
        assert load[tier == level] == pytest.approx(load[tier == level].mean())
        assert 0 < load[tier == level][0] <= tree.hosts - 1


def test_spraying_takes_every_up_down_path_once():
    fabric = FatTree(4).build()
    routes = spray(fabric, np.array([0, 0, 0]), np.array([1, 3, 15]))
    routes.check()
    assert np.diff(routes.path_start).tolist() == [1, 2, 4]
    assert len(np.unique(routes.link[-24:].reshape(4, 6), axis=0)) == 4
    assert routes.share.tolist() == [1.0, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]


def test_spraying_pairs_every_cable_up_with_every_cable_down():
    routes = spray(LeafSpine(leafs=2, spines=3, hosts_per_leaf=1, cables=2).build(), np.array([0]), np.array([1]))
    routes.check()
    assert len(np.unique(routes.link.reshape(12, 4), axis=0)) == 12


def test_a_switch_is_the_smallest_tree():
    fabric = IdealSwitch(4).build()
    for router in (dmodk, spray):
        assert (flows(router(fabric, *all_to_all(4))) == 3).all()


def test_sixteen_thousand_hosts_are_routed_without_a_search():
    fabric = FatTree(40).build()
    host = np.arange(fabric.hosts)
    routes = dmodk(fabric, host, (host + 1) % fabric.hosts)
    routes.check()
    # A ring in host order climbs once per edge switch: 19 of 20 neighbours are on the same one.
    assert (np.count_nonzero(routes.hops == 2), np.count_nonzero(routes.hops == 6)) == (16000 * 19 // 20, 40)


def test_spraying_more_paths_than_memory_holds_is_refused():
    fabric = FatTree(24).build()
    with pytest.raises(RouteError, match="route fewer pairs, or use dmodk"):
        spray(fabric, *all_to_all(fabric.hosts // 4))


@pytest.mark.parametrize("router", [dmodk, spray])
def test_a_torus_is_not_a_tree(router):
    with pytest.raises(RouteError, match=r"needs a tree of switches .*, which torus:4x4 is not"):
        router(Torus((4, 4)).build(), np.array([0]), np.array([1]))
