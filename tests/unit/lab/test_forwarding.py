"""Tables of a lab, followed hop by hop as the kernel follows them, lead along the routes they were made from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import LabError
from ropewalk.fabric import BCube, LeafSpine, Ring, Torus
from ropewalk.lab.commands import (
    cable_lines,
    kernel_settings,
    node_lines,
    route_lines,
)
from ropewalk.lab.forwarding import every_pair, hashed, pinned
from ropewalk.lab.network import LabNetwork, host_address
from ropewalk.lab.request import or_shortest, routes_by_name
from ropewalk.routing import ROUTERS, shortest


def followed(fabric, forwarding, src, dst, path):
    """The links of a packet: tables by source first, then the main table."""
    links, node = [], src
    while node != dst:
        tables, to = forwarding.nodes[node], host_address(dst, path)
        table = tables.by_source.get(host_address(src, path), {})
        (link,) = table.get(to) or tables.main[to]
        links.append(link)
        node = int(fabric.link_dst[link])
    return links


CASES = [
    (Torus((4, 4)), "dimension-rotated"),
    (Torus((3, 3)), "shortest"),
    (LeafSpine(4, 4, 2), "dmodk"),
    (LeafSpine(4, 4, 2), "ecmp"),
    (LeafSpine(4, 4, 2), "spray"),
    (BCube(3, 2), "dimension-rotated"),
]


@pytest.mark.parametrize(("builder", "router"), CASES, ids=lambda one: getattr(one, "expression", one))
def test_pinned_packets_take_the_paths_of_their_pair(builder, router):
    fabric = builder.build()
    routes = ROUTERS[router].make(3)(fabric, *every_pair(fabric))
    forwarding = pinned(routes)
    for pair in range(routes.pairs):
        first, last = routes.path_start[pair : pair + 2]
        for path in range(forwarding.paths):
            row = first + path % (last - first)
            expected = routes.link[routes.link_start[row] : routes.link_start[row + 1]].tolist()
            assert followed(fabric, forwarding, routes.pair_src[pair], routes.pair_dst[pair], path) == expected


def test_tables_by_source_hold_only_what_differs_from_most():
    ring = Ring(5).build()
    assert not any(node.by_source for node in pinned(routes_by_name(ring, "shortest")[1]).nodes)


def test_hashed_tables_list_every_next_hop_of_a_shortest_path():
    fabric = LeafSpine(2, 3, 2).build()
    leaf = fabric.node_names.index("leaf0")
    main = hashed(fabric).nodes[leaf].main
    assert len(main[host_address(0)]) == 1
    assert len(main[host_address(3)]) == 3
    assert host_address(3) not in hashed(fabric).nodes[3].main


def test_hosts_forward_hashed_packets_only_where_switches_do_not_join_them():
    tables = hashed(Torus((3, 3)).build())
    assert all(len(node.main) == 8 for node in tables.nodes)
    bcube = BCube(2, 2).build()
    assert len(hashed(bcube).nodes[0].main[host_address(3)]) == 2


def test_too_many_paths_are_refused():
    fabric = LeafSpine(2, 70, 2).build()
    with pytest.raises(LabError, match="70 paths between two hosts"):
        pinned(routes_by_name(fabric, "spray")[1])


def test_a_plan_that_lists_some_pairs_takes_the_shortest_between_others():
    ring = Ring(4).build()
    routes = or_shortest([(1.0, (0, 3, 2, 1))])(ring, *every_pair(ring))
    assert routes.pairs == 12
    hops = dict(zip(zip(routes.pair_src.tolist(), routes.pair_dst.tolist(), strict=True), routes.hops, strict=True))
    assert hops[0, 1] == 3
    assert hops[1, 0] == 1


def test_a_node_is_told_addresses_neighbours_rules_and_routes():
    fabric = Torus((3, 3)).build()
    network, forwarding = LabNetwork(fabric), pinned(routes_by_name(fabric, "dimension-rotated")[1])
    lines = node_lines(network, forwarding, 0)
    assert lines[:3] == [
        "link set lo up",
        "addr add 10.0.0.128/32 dev lo label lo:lab",
        "addr add 10.1.0.128/32 dev lo label lo:lab",
    ]
    assert sum(line.startswith("link set c") for line in lines) == 4
    assert sum(line.startswith("neigh replace") for line in lines) == 4
    rules = [line for line in lines if line.startswith("rule add from")]
    tables = {line.split()[-1] for line in rules}
    assert tables <= {line.split()[4] for line in lines if line.startswith("route replace")}
    assert any(" src 10.1.0.128 via " in line for line in lines)


def test_routes_over_cut_cables_are_left_out():
    fabric = LeafSpine(2, 2, 1).build()
    network, forwarding = LabNetwork(fabric), hashed(fabric)
    leaf = fabric.node_names.index("leaf0")
    whole = route_lines(network, forwarding, leaf)
    assert sum("nexthop" in line for line in whole) == 1
    cut = next(cable for cable, _ in network.ends_of_node[leaf] if f"dev c{cable} nexthop" in "\n".join(whole))
    left = route_lines(network, forwarding, leaf, frozenset({cut}))
    assert len(left) == len(whole)
    assert not any("nexthop" in line for line in left)


def test_every_cable_and_every_link_is_built_once():
    network = LabNetwork(LeafSpine(2, 2, 2).build())
    assert len(cable_lines(network, str)) == len(network.cables) == 8
    assert all("/proc/sys/net/" in path for path in kernel_settings(network))


def test_hosts_that_no_circuit_joins_have_no_routes_to_each_other():
    whole = LeafSpine(2, 1, 2).build()
    inside = np.flatnonzero((whole.link_src < whole.hosts) | (whole.link_dst < whole.hosts))
    columns = {
        name: getattr(whole, name)[inside] for name in ("link_src", "link_dst", "bandwidth", "latency", "cables")
    }
    apart = replace(whole, builder=None, **columns)
    nodes = pinned(shortest(apart, np.array([0], np.int32), np.array([1], np.int32))).nodes
    assert set(nodes[0].main) == {"10.0.0.129"}
    assert set(nodes[2].main) == {"10.0.0.131"}
