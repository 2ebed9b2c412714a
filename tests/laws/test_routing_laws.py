"""Laws of routing: whatever the fabric, the router and the pairs, the contract holds and paths are shortest."""

from collections import deque

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ropewalk.fabric import (
    BCube,
    Builder,
    Circulant,
    Dgx,
    Dragonfly,
    Fabric,
    FabricDraft,
    FatTree,
    Hypercube,
    IdealSwitch,
    LeafSpine,
    Mesh,
    RandomRegular,
    Ring,
    Torus,
)
from ropewalk.routing import ROUTERS, Routes, dimension, dmodk, ecmp, murmur, shortest

small = st.integers(1, 4)
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple).filter(lambda shape: np.prod(shape) > 1)


@st.composite
def fat_trees(draw: st.DrawFn) -> FatTree:
    radix = draw(st.sampled_from([2, 4, 6, 8]))
    uplinks = [count for count in range(1, radix // 2 + 1) if radix // 2 % count == 0]
    return FatTree(radix, draw(st.one_of(st.none(), st.integers(2, radix))), draw(st.sampled_from(uplinks)))


leaf_spines = st.builds(LeafSpine, st.integers(2, 4), small, small, cables=st.integers(1, 3))
dgxs = st.sampled_from([Dgx(2, 4), Dgx(3, 2), Dgx(4, 4, spines=2), Dgx(2, 4, rails=2, spines=1)])
builders: st.SearchStrategy[Builder] = st.one_of(
    fat_trees(),
    leaf_spines,
    dgxs,
    st.builds(BCube, st.integers(2, 4), st.integers(1, 3)),
    st.builds(Torus, shapes),
    st.builds(Mesh, shapes),
    st.builds(Ring, st.integers(2, 9)),
    st.builds(Hypercube, st.integers(1, 5)),
    st.builds(IdealSwitch, st.integers(2, 9)),
    st.sampled_from([Dragonfly(3, 2, 2, 1), Dragonfly(5, 2, 1, 2), Circulant(9, (1, 2)), RandomRegular(10, 3, seed=4)]),
)


def some_pairs(draw: st.DrawFn, fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    host = st.integers(0, fabric.hosts - 1)
    pair = st.tuples(host, host).filter(lambda ends: ends[0] != ends[1])
    return tuple(np.array(draw(st.lists(pair, min_size=1, max_size=30)), np.int32).T)


@st.composite
def routed(draw: st.DrawFn) -> tuple[str, int, Fabric, np.ndarray, np.ndarray]:
    fabric = draw(builders).build()
    name = draw(st.sampled_from(ROUTERS.names_for(fabric)))
    return name, draw(st.integers(0, 9)), fabric, *some_pairs(draw, fabric)


@st.composite
def random_fabrics(draw: st.DrawFn) -> Fabric:
    """A tangle: hosts and switches, one-way and parallel links, possibly unconnected."""
    hosts, switches = draw(st.integers(2, 5)), draw(st.integers(0, 4))
    node = st.integers(0, hosts + switches - 1)
    ends = draw(st.lists(st.tuples(node, node).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=24))
    draft = FabricDraft("tangle")
    draft.add_hosts([f"h{number}" for number in range(hosts)])
    draft.add_switches([f"s{number}" for number in range(switches)], level=1)
    src, dst = np.array(ends).T
    draft.add_links(src, dst, 1.0, duplex=draw(st.booleans()))
    return draft.freeze()


def distances(fabric: Fabric, dst: int, relay: bool) -> dict[int, int]:
    """Hops from every node to host `dst`, the plain way; without `relay` no other host forwards."""
    found, queue = {dst: 0}, deque([dst])
    while queue:
        node = queue.popleft()
        if node < fabric.hosts and node != dst and not relay:
            continue
        for link in np.flatnonzero(fabric.link_dst == node):
            before = int(fabric.link_src[link])
            if before not in found:
                found[before] = found[node] + 1
                queue.append(before)
    return found


def hash_of(words: list[int], seed: int) -> int:
    """MurmurHash3 with Python's unbounded integers, byte rotations by division."""

    def rotate(value: int, by: int) -> int:
        return (value * 2**by) % 2**32 + value // 2 ** (32 - by)

    value = seed
    for word in words:
        value ^= rotate(word * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
        value = (rotate(value, 13) * 5 + 0xE6546B64) % 2**32
    value ^= 4 * len(words)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        value = (value ^ value >> shift) * factor % 2**32
    return value


def plain_murmur_walk(fabric: Fabric, src: int, dst: int) -> list[int] | None:
    """The path of `murmur`, node by node; None where there is none."""
    for relay in (False, True):
        to_go = distances(fabric, dst, relay)
        if src in to_go:
            break
    else:
        return None
    address = [0x0B000001 + node * 256 for node in (src, dst)]
    node, path = src, []
    while node != dst:
        nearer = [
            (-int(fabric.link_dst[link]), int(link))
            for link in np.flatnonzero(fabric.link_src == node)
            if to_go.get(int(fabric.link_dst[link])) == to_go[node] - 1
            and (relay or fabric.link_dst[link] >= fabric.hosts or fabric.link_dst[link] == dst)
        ]
        link = sorted(nearer)[hash_of([*address, 10000 + 100 * 65536], node) % len(nearer)][1]
        path.append(link)
        node = int(fabric.link_dst[link])
    return path


def flows(routes: Routes) -> np.ndarray:
    return routes.link_bytes(np.arange(routes.pairs), np.ones(routes.pairs))


def all_to_all(hosts: int) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.divmod(np.arange(hosts * hosts), hosts)
    return src[src != dst], dst[src != dst]


@given(routed())
@settings(max_examples=200, deadline=None)
def test_every_router_keeps_the_contract_for_exactly_the_pairs_asked(world):
    name, seed, fabric, src, dst = world
    routes = ROUTERS[name].make(seed)(fabric, src, dst)
    routes.check()
    assert set(zip(routes.pair_src, routes.pair_dst, strict=True)) == set(zip(src, dst, strict=True))
    assert np.add.reduceat(routes.share, routes.path_start[:-1]) == pytest.approx(np.ones(routes.pairs), abs=1e-12)
    assert (routes.link.dtype, routes.share.dtype) == (np.int32, np.float64)


@given(routed())
@settings(max_examples=200, deadline=None)
def test_every_path_of_every_router_is_shortest(world):
    name, seed, fabric, src, dst = world
    routes = ROUTERS[name].make(seed)(fabric, src, dst)
    least = [
        distances(fabric, int(b), relay=True)[int(a)] for a, b in zip(routes.pair_src, routes.pair_dst, strict=True)
    ]
    assert routes.hops.tolist() == np.array(least)[routes.pair_of_path].tolist()


@given(routed())
@settings(max_examples=100, deadline=None)
def test_no_two_paths_of_a_pair_are_the_same(world):
    name, seed, fabric, src, dst = world
    routes = ROUTERS[name].make(seed)(fabric, src, dst)
    spans = zip(routes.pair_of_path, routes.link_start[:-1], routes.link_start[1:], strict=True)
    assert len({(pair, *routes.link[a:b]) for pair, a, b in spans}) == routes.paths


@given(routed())
@settings(max_examples=100, deadline=None)
def test_routes_do_not_depend_on_the_order_or_repetition_of_pairs(world):
    name, seed, fabric, src, dst = world
    once = ROUTERS[name].make(seed)(fabric, src, dst)
    again = ROUTERS[name].make(seed)(fabric, np.tile(src[::-1], 2), np.tile(dst[::-1], 2))
    assert once.link.tolist() == again.link.tolist()
    assert once.share.tolist() == again.share.tolist()


@given(routed(), st.data())
@settings(max_examples=100, deadline=None)
def test_the_links_of_a_pair_carry_its_bytes_times_its_mean_hops(world, data):
    name, seed, fabric, src, dst = world
    routes = ROUTERS[name].make(seed)(fabric, src, dst)
    size = np.array(data.draw(st.lists(st.integers(1, 1000), min_size=len(src), max_size=len(src))), float)
    row = routes.find(src, dst)
    mean_hops = np.add.reduceat(routes.share * routes.hops, routes.path_start[:-1])
    assert routes.link_bytes(row, size).sum() == pytest.approx((mean_hops[row] * size).sum())
    start, link, share = routes.usage()
    by_usage = np.bincount(link, np.repeat(np.bincount(row, size, routes.pairs), np.diff(start)) * share, fabric.links)
    assert routes.link_bytes(row, size) == pytest.approx(by_usage)


@given(routed())
@settings(max_examples=60, deadline=None)
def test_usage_is_what_adding_up_path_by_path_gives(world):
    name, seed, fabric, src, dst = world
    routes = ROUTERS[name].make(seed)(fabric, src, dst)
    start, link, share = routes.usage()
    for pair in range(routes.pairs):
        plain: dict[int, float] = {}
        for path in range(routes.path_start[pair], routes.path_start[pair + 1]):
            for one in routes.link[routes.link_start[path] : routes.link_start[path + 1]].tolist():
                plain[one] = plain.get(one, 0.0) + float(routes.share[path])
        mine = slice(start[pair], start[pair + 1])
        assert sorted(zip(link[mine].tolist(), share[mine].tolist(), strict=True)) == sorted(plain.items())


@given(random_fabrics())
@settings(max_examples=150, deadline=None)
def test_the_walk_equals_the_plain_walk_on_any_tangle(fabric):
    reachable = 0
    for src, dst in zip(*all_to_all(fabric.hosts), strict=True):
        expected = plain_murmur_walk(fabric, int(src), int(dst))
        if expected is not None:
            routes = murmur()(fabric, np.array([src]), np.array([dst]))
            assert routes.link.tolist() == expected
            reachable += 1
    assume(reachable)


@given(random_fabrics())
@settings(max_examples=100, deadline=None)
def test_among_equals_shortest_takes_the_lowest_links(fabric):
    pairs = [
        (src, dst)
        for src, dst in zip(*all_to_all(fabric.hosts), strict=True)
        if int(src) in distances(fabric, int(dst), relay=True)
    ]
    assume(pairs)
    routes = shortest(fabric, *np.array(pairs).T)
    routes.check()
    for pair in range(routes.pairs):
        src, dst = int(routes.pair_src[pair]), int(routes.pair_dst[pair])
        path = routes.link[routes.link_start[pair] : routes.link_start[pair + 1]].tolist()
        to_go = distances(fabric, dst, relay=False)
        relay = src not in to_go
        to_go = distances(fabric, dst, relay=True) if relay else to_go
        assert len(path) == to_go[src]
        node = src
        for link in path:
            allowed = [
                int(out)
                for out in np.flatnonzero(fabric.link_src == node)
                if to_go.get(int(fabric.link_dst[out])) == to_go[node] - 1
                and (relay or fabric.link_dst[out] >= fabric.hosts or fabric.link_dst[out] == dst)
            ]
            assert link == min(allowed)
            node = int(fabric.link_dst[link])


@given(fat_trees())
@settings(max_examples=20, deadline=None)
def test_dmodk_all_to_all_loads_every_link_of_a_tier_alike(tree):
    load = flows(dmodk(tree.build(), *all_to_all(tree.hosts)))
    uplinks = tree.pod_count * tree.half * tree.uplinks
    hosts, edges, cores = np.split(load, [2 * tree.hosts, 2 * (tree.hosts + uplinks)])
    assert set(hosts) == {tree.hosts - 1}
    assert set(edges) == {(tree.hosts - tree.half) * tree.oversubscription}
    assert set(cores) == {(tree.hosts - tree.half**2) * tree.oversubscription}


@given(st.integers(0, 2**63), st.integers(0, 2**63))
@settings(max_examples=15, deadline=None)
def test_ecmp_is_the_same_for_the_same_seed_and_differs_for_another(seed, other):
    assume(seed != other)
    fabric, pairs = FatTree(8).build(), all_to_all(128)
    first = ecmp(seed)(fabric, *pairs)
    assert (first.link == ecmp(seed)(fabric, *pairs).link).all()
    assert (first.link != ecmp(other)(fabric, *pairs).link).mean() > 0.3


@given(st.integers(0, 2**63), st.sampled_from([4, 6, 8]))
@settings(max_examples=15, deadline=None)
def test_polarised_ecmp_uses_fewer_core_links(seed, radix):
    tree = FatTree(radix)
    fabric, pairs = tree.build(), all_to_all(tree.hosts)
    core_links = slice(4 * tree.hosts, None)
    spread = np.count_nonzero(flows(ecmp(seed)(fabric, *pairs))[core_links])
    polarised = np.count_nonzero(flows(ecmp(seed, polarised=True)(fabric, *pairs))[core_links])
    assert polarised <= 2 * tree.hosts // tree.half < spread


@given(st.integers(3, 8), st.integers(1, 2))
@settings(max_examples=12, deadline=None)
def test_all_to_all_on_a_torus_is_uniform(side, axes):
    torus = Torus((side,) * axes)
    load = flows(dimension()(torus.build(), *all_to_all(torus.hosts))) / torus.hosts
    exact = (side**2 - side % 2) / (8 * side)
    assert load == pytest.approx(np.full(len(load), exact))
