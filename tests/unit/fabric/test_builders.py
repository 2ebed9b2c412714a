"""Every builder, counted by hand."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from ropewalk.errors import FabricError
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
    Torus,
)
from ropewalk.fabric.checks import facts

B = 12.5e9

# builder, hosts, switches, directed links, ports of a host, ports of a switch, diameter, bisection in links
COUNTED = [
    (FatTree(4), 16, 20, 96, (1, 1), (4, 4), 6, 8),
    (FatTree(4, 2), 8, 12, 48, (1, 1), (2, 4), 6, 4),
    (FatTree(2), 2, 5, 12, (1, 1), (2, 2), 6, 1),
    (FatTree(8, 2, 2), 32, 20, 128, (1, 1), (2, 8), 6, 8),
    (FatTree(4, aggregations=1), 16, 14, 64, (1, 1), (3, 4), 6, 4),
    (LeafSpine(4, 2, 4), 16, 6, 48, (1, 1), (4, 6), 4, 4),
    (LeafSpine(4, 2, 4, cables=2), 16, 6, 64, (1, 1), (8, 8), 4, 8),
    (LeafSpine(3, 1, 3), 9, 4, 24, (1, 1), (3, 4), 4, 2),
    (BCube(4, 2), 16, 8, 64, (2, 2), (4, 4), 4, 8),
    (BCube(2, 3), 8, 12, 48, (3, 3), (2, 2), 6, 4),
    (BCube(6, 2), 36, 12, 144, (2, 2), (6, 6), 4, 16),
    (Torus((4, 4)), 16, 0, 64, (4, 4), None, 4, 8),
    (Torus((3, 3)), 9, 0, 36, (4, 4), None, 2, 8),
    (Torus((2, 4)), 8, 0, 24, (3, 3), None, 3, 4),
    (Torus((3, 1)), 3, 0, 6, (2, 2), None, 1, 2),
    (Torus((4, 4, 4)), 64, 0, 384, (6, 6), None, 6, 32),
    (Mesh((4, 4)), 16, 0, 48, (2, 4), None, 6, 4),
    (Mesh((3, 3)), 9, 0, 24, (2, 4), None, 4, 4),
    (Mesh((5,)), 5, 0, 8, (1, 2), None, 4, 1),
    (Ring(8), 8, 0, 16, (2, 2), None, 4, 2),
    (Ring(2), 2, 0, 2, (1, 1), None, 1, 1),
    (Hypercube(4), 16, 0, 64, (4, 4), None, 4, 8),
    (Dragonfly(9, 4, 2, 2), 72, 36, 2 * (72 + 9 * 6 + 36), (1, 1), (7, 7), 5, None),
    (Dragonfly(3, 2, 1, 1), 6, 6, 2 * (6 + 3 + 3), (1, 1), (3, 3), 5, 2),
    (IdealSwitch(6), 6, 1, 12, (1, 1), (6, 6), 2, 3),
    (RandomRegular(16, 3), 16, 0, 48, (3, 3), None, None, None),
    (RandomRegular(6, 5), 6, 0, 30, (5, 5), None, 1, 9),
    (Circulant(16, (1, 4)), 16, 0, 64, (4, 4), None, 3, 8),
    (Circulant(6, (1, 3)), 6, 0, 18, (3, 3), None, 2, 5),
    (Dgx(2), 16, 10, 64, (2, 2), (2, 8), 4, None),
    (Dgx(4, gpus=4, rails=2, spines=2), 16, 8, 72, (2, 2), (4, 16), 4, None),
]


@pytest.mark.parametrize(("builder", *"hslpqdb"), COUNTED, ids=lambda v: getattr(v, "expression", ""))
def test_builder_has_the_nodes_links_ports_and_distances_counted_by_hand(builder, h, s, l, p, q, d, b):  # noqa: E741
    found = facts(builder.build())
    assert (found.hosts, found.switches, found.links) == (h, s, l)
    assert builder.hosts == h
    assert found.host_ports == p
    assert found.switch_ports == q
    assert found.connected
    assert found.diameter == d or d is None
    assert b is None or found.bisection == b * B


BRUTE = [
    *(Torus(shape) for shape in [(3, 3), (5, 3), (4, 3), (2, 4), (6, 2), (2, 2, 2), (3,), (4, 4), (2, 2, 3), (3, 2)]),
    *(Mesh(shape) for shape in [(3, 3), (5, 3), (4, 3), (2, 2, 3), (5, 2), (2, 2, 2), (7,), (4, 4)]),
    *(Hypercube(3), Ring(7), Circulant(12, (1, 5)), Circulant(10, (2, 5)), RandomRegular(12, 3), RandomRegular(14, 4)),
]


@pytest.mark.parametrize("builder", BRUTE, ids=lambda b: b.expression)
def test_bisection_without_switches_equals_the_narrowest_of_all_halvings(builder):
    fabric = builder.build()
    chosen = np.array(list(combinations(range(fabric.hosts), fabric.hosts // 2)))
    sides = np.zeros((len(chosen), fabric.hosts), bool)
    sides[np.arange(len(chosen))[:, None], chosen] = True
    cut = (sides[:, fabric.link_src] & ~sides[:, fabric.link_dst]).sum(axis=1).min()
    assert facts(fabric).bisection == cut * B


def test_leaf_spine_bisection_cuts_the_cheaper_of_uplinks_and_nics():
    assert LeafSpine(4, 4, 4).bisection() == 8 * B  # non-blocking: half of the NICs
    assert LeafSpine(4, 1, 4).bisection() == 2 * B  # two leafs, one uplink each
    assert LeafSpine(3, 1, 4).bisection() == (1 + 2) * B  # one leaf and two hosts of another
    assert LeafSpine(4, 1, 4, uplink_bandwidth=4 * B).bisection() == 8 * B


def test_fat_tree_wires_core_a_c_to_aggregation_a_of_every_pod():
    tree = FatTree(6)
    fabric, m = tree.build(), 3
    for pod, a, c in [(0, 0, 0), (2, 1, 2), (5, 2, 1)]:
        link = int(tree.core_up(pod, a, c))
        assert fabric.link_name(link) == f"agg{pod}.{a}->core{a}.{c}"
        assert fabric.link_name(link + 1) == f"core{a}.{c}->agg{pod}.{a}"
        assert fabric.link_dst[link] == tree.hosts + 2 * 6 * m + a * m + c
    assert fabric.link_name(int(tree.edge_up(4, 1, 2))) == "edge4.1->agg4.2"
    assert fabric.link_name(int(tree.host_up(17))) == "h17->edge1.2"


def test_leaf_spine_cables_are_parallel_links():
    builder = LeafSpine(3, 2, 2, cables=3)
    fabric = builder.build()
    links = builder.leaf_up(1, 1, np.arange(3))
    assert [fabric.link_name(int(link)) for link in links] == ["leaf1->spine1"] * 3
    assert (fabric.cables == 1).all()
    assert len(set(links.tolist())) == 3


def test_bcube_switch_joins_the_hosts_that_differ_in_one_digit():
    cube = BCube(3, 3)
    fabric = cube.build()
    for level in range(3):
        for host in range(27):
            link = int(cube.up(host, level))
            assert fabric.link_src[link] == host
            assert fabric.link_dst[link] == cube.switch(host, level)
        groups = cube.switch(np.arange(27), level)
        for switch in np.unique(groups):
            members = np.flatnonzero(groups == switch)
            assert np.ptp(members) == 2 * 3**level
            assert sorted(cube.digit(members, level)) == [0, 1, 2]
    assert cube.switch(0 + 2 * 3 + 1 * 9, 1) == 27 + 9 + (0 + 1 * 3)  # digit 1 removed


@pytest.mark.parametrize("shape", [(4, 5), (2, 3), (3, 2, 4), (1, 4), (2, 2)])
def test_torus_link_leads_to_the_neighbour_in_that_direction(shape):
    torus = Torus(shape)
    fabric = torus.build()
    hosts = np.arange(torus.hosts)
    coordinates = np.array(np.unravel_index(hosts, shape))
    for axis in (a for a, side in enumerate(shape) if side > 1):
        for direction in (1, -1):
            link = torus.link(hosts, axis, direction)
            moved = coordinates.copy()
            moved[axis] = (moved[axis] + direction) % shape[axis]
            assert (fabric.link_src[link] == hosts).all()
            assert (fabric.link_dst[link] == np.ravel_multi_index(tuple(moved), shape)).all()


def test_torus_axis_of_size_two_has_one_duplex_link_and_of_size_one_none():
    fabric = Torus((2, 1)).build()
    assert [fabric.link_name(link) for link in range(fabric.links)] == ["h0->h1", "h1->h0"]
    with pytest.raises(FabricError, match="no links along axis 1"):
        Torus((2, 1)).link(0, 1, 1)


def test_mesh_has_no_link_over_the_rim():
    mesh = Mesh((3, 4))
    fabric = mesh.build()
    assert fabric.link_name(int(mesh.link(5, 0, -1))) == "h5->h1"
    assert fabric.link_name(int(mesh.link(5, 1, 1))) == "h5->h6"
    with pytest.raises(FabricError, match="edge"):
        mesh.link(3, 1, 1)


def test_ring_and_hypercube_links_are_found_by_arithmetic():
    ring, cube = Ring(5), Hypercube(4)
    hosts = np.arange(5)
    assert (ring.build().link_dst[ring.link(hosts, 1)] == (hosts + 1) % 5).all()
    assert (ring.build().link_dst[ring.link(hosts, -1)] == (hosts - 1) % 5).all()
    hosts = np.arange(16)
    for bit in range(4):
        link = cube.link(hosts, bit)
        assert (cube.build().link_src[link] == hosts).all()
        assert (cube.build().link_dst[link] == hosts ^ 1 << bit).all()


@pytest.mark.parametrize("builder", [Dragonfly(9, 4, 2, 2), Dragonfly(4, 4, 1, 2), Dragonfly(2, 3, 1, 2)])
def test_dragonfly_joins_every_pair_of_groups_by_the_same_number_of_links(builder):
    fabric = builder.build()
    group = (np.arange(fabric.nodes) - builder.hosts) // builder.routers
    between = (fabric.link_src >= builder.hosts) & (fabric.link_dst >= builder.hosts)
    pairs = np.zeros((builder.groups, builder.groups), int)
    np.add.at(pairs, (group[fabric.link_src[between]], group[fabric.link_dst[between]]), 1)
    off_diagonal = ~np.eye(builder.groups, dtype=bool)
    assert (pairs[off_diagonal] == builder.links_per_pair).all()
    assert builder.links_per_pair >= 1
    ports = np.bincount(fabric.link_src, minlength=fabric.nodes)[builder.hosts :]
    assert ports.max() <= builder.hosts_per_router + builder.routers - 1 + builder.global_links


@pytest.mark.parametrize(("hosts", "degree"), [(64, 4), (5, 2), (9, 2), (8, 3), (16, 13), (7, 6), (200, 3), (2, 1)])
def test_random_regular_is_simple_connected_and_the_same_for_a_seed(hosts, degree):
    for seed in range(5):
        fabric = RandomRegular(hosts, degree, seed).build()
        ends = set(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True))
        assert len(ends) == fabric.links == hosts * degree
        assert all(a != b for a, b in ends)
        assert (np.bincount(fabric.link_src) == degree).all()
        assert facts(fabric).connected
        again = RandomRegular(hosts, degree, seed).build()
        assert (again.link_dst == fabric.link_dst).all()
    if (hosts, degree) == (64, 4):
        other = RandomRegular(64, 4, seed=1).build().link_dst
        assert (other != RandomRegular(64, 4, seed=2).build().link_dst).any()


def test_random_regular_wiring_is_pinned():
    fabric = RandomRegular(8, 3, seed=1).build()
    pairs = list(zip(fabric.link_src[::2].tolist(), fabric.link_dst[::2].tolist(), strict=True))
    assert pairs == [(0, 3), (0, 6), (0, 7), (1, 2), (1, 4), (1, 5), (2, 4), (2, 6), (3, 4), (3, 5), (5, 7), (6, 7)]


def test_circulant_half_stride_pairs_hosts_up():
    fabric = Circulant(4, (1, 2)).build()
    assert [fabric.link_name(link) for link in range(8, 12)] == ["h0->h2", "h2->h0", "h1->h3", "h3->h1"]


def test_dgx_hosts_are_gpus_with_nvlink_inside_and_a_nic_to_their_rail():
    fabric = Dgx(2, spines=1).build()
    assert fabric.server is not None
    assert fabric.server.tolist() == [0] * 8 + [1] * 8
    names = {fabric.link_name(link): link for link in range(fabric.links)}
    assert fabric.bandwidth[names["gpu1.3->nvswitch1"]] == 300e9
    assert fabric.bandwidth[names["gpu1.3->rail3"]] == 25e9
    assert fabric.bandwidth[names["rail3->spine0"]] == 2 * 25e9
    assert fabric.cables[names["rail3->spine0"]] == 2


def test_bandwidth_and_latency_reach_every_link():
    for builder in (row[0] for row in COUNTED if not isinstance(row[0], Dgx)):
        fabric = dataclasses.replace(builder, bandwidth=5e9, latency=1e-6).build()
        assert (fabric.bandwidth == 5e9).all()
        assert (fabric.latency == 1e-6).all()


@pytest.mark.parametrize("builder", [FatTree(40), BCube(128, 2), Torus((128, 128)), RandomRegular(16384, 4)])
def test_sixteen_thousand_hosts_are_built(builder):
    fabric = builder.build()
    assert fabric.hosts >= 16000
    assert len(set(fabric.node_names)) == fabric.nodes


BAD = [
    (lambda: FatTree(5), "radix is 5.*even radix such as 6"),
    (lambda: FatTree(0), "radix is 0: give 2 or more"),
    (lambda: FatTree(4, 5), "pods is 5.*reaches 4 pods"),
    (lambda: FatTree(4, 1), "pods is 1"),
    (lambda: FatTree(4.0), "radix is 4.0: give a whole number"),
    (lambda: FatTree(True), "radix is True"),
    (lambda: FatTree(4, bandwidth=0.0), "bandwidth is 0.0 bytes/s: give a positive"),
    (lambda: FatTree(4, bandwidth=float("nan")), "bandwidth is nan"),
    (lambda: FatTree(4, latency=-1.0), "latency is -1.0 s"),
    (lambda: LeafSpine(0, 1, 1), "leafs is 0"),
    (lambda: LeafSpine(1, 1, 1), "one host"),
    (lambda: LeafSpine(2, 2, 2, uplink_bandwidth=-1.0), "uplink_bandwidth is -1.0"),
    (lambda: BCube(1, 2), "ports is 1"),
    (lambda: BCube(4, 0), "levels is 0"),
    (lambda: BCube(2, 99), "levels is 99: give 22 or fewer"),
    (lambda: Torus(()), "shape is empty"),
    (lambda: Torus((4, 0)), "axis 1 is 0"),
    (lambda: Torus((1, 1)), "one host"),
    (lambda: Torus((4, 2.5)), "shape holds 2.5"),
    (lambda: Mesh((0,)), "axis 0 is 0"),
    (lambda: Ring(1), "hosts is 1"),
    (lambda: Hypercube(0), "dimensions is 0"),
    (lambda: Hypercube(60), "dimensions is 60"),
    (lambda: Dragonfly(10, 4, 2, 2), "10 groups need 9 global links per group: give at most 9 groups"),
    (lambda: Dragonfly(1, 4, 2, 2), "groups is 1"),
    (lambda: IdealSwitch(1), "hosts is 1"),
    (lambda: RandomRegular(4, 4), "give at most 3"),
    (lambda: RandomRegular(5, 3), "odd number of cable ends"),
    (lambda: RandomRegular(6, 1), "degree 1 does not connect"),
    (lambda: RandomRegular(6, 3, -1), "seed is -1"),
    (lambda: Circulant(8, ()), "no strides"),
    (lambda: Circulant(8, (1, 5)), "stride 5 is outside 1 … 4 .*: give 3"),
    (lambda: Circulant(8, (1, 1)), "repeat"),
    (lambda: Circulant(8, (2, 4)), "share the factor 2"),
    (lambda: FatTree(8, 4, 3), "4 hosts of an edge switch do not divide evenly over 3 aggregation switches: give a"),
    (lambda: FatTree(8, 4, 0), "aggregations is 0"),
    (lambda: Dgx(0), "servers is 0"),
    (lambda: Dgx(1, gpus=1), "one GPU"),
    (lambda: Dgx(2, rails=3), "8 GPUs do not divide evenly over 3 rails"),
    (lambda: Dgx(2, spines=3), "2 NICs of a rail do not divide evenly over 3 spines"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_impossible_parameters_are_refused_with_a_remedy(make, message):
    with pytest.raises(FabricError, match=message):
        make()


def test_all_wrong_parameters_are_reported_at_once():
    with pytest.raises(FabricError) as refused:
        LeafSpine(0, 0, 0, bandwidth=-1.0, latency=-1.0)
    assert "6 findings" in str(refused.value)  # three counts, two bandwidths, one latency


def test_equal_fabrics_have_equal_records():
    assert FatTree(4, 4) == FatTree(4, aggregations=2) == FatTree(4)
    assert Dgx(2, rails=8) == Dgx(2)
    assert Torus([4, np.int64(4)]) == Torus((4, 4))
