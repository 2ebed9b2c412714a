"""Clusters from options, shapes, presets and files: the fabric they give, and what is refused."""

import numpy as np
import pytest

from ropewalk.errors import ClusterError
from ropewalk.fabric import FatTree, LeafSpine, ServerFabric, ServerGroup
from ropewalk.fabric.checks import require_connected
from ropewalk.fabric.files import read_fabric, write_fabric
from ropewalk.hardware import Cluster, Given, Ports, Servers, as_json, from_json, read_cluster
from ropewalk.routing import router_for

H100 = Servers(4, 8, "h100", 450e9, 8, 50e9)


def made(gpus, device, network=None, **options):
    return read_cluster(given=Given(gpus, device, network=network, **options)).fabric()


def all_pairs(fabric):
    src, dst = np.divmod(np.arange(fabric.hosts**2), fabric.hosts)
    return src[src != dst], dst[src != dst]


def test_family_is_sized_to_the_nics_of_all_servers():
    assert made(16, "h100").builder == ServerFabric(LeafSpine(4, 4, 4, bandwidth=50e9), (ServerGroup(2, 8, 450e9),))
    dgx1 = made(32, "v100", "fat-tree").builder
    assert (dgx1.groups[0].nics, dgx1.network) == (4, FatTree(4, bandwidth=12.5e9))


def test_family_without_that_size_leaves_ports_to_spare():
    fabric = made(24, "a100", "fat-tree")
    assert fabric.builder.network.hosts == 27
    assert sum(name.startswith("spare") for name in fabric.node_names) == 3


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 12])
def test_any_number_of_gpus_has_a_cluster(gpus):
    fabric = made(gpus, "h200")
    assert fabric.hosts == gpus
    require_connected(fabric)


def test_network_with_a_host_per_server_has_one_nic_per_server():
    found = read_cluster(given=Given(128, "a100", network="torus:4x4"))
    assert (found.equal.nics, found.equal.count) == (1, 16)


def test_rails_of_a_family_have_a_leaf_each():
    network = made(32, "h100", rails=True).builder.network
    assert (network.leafs, network.hosts_per_leaf) == (8, 4)


def test_plain_hosts_are_gpus_only_when_asked_for():
    assert made(16, "a100", "torus:4x4", gpus_per_server=1).name == "torus:4x4"
    assert made(16, "a100", "torus:4x4").builder.servers == 2


def test_dgx_is_taken_as_it_is():
    found = read_cluster(given=Given(network="dgx-h100:2", device="h100"))
    assert (found.fabric().name, found.equal.nic_bandwidth) == ("dgx-h100:2", 50e9)
    assert made(16, "a100", "dgx", nvlink_bandwidth=1e9).bandwidth[0] == 1e9
    with pytest.raises(ClusterError, match="dgx-h100:2 has 16 GPUs, not 32: ask for 16 GPUs or for a fabric of 32"):
        made(32, "a100", "dgx-h100:2")


def test_file_with_servers_is_taken_as_it_is_and_one_without_is_the_network(tmp_path):
    write_fabric(
        ServerFabric(LeafSpine(8, 2, 2), (ServerGroup(2, 8, 300e9),), rails=True).build(), tmp_path / "whole.yaml"
    )
    whole = read_cluster(tmp_path / "whole.yaml", Given(device="h100"))
    assert (whole.shape, whole.fabric().server.tolist()) == ("2x8", [0] * 8 + [1] * 8)
    assert read_cluster(given=Given(16, network=str(tmp_path / "whole.yaml"))).fabric().hosts == 16
    write_fabric(LeafSpine(4, 4, 4, bandwidth=7e9).build(), tmp_path / "network.json")
    found = read_cluster("2x8", Given(network=str(tmp_path / "network.json")))
    assert found.equal.nic_bandwidth == 7e9
    fabric = found.fabric()
    assert fabric.builder.network.expression == "leaf-spine:4x4x4"
    router_for(fabric).make(0)(fabric, *all_pairs(fabric)).check()
    assert read_fabric(tmp_path / "network.json").hosts == 16
    with pytest.raises(ClusterError, match="names no servers: give it as the network"):
        read_cluster(tmp_path / "network.json")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: made(0, "h100"), "0 GPUs does not exist"),
        (lambda: made(16, "h100", "leafspine"), "did you mean leaf-spine"),
        (lambda: made(16, "h9000"), "no device 'h9000': did you mean"),
        (lambda: made(16, "cpu"), "gpu cpu .* give the bandwidth"),
        (lambda: made(16, "h100", "torus:3x3"), "has 9 ports, but 2 servers with 8 NICs each need 16"),
        (lambda: made(16, "h100", "switch:16", nics=3), "do not divide evenly over 3 NICs"),
        (lambda: made(16, "h100", "switch:16", nvlink_bandwidth=-1.0), "nvlink_bandwidth is -1"),
        (lambda: made(16, "h100", "switch", nic_bandwidth=0.0), "nic_bandwidth must be above 0, got 0"),
        (lambda: made(16, "h100", "switch", gpus_per_server=0), "gpus_per_server is 0"),
        (lambda: read_cluster("dgx-h1000:4"), "there is no cluster 'dgx-h1000:4': did you mean dgx-h100"),
        (lambda: read_cluster("dgx-h100"), "has no number of servers from 1 to 999999: write it like dgx-h100:16"),
        (lambda: read_cluster("4x"), "cannot be read: write servers x GPUs such as 4x8"),
        (lambda: read_cluster("4x0"), "a server without GPUs"),
        (lambda: read_cluster("9999x9999"), "more than 1048576 GPUs"),
    ],
)
def test_what_cannot_be_wired_is_refused_with_the_remedy(make, text):
    with pytest.raises(Exception, match=text) as refused:
        make()
    assert refused.type.__module__ == "ropewalk.errors"


