"""Per-flow ECMP: the hash, its seeds, and what collisions do to an all-to-all."""

import numpy as np
import pytest

from ropewalk.fabric import FatTree, LeafSpine
from ropewalk.routing import Routes, ecmp, murmur
from ropewalk.routing._walk import murmur3

TREE = FatTree(8)
FABRIC = TREE.build()


def all_to_all(hosts: int) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.divmod(np.arange(hosts * hosts), hosts)
    return src[src != dst], dst[src != dst]


def flows(routes: Routes) -> np.ndarray:
    return routes.link_bytes(np.arange(routes.pairs), np.ones(routes.pairs))


# Published values of MurmurHash3_x86_32 for keys of one word.
@pytest.mark.parametrize(
    ("word", "seed", "value"),
    [
        (0xFFFFFFFF, 0, 0x76293B50),
        (0x87654321, 0, 0xF55B516B),
        (0x87654321, 0x5082EDEE, 0x2362F9DE),
        (0, 0, 0x2362F9DE),
    ],
)
def test_the_hash_is_murmur3(word, seed, value):
    assert murmur3(np.array([word], np.uint32), seed) == value


def test_one_seed_gives_one_set_of_paths():
    pairs = all_to_all(128)
    assert (ecmp(seed=3)(FABRIC, *pairs).link == ecmp(seed=3)(FABRIC, *pairs).link).all()


def test_a_path_does_not_depend_on_what_else_is_routed():
    src, dst = all_to_all(128)
    routes = ecmp(seed=3)(FABRIC, src, dst)
    alone = ecmp(seed=3)(FABRIC, src[5000:5001], dst[5000:5001])
    assert alone.link.tolist() == routes.link[routes.link_start[5000] : routes.link_start[5001]].tolist()
    assert len(alone.link) == 6


def test_another_seed_or_port_gives_other_paths():
    pairs = all_to_all(128)
    links = [router(FABRIC, *pairs).link for router in (ecmp(0), ecmp(1), ecmp(-1), ecmp(0, port=7))]
    for one in range(4):
        for other in range(one):
            assert (links[one] != links[other]).mean() > 0.3


def test_flows_spread_over_all_links_with_a_seed_per_switch():
    load = flows(ecmp()(FABRIC, *all_to_all(128)))
    assert load.min() > 0
    assert 127 < load.max() < 180  # 127 on the host links; the hottest of 256 hashed links is well above


def test_polarised_flows_leave_all_but_one_in_m_core_links_idle():
    pairs = all_to_all(128)
    core_links = TREE.core_up(np.arange(8)[:, None, None], np.arange(4)[:, None], np.arange(4)).ravel()
    spread = flows(ecmp(seed=5)(FABRIC, *pairs))[core_links]
    polarised = flows(ecmp(seed=5, polarised=True)(FABRIC, *pairs))[core_links]
    assert ((spread > 0).sum(), (polarised > 0).sum()) == (128, 32)
    assert polarised.sum() == spread.sum()


def test_parallel_cables_are_separate_next_hops():
    fabric = LeafSpine(leafs=2, spines=1, hosts_per_leaf=16, cables=4).build()
    src, dst = np.divmod(np.arange(256), 16)
    load = flows(ecmp()(fabric, src, dst + 16))
    up = load[2 * fabric.hosts :: 2][:4]
    assert up.sum() == 256
    assert up.min() > 40


def test_murmur_reproduces_the_hottest_link_of_the_packet_simulator():
    # Reference runs of the HPCC fork of ns-3 on a fat-tree of radix 8: 159 of the 16,256 flows share a link.
    routes = murmur()(FABRIC, *all_to_all(128))
    routes.check()
    assert flows(routes).max() == 159


def test_murmur_reproduces_the_bottleneck_of_heterogeneous_flows():
    # Reference: 32.9862 ms at 5 GB/s, which is what the link with most bytes needs.
    src, dst = all_to_all(128)
    routes = murmur()(FABRIC, src, dst)
    size = 1e6 * (0.5 + (7919 * src + 104729 * dst) % 1000 / 1000)
    assert routes.link_bytes(routes.find(src, dst), size).max() / 5e9 == pytest.approx(32.9862e-3, abs=5e-8)


def test_another_destination_port_is_another_realisation():
    pairs = all_to_all(128)
    assert (murmur(100)(FABRIC, *pairs).link != murmur(101)(FABRIC, *pairs).link).mean() > 0.3


def test_murmur_lists_next_hops_from_the_last_node_to_the_first():
    # One tier of choice, so the pick at the leaf can be worked out by hand.
    fabric = LeafSpine(leafs=2, spines=3, hosts_per_leaf=1).build()
    leaf, spines = 2, (4, 5, 6)
    words = np.array([0x0B000001, 0x0B000101, 10000 | 100 << 16], np.uint32)
    expected = spines[::-1][murmur3(words, leaf) % 3]
    routes = murmur()(fabric, np.array([0]), np.array([1]))
    assert fabric.link_dst[routes.link].tolist() == [leaf, expected, 3, 1]
