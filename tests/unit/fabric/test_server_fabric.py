"""Servers of GPUs on networks: what is wired to what, and which way traffic takes."""

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.fabric import FatTree, IdealSwitch, LeafSpine, RailSwitches, ServerFabric, ServerGroup, Torus
from ropewalk.fabric.checks import require_connected
from ropewalk.fabric.interconnect import INTERCONNECTS, gpu_in, interconnect
from ropewalk.fabric.server_fabric import filled
from ropewalk.fabric.servers import server_fabric
from ropewalk.routing import ROUTERS, default_router_name, shortest

CLUSTERS = {
    "a NIC for every GPU": ServerFabric(LeafSpine(4, 4, 4), (ServerGroup(2, 8, 300e9),)),
    "rails": ServerFabric(LeafSpine(8, 2, 2), (ServerGroup(2, 8, 300e9),), rails=True),
    "two GPUs to a NIC": ServerFabric(FatTree(4), filled(20, ServerGroup(1, 8, 150e9, nics=4))),
    "rails of shared NICs": ServerFabric(LeafSpine(4, 2, 3), (ServerGroup(3, 8, 150e9, nics=4),), rails=True),
    "one NIC a server on a torus": ServerFabric(Torus((3, 2)), (ServerGroup(6, 2, 150e9, nics=1),)),
    "a torus of NICs, not of GPUs": ServerFabric(Torus((4, 4)), (ServerGroup(4, 4, 150e9),)),
    "the last server half full": ServerFabric(IdealSwitch(24), filled(20, ServerGroup(1, 8, 450e9))),
    "one GPU to a server": ServerFabric(FatTree(4), (ServerGroup(6, 1, 450e9),)),
    "servers of different sizes": ServerFabric(
        FatTree(4), (ServerGroup(1, 8, 450e9), ServerGroup(2, 1, 450e9), ServerGroup(1, 4, 150e9, nics=2))
    ),
    "rail-only": ServerFabric(RailSwitches(4, 3), (ServerGroup(3, 4, 300e9),), rails=True),
    "rail-only with two GPUs to a NIC": ServerFabric(RailSwitches(4, 2), (ServerGroup(2, 8, 9e9, nics=4),), rails=True),
    "rail-only with servers of different sizes": ServerFabric(
        RailSwitches(8, 4), (ServerGroup(2, 8, 450e9), ServerGroup(1, 1, 450e9), ServerGroup(1, 4, 450e9)), rails=True
    ),
    "an oversubscribed fat-tree": ServerFabric(FatTree(8, 2, 2), (ServerGroup(4, 8, 450e9),)),
    "a single server": ServerFabric(LeafSpine(2, 2, 2), (ServerGroup(1, 3, 450e9),)),
}


@pytest.fixture(params=CLUSTERS.values(), ids=CLUSTERS.keys())
def wired(request):
    return request.param.build()


def all_pairs(fabric):
    src, dst = np.divmod(np.arange(fabric.hosts**2), fabric.hosts)
    return src[src != dst], dst[src != dst]


def test_every_router_of_the_network_keeps_to_the_servers(wired):
    require_connected(wired)
    for name in ROUTERS.names_for(wired):
        routes = ROUTERS[name].make(3)(wired, *all_pairs(wired))
        routes.check()
        between = wired.server[routes.pair_src] != wired.server[routes.pair_dst]
        names = np.array(wired.node_names)
        for path in range(routes.paths):
            pair = routes.pair_of_path[path]
            links = routes.link[routes.link_start[path] : routes.link_start[path + 1]]
            passed = wired.link_dst[links[:-1]]
            relays = passed[passed < wired.hosts]
            rail_only = isinstance(wired.builder.network, RailSwitches)
            assert len(relays) <= int(rail_only and between[pair]), "a GPU forwards for others"
            through_nvlink = [node.startswith("nvswitch") for node in names[passed]]
            assert through_nvlink == [True] if not between[pair] else sum(through_nvlink) == len(relays)


def test_shortest_paths_keep_to_the_servers_even_without_the_builder(wired):
    unknown = replace(wired, builder=None)
    routes = shortest(unknown, *all_pairs(unknown))
    inside = wired.server[routes.pair_src] == wired.server[routes.pair_dst]
    first = unknown.link_dst[routes.link[routes.link_start[:-1]]]
    nvswitch = np.array([name.startswith("nvswitch") for name in unknown.node_names])
    assert nvswitch[first][inside].all()
    # Between rails that nothing joins, NVLink comes first; a server with one rail sends on that.
    if not isinstance(wired.builder.network, RailSwitches):
        assert not nvswitch[first][~inside].any()


def test_leaf_spine_keeps_its_router_and_a_torus_its_own():
    assert default_router_name(CLUSTERS["rails"].build()) == "dmodk"
    assert default_router_name(CLUSTERS["one NIC a server on a torus"].build()) == "dimension-rotated"