def test_speeds_that_are_given_make_up_for_a_gpu_of_unknown_servers():
    found = read_cluster(given=Given(16, "cpu", nvlink_bandwidth=1e12, nic_bandwidth=1e11)).equal
    assert (found.nvlink_bandwidth, found.nic_bandwidth) == (1e12, 1e11)


def test_a_preset_is_a_start_whose_speeds_can_be_replaced_but_not_its_gpu():
    assert read_cluster("dgx-h100:2", Given(nic_bandwidth=25e9)).equal.nic_bandwidth == 25e9
    with pytest.raises(ClusterError, match="it has servers of h100 GPUs, but --device is a100"):
        read_cluster("dgx-h100:2", Given(device="a100"))
    assert read_cluster("dgx-h100:2").rails


def test_a_cluster_reads_back_from_its_document():
    for cluster in (
        read_cluster("2x8,1x4", Given(device="a100", latency_s=1e-6, rails=True)),
        Cluster((H100,), failed=("server3", "leaf0-spine1")),
        Cluster((Servers(16, 4, "a100", 300e9, 4, 12.5e9),), Ports(4, duplex=False)),
    ):
        assert from_json(as_json(cluster)) == cluster


def test_what_has_failed_is_not_in_the_fabric():
    whole, left = Cluster((H100,)), Cluster((H100,), failed=("server1", "leaf0-spine1", "gpu2.7"))
    assert (left.gpus, left.server_sizes) == (23, (8, 7, 8))
    fabric = left.fabric()
    assert fabric.hosts == 23
    assert "gpu1.0" not in fabric.node_names
    assert "nvswitch1" not in fabric.node_names
    assert whole.fabric().links - fabric.links == 2 * (8 + 8) + 2 * 2 + 2
    assert fabric.server.tolist() == [0] * 8 + [1] * 7 + [2] * 8
    router_for(fabric).make(0)(fabric, *all_pairs(fabric)).check()


def test_a_failed_server_does_not_forward_for_others():
    ring = Cluster((Servers(4, 2, "a100", 300e9, 1, 25e9),), "ring:4", failed=("server1",)).fabric()
    assert "nic1.0" not in ring.node_names


def test_failed_names_that_do_not_exist_are_refused_with_near_names():
    with pytest.raises(ClusterError, match="there is no server9: similar names: server"):
        Cluster((H100,), failed=("server9",))
    with pytest.raises(ClusterError, match="there is no leaf0-spine99: similar names: leaf0-spine"):
        Cluster((H100,), failed=("leaf0-spine99",)).fabric()
    with pytest.raises(ClusterError, match="every GPU has failed"):
        Cluster((H100,), failed=("server0", "server1", "server2", "server3"))


def test_ports_are_wired_before_they_are_a_fabric():
    ports = Cluster((Servers(16, 4, "a100", 300e9, 4, 12.5e9),), Ports(4))
    assert ports.ports.degree == 4
    with pytest.raises(ClusterError, match="still unwired: plan the wiring with `ropewalk plan`"):
        ports.fabric()
    with pytest.raises(ClusterError, match="so there are no ports to wire"):
        _ = Cluster((H100,)).ports


def test_findings_of_a_cluster_come_together():
    with pytest.raises(ClusterError, match="4 findings") as refused:
        Cluster((Servers(0, 8, "h100", -1.0, 3, 50e9),), latency_s=-1.0)
    assert "give 1, 2, 4 or 8 NICs" in str(refused.value)


def test_servers_of_several_gpus_have_no_one_device():
    with pytest.raises(ClusterError, match="different GPUs"):
        _ = Cluster((H100, Servers(1, 8, "a100", 300e9, 8, 25e9))).device
