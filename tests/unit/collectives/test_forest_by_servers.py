"""Trees over servers of GPUs behind one gateway each: at the optimum, in as many hops as servers need and one more."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ropewalk.codesign.regular import regular_wirings
from ropewalk.collectives.forest import all_gather_forest, reduce_scatter_forest
from ropewalk.collectives.forest.demand import wiring_of
from ropewalk.collectives.forest.servers import by_servers
from ropewalk.collectives.optimum import all_gather, network_of
from ropewalk.hardware import on_network, read_cluster


def wired(servers: int, network: str, name: str, **changes: float):
    cluster = replace(on_network(read_cluster(f"dgx-h100:{servers}"), network), latency_s=0.0)
    cluster = replace(cluster, servers=tuple(replace(group, **changes) for group in cluster.servers))
    return cluster.wired(regular_wirings(cluster)[name].wiring)


def wanted(network):
    rate = all_gather(network).algbw / network.unit / len(network.members)
    return wiring_of(network, [Fraction(value) for value in network.capacity], [rate] * len(network.members))


def test_trees_go_from_server_to_server_and_once_more_inside():
    network = network_of(wired(6, "wire:2x400Gbps", "ring:6"))
    forest = all_gather_forest(network)
    forest.check()
    assert forest.algbw == all_gather(network).algbw
    assert forest.depth == 4, "three servers away, and the others there"
    assert reduce_scatter_forest(network).algbw == forest.algbw


def test_every_member_of_a_server_takes_its_share_of_what_enters():
    network = network_of(wired(6, "wire:2x400Gbps", "ring:6"))
    used, bundles = by_servers(wanted(network))
    entering = {}
    for ways in used.ways.values():
        for path, amount in ways:
            if len(path) == 4:
                entering[path[-1]] = entering.get(path[-1], 0) + amount
    assert set(entering) == set(network.members.tolist())
    assert len(set(entering.values())) == 1
    assert {bundle.root for bundle in bundles} == set(network.members.tolist())


@pytest.mark.parametrize(
    ("members", "why"),
    [
        (list(range(8, 48)), "a server without members has a gateway too"),
        ([*range(47)], "one server has a member less"),
        ([0, 8, 16, 24, 32, 40], "one member per server hands nothing on"),
    ],
)
def test_other_groups_are_left_to_other_trees(members, why):
    network = network_of(wired(6, "wire:2x400Gbps", "ring:6"), members)
    assert by_servers(wanted(network)) is None, why
    forest = all_gather_forest(network)
    forest.check()
    assert forest.algbw == all_gather(network).algbw


def test_servers_that_have_no_room_inside_are_left_to_other_trees():
    slow = network_of(wired(6, "wire:2x400Gbps", "ring:6", nvlink_bandwidth=60e9))
    assert by_servers(wanted(slow)) is None
    assert all_gather_forest(slow).algbw == all_gather(slow).algbw
