"""What networks cost, counted in the fabric that is built, against the sums of their ports by hand."""

from dataclasses import replace

import pytest

from ropewalk.fabric.files import write_fabric
from ropewalk.hardware import Cluster, Ports, Servers, on_network, read_cluster
from ropewalk.hardware.bill import network_price
from ropewalk.hardware.cabling import cabling_of
from ropewalk.hardware.prices import HALF_TREE_PORT, PANEL_PORT, STATIC_PORT, TREE_PORT, Materials, price_list

PRICES = price_list()
POD = read_cluster("dgx-h100:16")
NIC = 50e9


def total(name, cluster=POD):
    return network_price(on_network(cluster, name)).total


def test_a_tree_costs_what_its_ports_cost():
    assert total("fat-tree") == pytest.approx(128 * TREE_PORT.cost(PRICES, NIC))
    assert total("fat-tree:2to1") == pytest.approx(128 * HALF_TREE_PORT.cost(PRICES, NIC))


def test_leafs_and_spines_are_two_cables_and_three_switch_ports_per_nic():
    two_tiers = Materials(nics=1, switch_ports=3, transceivers=4, fibres=2).cost(PRICES, NIC)
    assert total("leaf-spine") == total("rails") == total("own") == pytest.approx(128 * two_tiers)
    half = Materials(nics=1, switch_ports=2, transceivers=3, fibres=1.5).cost(PRICES, NIC)
    assert total("leaf-spine:2to1") == total("rails:2to1") == pytest.approx(128 * half)


def test_without_spines_every_nic_has_one_cable_and_one_switch_port():
    one_tier = Materials(nics=1, switch_ports=1, transceivers=2, fibres=1).cost(PRICES, NIC)
    assert total("rail-only") == pytest.approx(128 * one_tier)
    assert network_price(on_network(POD, "rail-only")).switches == ((16, 8),)


def test_servers_that_are_hosts_of_a_torus_pay_for_ports_and_fibre_alone():
    # Two NICs to every neighbour are one cable of twice the rate: two of the highest pieces, one fibre.
    assert total("torus") == pytest.approx(64 * STATIC_PORT.cost(PRICES, 2 * NIC))


def test_ports_to_be_wired_end_on_panels():
    assert total("wire") == pytest.approx(128 * PANEL_PORT.cost(PRICES, NIC))
    assert total("wire:4x100Gbps") == pytest.approx(16 * 4 * PANEL_PORT.cost(PRICES, 12.5e9))
    given = Cluster((Servers(16, 4, "a100", 300e9, 4, 12.5e9),), Ports(4))
    assert network_price(given).total == pytest.approx(16 * 4032)


def test_an_ideal_switch_is_priced_as_a_tree_and_says_so():
    found = network_price(on_network(POD, "switch"))
    assert found.total == pytest.approx(128 * TREE_PORT.cost(PRICES, NIC))
    assert "priced as a three-tier full-bisection fat-tree" in found.note
    assert found.switches == ()


def test_every_part_has_its_line():
    parts = {part.name: (part.count, part.each) for part in network_price(POD).parts}
    assert parts == {
        "NICs of 400 Gbps": (128, 1499),
        "switch ports of 400 Gbps": (384, 1090),
        "transceivers of 400 Gbps": (512, 659),
        "fibres": (256, 150),
    }
    assert network_price(POD).switches == ((8, 16), (32, 8))  # 16 spines, 8 leafs


def test_ports_without_a_nic_are_not_paid_for_and_what_failed_is():
    three = read_cluster("3x8")
    assert network_price(on_network(three, "fat-tree")).parts[0].count == 24
    broken = replace(POD, failed=("server3", "leaf0-spine1"))
    assert network_price(broken).total == network_price(POD).total


def test_dgx_fabrics_and_files_that_hold_servers_cost_the_same_as_what_they_are(tmp_path):
    rails = on_network(POD, "rail-only")
    assert network_price(replace(POD, network="dgx-h100:16", rails=False)).total == network_price(rails).total
    shared = read_cluster("dgx-1:4")  # two GPUs to a NIC: NICs are nodes
    for cluster in (POD, shared):
        write_fabric(cluster.fabric(), tmp_path / "whole.yaml")
        from_file = read_cluster(tmp_path / "whole.yaml")
        assert network_price(from_file).total == pytest.approx(network_price(cluster).total)


@pytest.mark.parametrize(
    "name", ["own", "leaf-spine:4to1", "fat-tree", "rail-only", "switch", "torus", "bcube", "ring"]
)
def test_servers_send_as_much_into_every_network(name):
    assert cabling_of(on_network(POD, name).fabric()).bandwidth_of_servers() == pytest.approx(128 * NIC)


def test_servers_are_priced_where_the_list_has_them():
    assert network_price(POD).with_servers is None
    found = network_price(POD, replace(PRICES, servers={"h100": 250e3}))
    assert found.with_servers == pytest.approx(found.total + 16 * 250e3)
    assert found.as_json()["servers"] == 4e6
