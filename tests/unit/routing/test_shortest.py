"""Single shortest paths, on worlds small enough to know them by heart."""

import numpy as np
import pytest

from ropewalk.errors import RouteError
from ropewalk.fabric import BCube, Dgx, Fabric, FabricDraft, FatTree, IdealSwitch, LeafSpine, Ring, Torus
from ropewalk.routing import Routes, shortest


def route(fabric: Fabric, src: int, dst: int) -> list[str]:
    """Names of the nodes on the way."""
    return names(shortest(fabric, np.array([src]), np.array([dst])))


def names(routes: Routes) -> list[str]:
    routes.check()
    fabric = routes.fabric
    nodes = [int(routes.pair_src[0]), *fabric.link_dst[routes.link].tolist()]
    return [fabric.node_names[node] for node in nodes]


def test_two_hosts_on_a_switch():
    assert route(IdealSwitch(3).build(), 0, 2) == ["h0", "switch", "h2"]


def test_a_ring_is_walked_the_short_way():
    ring = Ring(5).build()
    assert route(ring, 0, 2) == ["h0", "h1", "h2"]
    assert route(ring, 0, 3) == ["h0", "h4", "h3"]


def test_half_way_round_a_ring_the_lowest_link_wins():
    assert route(Ring(4).build(), 0, 2) == ["h0", "h1", "h2"]


def test_ties_go_to_the_first_spine_and_its_first_cable():
    fabric = LeafSpine(leafs=2, spines=2, hosts_per_leaf=2, cables=2).build()
    routes = shortest(fabric, np.array([0]), np.array([3]))
    assert names(routes) == ["h0", "leaf0", "spine0", "leaf1", "h3"]
    assert routes.link.tolist() == [0, 8, 17, 7]


def test_a_fat_tree_is_climbed_no_higher_than_needed():
    tree = FatTree(4).build()
    routes = shortest(tree, np.array([0, 0, 0]), np.array([1, 2, 4]))
    routes.check()
    assert routes.hops.tolist() == [2, 4, 6]


def test_hosts_of_a_bcube_relay():
    assert route(BCube(2, 2).build(), 0, 3) == ["h0", "s0.0", "h1", "s1.1", "h3"]


def test_gpus_on_different_rails_meet_by_nvlink_where_there_are_no_spines():
    way = route(Dgx(servers=2, gpus=2).build(), 0, 3)
    assert way in (
        ["gpu0.0", "nvswitch0", "gpu0.1", "rail1", "gpu1.1"],
        ["gpu0.0", "rail0", "gpu1.0", "nvswitch1", "gpu1.1"],
    )


def test_no_host_relays_where_switches_alone_lead_there():
    # h1 hangs on both leafs: over it the way from h0 to h2 is as short as over the spine, and its links come first.
    draft = FabricDraft("two leafs")
    hosts = draft.add_hosts(["h0", "h1", "h2"])
    leafs = draft.add_switches(["left", "right"], level=1)
    spine = draft.add_switches(["spine"], level=2)
    draft.add_links(hosts[[1, 1]], leafs, 1.0)
    draft.add_links(hosts[[0, 2]], leafs, 1.0)
    draft.add_links(leafs, spine, 1.0)
    fabric = draft.freeze()
    assert route(fabric, 0, 2) == ["h0", "left", "spine", "right", "h2"]
    assert route(fabric, 0, 1) == ["h0", "left", "h1"]


def test_directed_links_are_not_walked_backwards():
    draft = FabricDraft("one way round")
    hosts = draft.add_hosts(["h0", "h1", "h2"])
    draft.add_links(hosts, np.roll(hosts, -1), 1.0, duplex=False)
    fabric = draft.freeze()
    assert route(fabric, 0, 2) == ["h0", "h1", "h2"]
    assert route(fabric, 2, 0) == ["h2", "h0"]


def test_a_host_that_sends_by_one_switch_and_receives_by_another():
    draft = FabricDraft("in and out")
    hosts = draft.add_hosts(["h0", "h1"])
    out, into = draft.add_switches(["out", "in"], level=1)
    draft.add_links(hosts, out, 1.0, duplex=False)
    draft.add_links(into, hosts, 1.0, duplex=False)
    draft.add_links(out, into, 1.0, duplex=False)
    assert route(draft.freeze(), 0, 1) == ["h0", "out", "in", "h1"]


def test_hosts_that_are_not_connected_are_named():
    draft = FabricDraft("islands")
    hosts = draft.add_hosts(["h0", "h1", "h2"])
    draft.add_links(hosts[:1], hosts[1:2], 1.0)
    with pytest.raises(RouteError, match=r"islands has no path from h0 to h2 \(and for 1 more pairs\): add links"):
        shortest(draft.freeze(), np.array([0, 0, 1]), np.array([1, 2, 2]))


def test_a_large_torus_with_neighbour_traffic_is_searched_only_nearby():
    torus = Torus((64, 64)).build()
    host = np.arange(64 * 64)
    row, column = np.divmod(host, 64)
    routes = shortest(torus, host, row * 64 + (column + 1) % 64)
    routes.check()
    assert (routes.hops == 1).all()
    assert routes.pairs == 4096
