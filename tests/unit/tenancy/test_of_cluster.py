"""Plants of clusters that are described as for every other command."""

import pytest

from ropewalk.errors import ClusterError
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
        ("8x8", Given(network="torus:8x8"), ["is no leaf-spine"]),
        ("8x8", Given(network="leaf-spine:2x32x32", nics=4, rails=True), ["on rails", "4 NICs for 8 GPUs"]),
    ],
)
def test_what_jobs_cannot_be_placed_on_is_refused_with_a_remedy(shape, given, messages):
    with pytest.raises(ClusterError) as refused:
        plant_of_cluster(read_cluster(shape, given))
    for message in messages:
        assert message in str(refused.value)


def test_the_network_that_is_advised_works():
    assert plant_of_cluster(read_cluster("4x8", Given(network="leaf-spine:2x16x16"))).servers == 4
