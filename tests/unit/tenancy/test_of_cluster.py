"""Plants of clusters that are described as for every other command."""

import numpy as np
import pytest

from ropewalk.errors import ClusterError
from ropewalk.fabric import LeafSpine
from ropewalk.fabric.expression import builder
from ropewalk.hardware import Given, read_cluster
from ropewalk.tenancy.of_cluster import plant_of_cluster
from ropewalk.tenancy.plant import plant


def test_a_cluster_is_the_plant_of_its_leaf_spine():
    given = Given(network="leaf-spine:4x8x8", nic_bandwidth=12.5e9, nvlink_bandwidth=125e9)
    made, usual = plant_of_cluster(read_cluster("8x4", given)), plant("leaf-spine:4x8x8", 4)
    assert made.server_leaf.tolist() == usual.server_leaf.tolist()
    assert made.cables.tolist() == usual.cables.tolist()
    speeds = [(one.nic_bandwidth, one.link_bandwidth, one.server_bandwidth) for one in (made, usual)]
    assert speeds[0] == speeds[1]


def test_ports_without_servers_stay_empty():
    made = plant_of_cluster(read_cluster("5x4", Given(network="leaf-spine:4x8x8")))
    assert made.servers_per_leaf.tolist() == [2, 2, 1, 0]


@pytest.mark.parametrize(
    ("shape", "given", "messages"),
    [
        ("4x8", Given(), ["not whole servers of 8 GPUs: name a network such as leaf-spine:2x16x16"]),
        ("8x8", Given(network="torus:8x8"), ["is not a leaf-spine"]),
        (
            "8x8",
            Given(network="leaf-spine:2x32x32", nics=4, rails=True),
            ["8 servers are not whole units of 32", "4 NICs for 8 GPUs"],
        ),
    ],
)
def test_what_jobs_cannot_be_placed_on_is_refused_with_a_remedy(shape, given, messages):
    with pytest.raises(ClusterError) as refused:
        plant_of_cluster(read_cluster(shape, given))
    for message in messages:
        assert message in str(refused.value)


def test_clusters_stand_on_fat_trees_and_rails_as_the_other_commands_build_them():
    tree = plant_of_cluster(read_cluster("8x2", Given(network="fat-tree:4")))
    assert (tree.cores, tree.tiers.pods, tree.leaf_names[:2]) == (4, 4, ("edge0.0", "edge0.1"))
    for network, spines in (("rails:8x4x2", 4), ("rail-only", 0)):
        cluster = read_cluster("4x4", Given(network=network))
        rails, fabric = plant_of_cluster(cluster), cluster.fabric()
        assert (rails.rails, rails.spines, rails.gpus) == (4, spines, 16)
        # The leaf of a GPU by name is the switch that its NIC goes to in the fabric of every other command.
        for gpu in range(rails.gpus):
            switches = {fabric.node_names[fabric.link_dst[link]] for link in np.flatnonzero(fabric.link_src == gpu)}
            assert rails.leaf_names[rails.leaf_of_gpu[gpu]] in switches
    advised = plant_of_cluster(read_cluster("8x8", Given(network="rails:8x8x8")))
    assert advised.units == 1


@pytest.mark.parametrize(
    ("shape", "network"),
    [
        ("4x8", None),
        ("4x8", "leaf-spine:2to1"),
        ("8x8", "fat-tree"),
        ("8x8", "fat-tree:8"),
        ("8x8", "fat-tree:2to1"),
        ("9x6", "fat-tree:8,4,2"),
        ("8x8", "switch"),
        ("8x8", "torus"),
    ],
)
def test_the_network_that_is_advised_works(shape, network):
    """And it is as oversubscribed as the one that was asked for."""
    with pytest.raises(ClusterError, match="such as") as refused:
        plant_of_cluster(read_cluster(shape, Given(network=network)))
    advised = str(refused.value).rpartition("such as ")[2]
    made = plant_of_cluster(read_cluster(shape, Given(network=advised)))
    servers, gpus = (int(number) for number in shape.split("x"))
    assert (made.servers, made.gpus_per_server) == (servers, gpus)
    ports = int(made.cables.sum(axis=1).max())
    found = builder(made.name)
    room = found.hosts_per_leaf if isinstance(found, LeafSpine) else found.half
    assert room // ports == (2 if network is not None and ("2to1" in network or network.endswith(",2")) else 1)
