"""The same servers on other networks, by name."""

import numpy as np
import pytest

from ropewalk.errors import ClusterError
from ropewalk.fabric import FatTree, LeafSpine, RailSwitches, ServerFabric, Torus
from ropewalk.fabric.checks import require_connected
from ropewalk.fabric.files import write_fabric
from ropewalk.hardware import NETWORKS, Cluster, Given, Ports, Servers, as_json, from_json, on_network, read_cluster
from ropewalk.routing import router_for

POD = read_cluster("dgx-h100:4")


def outside(name, cluster=POD):
    """The network between the servers."""
    made = on_network(cluster, name).fabric().builder
    assert isinstance(made, ServerFabric)
    return made.network


def bandwidth_of_a_server(cluster):
    """Bytes/s that leave a server."""
    fabric = cluster.fabric()
    home = np.full(fabric.nodes, -1)
    home[: fabric.hosts] = fabric.server
    for node, name in enumerate(fabric.node_names):
        if name.startswith(("nvswitch", "nic")):
            home[node] = int(name.removeprefix("nvswitch").removeprefix("nic").partition(".")[0])
    leaving = (home[fabric.link_src] == 0) & (home[fabric.link_dst] != 0)
    return fabric.bandwidth[leaving].sum()


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ("wire", "random-regular", "circulant")])
def test_every_network_joins_and_routes_the_same_servers_with_the_same_bandwidth(name):
    cluster = on_network(POD, name)
    fabric = cluster.fabric()
    require_connected(fabric)
    assert fabric.server.tolist() == np.repeat(np.arange(4), 8).tolist()
    assert bandwidth_of_a_server(cluster) == pytest.approx(8 * 50e9)
    src, dst = np.divmod(np.arange(32**2), 32)
    router_for(fabric).make(0)(fabric, src[src != dst], dst[src != dst]).check()
    assert from_json(as_json(cluster)) == cluster


def test_a_ratio_behind_the_colon_leaves_out_uplinks():
    assert outside("leaf-spine:2to1") == LeafSpine(8, 2, 4, bandwidth=50e9)
    assert outside("rails:2to1") == LeafSpine(8, 2, 4, bandwidth=50e9)
    assert outside("fat-tree:2to1") == FatTree(8, 2, 2, bandwidth=50e9)
    assert not on_network(POD, "leaf-spine:2to1").rails
    assert on_network(POD, "rails:2to1").rails


def test_rail_only_has_a_switch_per_nic_number_and_nothing_between_them():
    assert outside("rail-only") == RailSwitches(8, 4, bandwidth=50e9)


def test_servers_are_the_hosts_of_a_torus_with_all_their_nics():
    found = on_network(read_cluster("dgx-h100:16"), "torus")
    assert found.fabric().builder.network == Torus((4, 4), bandwidth=2 * 50e9)


def test_ports_to_be_wired_are_the_nics_unless_written():
    assert on_network(POD, "wire").network == Ports(8)
    assert on_network(POD, "wire").equal == POD.equal
    other = on_network(POD, "wire:4x100Gbps")
    assert (other.ports.degree, other.equal.nics, other.equal.nic_bandwidth) == (4, 4, 12.5e9)
    back = on_network(other, "leaf-spine")
    assert back.fabric().hosts == 32


def test_its_own_network_and_a_file_are_networks_too(tmp_path):
    assert on_network(POD, "own") is POD
    write_fabric(LeafSpine(2, 2, 16, bandwidth=50e9).build(), tmp_path / "two.yaml")
    assert outside(str(tmp_path / "two.yaml")).hosts == 32


def test_options_mean_the_same_network():
    for name in ("rails", "rails:2to1", "leaf-spine:2to1", "rail-only"):
        assert read_cluster("dgx-h100:4", Given(network=name)) == on_network(POD, name)
    assert read_cluster("dgx-h100:4").rails
    assert not read_cluster("dgx-h100:4", Given(network="leaf-spine")).rails
    with pytest.raises(ClusterError, match="rails:2to1 is a rail network, but rails are off"):
        read_cluster("dgx-h100:4", Given(network="rails:2to1", rails=False))


@pytest.mark.parametrize(
    ("name", "cluster", "message"),
    [
        ("leafspine", POD, "no network 'leafspine': did you mean leaf-spine"),
        (
            "leaf-spine:2x2x2",
            POD,
            "has 4 ports, but 4 servers with 8 NICs each need 32: .* or leaf-spine without numbers",
        ),
        ("torus:4x4", POD, "it has 16 hosts for 4 servers: write torus without numbers"),
        (
            "torus",
            read_cluster("dgx-h100:27"),
            "needs 6 ports of every server, over which 8 NICs do not .*: use ring or",
        ),
        ("bcube", read_cluster("dgx-h100:6"), "bcube with 6 hosts does not exist: the nearest sizes are 4, 8, 9"),
        ("rail-only:2", POD, "nothing follows the colon: write rail-only"),
        ("rails:2to1", read_cluster("dgx-h100:3"), "use 4 servers, or fill leafs server by server"),
        ("wire:fast", POD, "write wire:8x400Gbps"),
        ("wire:8x400", POD, "has no unit"),
        ("torus", read_cluster("2x8,2x4"), "its servers differ"),
        ("missing.yaml", POD, "network missing.yaml: .* does not exist"),
        (
            "rails",
            Cluster((Servers(4, 8, "h100", 450e9, 8, 50e9),), failed=("server3", "leaf0-spine1")),
            "leaf0-spine1 failed in the network that it replaces: remove",
        ),
    ],
)
def test_a_network_that_does_not_fit_is_refused_with_a_remedy(name, cluster, message):
    with pytest.raises(ClusterError, match=message):
        on_network(cluster, name)


def test_remedies_work():
    on_network(read_cluster("dgx-h100:27"), "ring")
    on_network(read_cluster("dgx-h100:3"), "leaf-spine:2to1")
    on_network(read_cluster("dgx-h100:4"), "rails:2to1")
    on_network(Cluster((Servers(4, 8, "h100", 450e9, 8, 50e9),), failed=("server3",)), "rails")
