"""Servers of GPUs on networks: what is wired to what, and which way traffic takes."""

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import FabricError
from ropewalk.fabric import Cluster, FatTree, IdealSwitch, LeafSpine, Torus
from ropewalk.fabric.checks import require_connected
from ropewalk.fabric.files import read_fabric, write_fabric
from ropewalk.fabric.interconnect import INTERCONNECTS, gpu_in, interconnect
from ropewalk.fabric.servers import cluster
from ropewalk.routing import ROUTERS, default_router_name, router_for, shortest

CLUSTERS = {
    "a NIC for every GPU": Cluster(LeafSpine(4, 4, 4), 16, 300e9),
    "rails": Cluster(LeafSpine(8, 2, 2), 16, 300e9, rails=True),
    "two GPUs to a NIC": Cluster(FatTree(4), 20, 150e9, nics_per_server=4),
    "rails of shared NICs": Cluster(LeafSpine(4, 2, 3), 24, 150e9, nics_per_server=4, rails=True),
    "one NIC a server on a torus": Cluster(Torus((3, 2)), 12, 150e9, gpus_per_server=2, nics_per_server=1),
    "a torus of NICs, not of GPUs": Cluster(Torus((4, 4)), 16, 150e9, gpus_per_server=4),
    "the last server half full": Cluster(IdealSwitch(24), 20, 450e9),
    "one GPU to a server": Cluster(FatTree(4), 6, 450e9, gpus_per_server=1),
    "a single server": Cluster(LeafSpine(2, 2, 2), 3, 450e9, gpus_per_server=4),
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
            assert (passed >= wired.hosts).all(), "a GPU forwards for others"
            through_nvlink = [node.startswith("nvswitch") for node in names[passed]]
            assert through_nvlink == [True] if not between[pair] else not any(through_nvlink)


def test_shortest_paths_keep_to_the_servers_even_without_the_builder(wired):
    unknown = replace(wired, builder=None)
    routes = shortest(unknown, *all_pairs(unknown))
    inside = wired.server[routes.pair_src] == wired.server[routes.pair_dst]
    first = unknown.link_dst[routes.link[routes.link_start[:-1]]]
    nvswitch = np.array([name.startswith("nvswitch") for name in unknown.node_names])
    assert (nvswitch[first] == inside).all()


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
    fabric = Cluster(LeafSpine(2, 2, 2, bandwidth=25e9), 4, 300e9, gpus_per_server=2).build()
    assert fabric.bandwidth[:8].tolist() == [300e9] * 8
    assert set(fabric.bandwidth[8:].tolist()) == {25e9}
    assert fabric.server.tolist() == [0, 0, 1, 1]


def test_family_is_sized_to_the_nics_of_all_servers():
    fabric = cluster("leaf-spine", 16, gpu="h100")
    assert fabric.builder == Cluster(LeafSpine(4, 4, 4, bandwidth=50e9), 16, 450e9)
    dgx1 = cluster("fat-tree", 32, gpu="v100").builder
    assert (dgx1.nics, dgx1.network) == (4, FatTree(4, bandwidth=12.5e9))


def test_family_without_that_size_leaves_ports_to_spare():
    fabric = cluster("fat-tree", 24, gpu="a100")
    assert fabric.builder.network.hosts == 27
    assert sum(name.startswith("spare") for name in fabric.node_names) == 3


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 12])
def test_any_number_of_gpus_has_a_cluster(gpus):
    fabric = cluster("leaf-spine", gpus, gpu="h200")
    assert fabric.hosts == gpus
    require_connected(fabric)


def test_network_with_a_host_a_server_has_one_nic_a_server():
    made = cluster("torus:4x4", 128, gpu="a100").builder
    assert (made.nics, made.servers) == (1, 16)


def test_rails_of_a_family_have_a_leaf_each():
    made = cluster("leaf-spine", 32, gpu="h100", rails=True).builder
    assert (made.network.leafs, made.network.hosts_per_leaf) == (8, 4)


def test_plain_hosts_are_gpus_only_when_asked_for():
    assert cluster("torus:4x4", 16, gpu="a100", gpus_per_server=1).name == "torus:4x4"
    assert cluster("torus:4x4", 16, gpu="a100").builder.servers == 2


def test_dgx_is_taken_as_it_is():
    fabric = cluster("dgx-h100:2", 16, gpu="a100")
    assert fabric.name == "dgx-h100:2"
    assert cluster("dgx", 16, gpu="a100", nvlink_bandwidth=1e9).bandwidth[0] == 1e9
    with pytest.raises(FabricError, match="dgx-h100:2 has 16 GPUs, not 32: ask for 16 GPUs or for a fabric of 32"):
        cluster("dgx-h100:2", 32, gpu="a100")


def test_file_with_servers_is_taken_as_it_is_and_one_without_is_the_network(tmp_path):
    write_fabric(CLUSTERS["rails"].build(), tmp_path / "whole.yaml")
    whole = cluster(tmp_path / "whole.yaml", 16, gpu="h100")
    assert whole.server.tolist() == [0] * 8 + [1] * 8
    write_fabric(LeafSpine(4, 4, 4).build(), tmp_path / "network.json")
    made = cluster(tmp_path / "network.json", 16, gpu="h100")
    assert made.builder.network.expression == "leaf-spine:4x4x4"
    router_for(made).make(0)(made, *all_pairs(made)).check()
    assert read_fabric(tmp_path / "network.json").hosts == 16


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: cluster("leaf-spine", 0, gpu="h100"), "0 GPUs does not exist"),
        (lambda: cluster("leafspine", 16, gpu="h100"), "did you mean leaf-spine"),
        (lambda: cluster("leaf-spine", 16, gpu="h9000"), "gpu h9000 .* give the bandwidth"),
        (lambda: cluster("torus:3x3", 16, gpu="h100"), "has 9 ports, but 2 servers with 8 NICs each need 16"),
        (lambda: cluster("switch:16", 16, gpu="h100", nics_per_server=3), "do not spread evenly over 3 NICs"),
        (lambda: cluster("switch:16", 16, gpu="h100", nvlink_bandwidth=0.0), "nvlink_bandwidth is 0"),
        (lambda: cluster("switch", 16, gpu="h100", bandwidth=0.0), "bandwidth is 0"),
        (lambda: cluster("switch", 16, gpu="h100", gpus_per_server=0), "gpus_per_server is 0"),
    ],
)
def test_what_cannot_be_wired_is_refused_with_the_remedy(make, text):
    with pytest.raises(FabricError, match=text):
        make()


def test_speeds_that_are_given_make_up_for_an_unknown_gpu():
    made = cluster("switch:16", 16, gpu="h9000", nvlink_bandwidth=1e12, bandwidth=1e11).builder
    assert (made.nvlink_bandwidth, made.bandwidth) == (1e12, 1e11)


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
