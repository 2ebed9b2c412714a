"""A fabric as cables, names, addresses and speeds."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.errors import LabError
from ropewalk.fabric import FatTree, LeafSpine, Ring, Torus
from ropewalk.fabric.fabric import FabricDraft
from ropewalk.lab.capacity import Capacity, exact_scale
from ropewalk.lab.links import cables_named, links_named
from ropewalk.lab.network import Cable, LabNetwork, hardware_address, host_address, link_address
from ropewalk.lab.request import scaled
from ropewalk.lab.saved import SavedFabric, routes_of, saved_paths
from ropewalk.routing import shortest


def one_way_ring():
    draft = FabricDraft("one-way")
    draft.add_hosts(["a", "b", "c"])
    draft.add_links([0, 1, 2], [1, 2, 0], 1e6, duplex=False)
    return draft.freeze()


def parallel():
    draft = FabricDraft("parallel")
    draft.add_hosts(["rack-a", "rack-b"])
    draft.add_links([0, 0], [1, 1], [1e6, 2e6])
    return draft.freeze()


@pytest.mark.parametrize("builder", [Torus((4, 4)), LeafSpine(4, 2, 4), FatTree(4)], ids=lambda one: one.expression)
def test_every_link_is_sent_by_one_end_of_one_cable(builder):
    network = LabNetwork(builder.build())
    sent = [link for cable in network.cables.values() for link in cable.links]
    assert sorted(sent) == list(range(network.fabric.links))
    for number, cable in network.cables.items():
        for end, link in enumerate(cable.links):
            assert network.fabric.link_src[link] == cable.nodes[end]
            assert network.fabric.link_dst[link] == cable.nodes[1 - end]
            assert network.end_of_link[link] == (number, end)


def test_a_link_without_an_opposite_is_a_cable_of_which_one_end_sends():
    cables = LabNetwork(one_way_ring()).cables
    assert list(cables.values()) == [Cable((0, 1), (0, -1)), Cable((1, 2), (1, -1)), Cable((0, 2), (-1, 2))]


def test_parallel_links_are_cables_of_their_own():
    network = LabNetwork(parallel())
    assert [cable.links for cable in network.cables.values()] == [(0, 1), (2, 3)]
    assert [network.rate_bits(link) for link in range(4)] == [8_000_000, 8_000_000, 16_000_000, 16_000_000]


def circuits(*pairs):
    draft = FabricDraft("circuits")
    draft.add_hosts(["a", "b", "c", "d"])
    draft.add_links([src for src, _ in pairs], [dst for _, dst in pairs], 1e6)
    return draft.freeze()


def test_cables_between_the_same_nodes_keep_their_numbers_when_circuits_change():
    before = LabNetwork(circuits((0, 1), (1, 2), (2, 3)))
    after = before.rewired(circuits((2, 3), (3, 0), (1, 0), (0, 1)))
    assert after.numbers == (2, 3, 0, 4)
    assert after.cables[2] == Cable((2, 3), (0, 1))
    assert after.cables[0] == Cable((0, 1), (5, 4))
    again = after.rewired(circuits((0, 1), (1, 2), (2, 3)))
    assert again.numbers == (0, 5, 2)


def test_addresses_are_unique_and_private():
    hosts = [host_address(host, path) for host in range(600) for path in range(4)]
    ends = [link_address(cable, end) for cable in range(4096) for end in range(2)]
    assert len(set(hosts)) == len(hosts)
    assert len(set(ends)) == len(ends)
    assert all(address.startswith("10.") for address in hosts)
    assert all(16 <= int(address.split(".")[1]) <= 31 for address in ends)
    cards = [hardware_address(cable, end) for cable in range(4096) for end in range(2)]
    assert len(set(cards)) == len(cards)


def test_a_scale_divides_speeds_and_what_hosts_inject():
    whole, part = LabNetwork(Ring(4).build()), LabNetwork(Ring(4).build(), scale=5000)
    assert part.rate_bits(0) == 20_000_000
    assert part.injected_bits == pytest.approx(whole.injected_bits / 5000)


def test_a_fabric_that_is_too_large_or_too_slow_is_refused_with_the_reason():
    with pytest.raises(LabError, match="at most 128"):
        LabNetwork(Torus((12, 12), 1e6).build()).check()
    with pytest.raises(LabError, match="choose --scale"):
        LabNetwork(Ring(4).build(), scale=1e9).check()


def test_speeds_that_the_machine_carries_are_kept_and_others_scaled(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    assert scaled(Ring(4, 2.5e6).build())[0].scale == 1
    network, capacity = scaled(Ring(16).build())
    assert network.scale == 10_000
    assert capacity.error == 0.01
    with pytest.raises(LabError, match="use --scale 1:10000"):
        scaled(Ring(16).build(), scale=10)


def test_what_is_carried_is_said_before():
    assert Capacity(1e9, 2).said().endswith("2 cores carry 1.6 Gbps within 4 %")
    assert Capacity(1e10, 2).error is None
    assert [exact_scale(bits, 100.0) for bits in (50, 150, 450, 900, 1001)] == [1, 2, 5, 10, 20]


def test_links_are_named_by_their_ends_even_where_names_have_dashes():
    network = LabNetwork(parallel())
    assert links_named(network, "rack-a-rack-b") == (0, 1, 2, 3)
    assert links_named(network, "rack-b->rack-a") == (1, 3)
    assert cables_named(network, "rack-b-rack-a:1") == (1,)
    for wrong, said in (
        ("rack-a", "such as rack-a-rack-b"),
        ("rack-a-rack-b:2", "number them from"),
        ("x-y", "not a link"),
    ):
        with pytest.raises(LabError, match=said):
            cables_named(network, wrong)
    with pytest.raises(LabError, match="h0 is connected to h1, h3"):
        cables_named(LabNetwork(Ring(4).build()), "h0-h2")


@pytest.mark.parametrize("fabric", [Torus((2, 3)).build(), parallel(), one_way_ring()], ids=lambda one: one.name)
def test_a_saved_fabric_and_its_routes_read_back_to_the_same_arrays(fabric):
    again = SavedFabric.of(fabric).fabric()
    assert again.node_names == fabric.node_names
    assert again.builder == fabric.builder
    assert np.array_equal(again.bandwidth, fabric.bandwidth)
    routes = shortest(fabric, np.array([0, 1]), np.array([1, 0]))
    back = routes_of(again, saved_paths(routes))
    back.check()
    assert np.array_equal(back.link, routes.link)
    assert np.array_equal(back.pair_dst, routes.pair_dst)