def test_rails_put_the_same_nic_of_all_servers_on_one_leaf():
    fabric = CLUSTERS["rails"].build()
    leaf = fabric.link_dst[[np.flatnonzero(fabric.link_src == gpu)[1] for gpu in range(16)]]
    assert (leaf[:8] == leaf[8:]).all()
    assert len(set(leaf.tolist())) == 8
    routes = ROUTERS["dmodk"].make(0)(fabric, np.array([0, 0]), np.array([8, 9]))
    assert routes.hops.tolist() == [2, 4]  # the same rail: one leaf; another rail: by its own NIC over a spine


def test_between_rails_that_nothing_joins_traffic_goes_by_nvlink_to_the_rail_of_its_destination():
    fabric = CLUSTERS["rail-only"].build()
    routes = ROUTERS["shortest"].make(0)(fabric, np.array([0, 0]), np.array([4, 6]))
    passed = [
        [fabric.node_names[node] for node in fabric.link_dst[routes.link[slice(*ends)]]]
        for ends in zip(routes.link_start[:-1], routes.link_start[1:], strict=True)
    ]
    assert passed == [["rail0", "gpu1.0"], ["nvswitch0", "gpu0.2", "rail2", "gpu1.2"]]


def test_a_server_without_the_rail_of_the_destination_sends_on_its_own_rail():
    fabric = CLUSTERS["rail-only with servers of different sizes"].build()
    small, large = 16, 7  # the only GPU of its server, and GPU 7 of the first server
    routes = ROUTERS["shortest"].make(0)(fabric, np.array([small]), np.array([large]))
    assert [fabric.node_names[node] for node in fabric.link_dst[routes.link]] == [
        "rail0", "gpu0.0", "nvswitch0", "gpu0.7",
    ]  # fmt: skip


def test_without_rails_servers_fill_leafs_one_after_the_other():
    fabric = CLUSTERS["a NIC for every GPU"].build()
    leaf = fabric.link_dst[[np.flatnonzero(fabric.link_src == gpu)[1] for gpu in range(16)]]
    assert [fabric.node_names[node] for node in leaf[::4]] == ["leaf0", "leaf1", "leaf2", "leaf3"]


def test_gpus_that_share_a_nic_meet_there():
    fabric = CLUSTERS["two GPUs to a NIC"].build()
    routes = ROUTERS["dmodk"].make(0)(fabric, np.arange(4), np.array([8, 8, 8, 8]))
    second = fabric.link_dst[routes.link[routes.link_start[:-1]]]
    assert [fabric.node_names[node] for node in second] == ["nic0.0", "nic0.0", "nic0.1", "nic0.1"]


def test_links_have_the_speed_of_what_they_are():
    fabric = ServerFabric(LeafSpine(2, 2, 2, bandwidth=25e9), (ServerGroup(2, 2, 300e9),)).build()
    assert fabric.bandwidth[:8].tolist() == [300e9] * 8
    assert set(fabric.bandwidth[8:].tolist()) == {25e9}
    assert fabric.server.tolist() == [0, 0, 1, 1]


def test_nics_of_different_speeds_meet_in_one_network():
    groups = (ServerGroup(1, 2, 300e9, nic_bandwidth=50e9), ServerGroup(1, 2, 150e9, nic_bandwidth=25e9))
    fabric = server_fabric("switch:4", groups)
    sent = np.array([fabric.bandwidth[np.flatnonzero(fabric.link_src == gpu)].tolist() for gpu in range(4)])
    assert sent.tolist() == [[300e9, 50e9]] * 2 + [[150e9, 25e9]] * 2
    routes = ROUTERS["dmodk"].make(0)(fabric, *all_pairs(fabric))
    routes.check()


def test_servers_of_different_sizes_take_ports_one_after_the_other():
    groups = (ServerGroup(1, 4, 300e9, nics=2), ServerGroup(2, 2, 300e9))
    made = ServerFabric(IdealSwitch(6), groups)
    assert made.port_of().tolist() == [0, 0, 1, 1, 2, 3, 4, 5]
    assert made.build().server.tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert made.expression == "8 GPUs, servers 1x4 with 2 NICs and 2x2, on switch:6"


def test_rails_of_servers_of_different_sizes_leave_ports_to_spare():
    made = ServerFabric(LeafSpine(4, 2, 2), (ServerGroup(1, 4, 300e9), ServerGroup(1, 2, 300e9)), rails=True)
    assert made.port_of().tolist() == [0, 2, 4, 6, 1, 3]
    assert sum(name.startswith("spare") for name in made.build().node_names) == 2


@pytest.mark.parametrize(
    ("title", "gpu"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA GH200 480GB", None),
        ("", None),
    ],
)
def test_a_driver_s_title_names_the_gpu(title, gpu):
    assert gpu_in(title) == gpu


def test_every_interconnect_says_where_its_numbers_come_from():
    assert all(len(known.source) > 20 for known in INTERCONNECTS.values())
    assert interconnect("H100-SXM5") is INTERCONNECTS["h100"]
