from __future__ import annotations

import numpy as np
import pytest

from ropewalk.errors import FabricError
from ropewalk.tenancy.plant import Plant, plant


def test_the_plant_of_64_port_switches_has_2048_gpus():
    whole = plant("leaf-spine:64x32x32", gpus_per_server=8)
    assert (whole.gpus, whole.servers, whole.leafs, whole.spines) == (2048, 256, 64, 32)
    assert set(whole.gpus_per_leaf.tolist()) == {32}


def test_links_of_the_fabric_are_where_the_plant_says():
    cables = [[1, 2, 0], [0, 1, 1]]
    built = Plant("odd", 2, np.array([0, 1, 1]), np.array(cables))
    fabric = built.fabric()
    assert fabric.hosts == 6
    for leaf, row in enumerate(cables):
        for spine, count in enumerate(row):
            for cable in range(count):
                up = int(built.leaf_up(leaf, spine, cable))
                assert fabric.link_name(up) == f"leaf{leaf}->spine{spine}"
                assert fabric.link_name(up + 1) == f"spine{spine}->leaf{leaf}"
    assert [fabric.link_name(int(built.nic_up(gpu))) for gpu in (0, 5)] == ["server0.0->leaf0", "server2.1->leaf1"]
    assert fabric.link_name(int(built.inside_up(5))) == "server2.1->inside server2"
    assert fabric.links == 2 * (6 + 5 + 6)
    assert fabric.server is not None
    assert fabric.server.tolist() == [0, 0, 1, 1, 2, 2]


def test_servers_of_one_gpu_have_nothing_inside():
    fabric = plant("leaf-spine:2x2x2", gpus_per_server=1).fabric()
    assert fabric.links == 2 * (4 + 4)


def test_speeds_go_to_the_links_they_are_of():
    built = Plant("fast", 2, np.array([0, 1]), np.ones((2, 1), int), 25e9, 50e9, 300e9)
    fabric = built.fabric()
    assert fabric.bandwidth[built.nic_up(1)] == 25e9
    assert fabric.bandwidth[built.leaf_up(1, 0)] == 50e9
    assert fabric.bandwidth[built.inside_up(1)] == 300e9


def test_everything_wrong_with_a_plant_is_said_at_once():
    with pytest.raises(FabricError) as caught:
        Plant("bad", 0, np.array([1, 0, 3]), np.array([[1, -1], [1, 1]]), -1.0, server_names=("a", "a", "b"))
    message = str(caught.value)
    for part in ("gpus_per_server is 0", "leaf 3 of 2", "not sorted by leaf", "-1 to 1", "'a' is listed twice", "nic_"):
        assert part in message


def test_what_is_no_leaf_spine_is_refused():
    with pytest.raises(FabricError, match="torus:4x4 has no leafs below which jobs are placed"):
        plant("torus:4x4")
    with pytest.raises(FabricError, match="not whole servers of 8"):
        plant("leaf-spine:4x4x12", gpus_per_server=8)
    with pytest.raises(FabricError, match="2 dimensions"):
        Plant("flat", 1, np.array([[0]]), np.ones((1, 1), int))
