"""Routing on trees, computed from the builder's numbering without a search: D-mod-K and packet spraying."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric, FatTree, IdealSwitch, LeafSpine
from ropewalk.routing.fit import misfit, needs_a_tree
from ropewalk.routing.routes import Routes, starts, unique_pairs

MAX_SPRAYED_HOPS = 1 << 28
"""Link entries that sprayed routes may hold: 1 GiB of link ids."""


def dmodk(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
    """D-mod-K: the destination's number alone picks the way up, so no two hosts ever share a way down.

    With m = radix/2, an edge switch with a uplinks (m where the tree does not block) sends to aggregation switch dst
    mod a and that one to its core (dst div a) mod m. A leaf sends to spine dst mod spines over cable (dst div spines)
    mod cables. All-to-all is free of collisions where the hosts of a switch are no more than its uplinks.

    Zahavi, Johnson, Kerbyson and Lang, "Optimized InfiniBand fat-tree routing for shift all-to-all communication
    patterns", 2010.

    >>> from ropewalk.fabric import FatTree
    >>> dmodk(FatTree(4).build(), np.array([0, 1]), np.array([15, 15])).link.reshape(2, 6)[:, -3:]
    array([[95, 63, 31],
           [95, 63, 31]], dtype=int32)
    """
    pair_src, pair_dst = unique_pairs(fabric, src, dst)
    match fabric.builder:
        case FatTree(half=m, uplinks=a) as tree:
            links = _fat_tree_links(tree, pair_src, pair_dst, pair_dst % a, pair_dst // a % m)
        case LeafSpine(spines=spines, cables=cables) as tree:
            cable = pair_dst // spines % cables
            links = _leaf_spine_links(tree, pair_src, pair_dst, pair_dst % spines, cable, cable)
        case IdealSwitch() as switch:
            links = _switch_links(switch, pair_src, pair_dst)
        case _:
            raise misfit("dmodk", needs_a_tree(fabric))
    return _routes(fabric, pair_src, pair_dst, np.ones(len(pair_src), np.int64), links)


def spray(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
    """Packet spraying: every pair uses all its shortest up-down paths in equal shares.

    >>> from ropewalk.fabric import FatTree
    >>> spray(FatTree(4).build(), np.array([0]), np.array([15])).share
    array([0.25, 0.25, 0.25, 0.25])
    """
    pair_src, pair_dst = unique_pairs(fabric, src, dst)
    match fabric.builder:
        case FatTree(half=m, uplinks=a) as tree:
            same_edge, same_pod = pair_src // m == pair_dst // m, pair_src // m**2 == pair_dst // m**2
            count = np.where(same_edge, 1, np.where(same_pod, a, a * m))
            first, last, way = _spread(fabric, pair_src, pair_dst, count)
            inside_pod = first // m**2 == last // m**2
            links = _fat_tree_links(tree, first, last, np.where(inside_pod, way, way // m), way % m)
        case LeafSpine(spines=spines, cables=cables, hosts_per_leaf=below) as tree:
            count = np.where(pair_src // below == pair_dst // below, 1, spines * cables**2)
            first, last, way = _spread(fabric, pair_src, pair_dst, count)
            links = _leaf_spine_links(tree, first, last, way // cables**2, way // cables % cables, way % cables)
        case IdealSwitch() as switch:
            count = np.ones(len(pair_src), np.int64)
            links = _switch_links(switch, pair_src, pair_dst)
        case _:
            raise misfit("spray", needs_a_tree(fabric))
    return _routes(fabric, pair_src, pair_dst, count, links)


def _spread(
    fabric: Fabric, pair_src: NDArray[np.int32], pair_dst: NDArray[np.int32], count: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Source, destination and number within its pair of each path, when pair p has `count[p]` paths."""
    paths = int(count.sum())
    if paths * 6 > MAX_SPRAYED_HOPS:
        raise RouteError(
            f"spraying {len(count)} pairs on {fabric.name} takes {paths} paths, more than fit in memory: "
            "route fewer pairs, or use dmodk, which gives the same link loads for all-to-all"
        )
    way = np.arange(paths) - np.repeat(starts(count)[:-1], count)
    return np.repeat(pair_src, count), np.repeat(pair_dst, count), way


def _fat_tree_links(
    tree: FatTree, src: NDArray[np.int32], dst: NDArray[np.int32], aggregation: ArrayLike, core: ArrayLike
) -> NDArray[np.int64]:
    """Links of each path in travel order, -1 where it is shorter: up to the common switch and down again."""
    m = tree.half
    off_edge, off_pod = src // m != dst // m, src // m**2 != dst // m**2
    columns = [
        tree.host_up(src),
        np.where(off_edge, tree.edge_up(src // m**2, src // m % m, aggregation), -1),
        np.where(off_pod, tree.core_up(src // m**2, aggregation, core), -1),
        np.where(off_pod, tree.core_up(dst // m**2, aggregation, core) + 1, -1),
        np.where(off_edge, tree.edge_up(dst // m**2, dst // m % m, aggregation) + 1, -1),
        tree.host_up(dst) + 1,
    ]
    return np.column_stack(columns)


def _leaf_spine_links(
    tree: LeafSpine,
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    spine: ArrayLike,
    up_cable: ArrayLike,
    down_cable: ArrayLike,
) -> NDArray[np.int64]:
    leaf, far_leaf = src // tree.hosts_per_leaf, dst // tree.hosts_per_leaf
    columns = [
        tree.host_up(src),
        np.where(leaf != far_leaf, tree.leaf_up(leaf, spine, up_cable), -1),
        np.where(leaf != far_leaf, tree.leaf_up(far_leaf, spine, down_cable) + 1, -1),
        tree.host_up(dst) + 1,
    ]
    return np.column_stack(columns)


def _switch_links(switch: IdealSwitch, src: NDArray[np.int32], dst: NDArray[np.int32]) -> NDArray[np.int64]:
    return np.column_stack([switch.host_up(src), switch.host_up(dst) + 1])


def _routes(
    fabric: Fabric,
    pair_src: NDArray[np.int32],
    pair_dst: NDArray[np.int32],
    count: NDArray[np.int64],
    links: NDArray[np.int64],
) -> Routes:
    """Routes from a table of links by path, in which -1 stands for no link; pair p has `count[p]` equal paths."""
    real = links >= 0
    return Routes(
        fabric,
        pair_src,
        pair_dst,
        path_start=starts(count),
        share=np.repeat(1.0 / count, count),
        link_start=starts(real.sum(axis=1)),
        link=links[real].astype(np.int32),
    )
