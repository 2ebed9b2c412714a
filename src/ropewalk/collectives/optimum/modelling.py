"""From a fabric and a group of hosts to the network that optima are computed on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ropewalk.arrays import Ints
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import common_unit, meant
from ropewalk.errors import Findings, ProgramError
from ropewalk.fabric import Fabric
from ropewalk.fabric.translation import translations
from ropewalk.words import listed

Shard = int | float | Fraction


def network_of(
    fabric: Fabric,
    group: Sequence[int] | None = None,
    *,
    shards: Sequence[Shard] | None = None,
    host_limits: Sequence[float] | None = None,
    copying: bool = False,
) -> Network:
    """The network of a group of hosts (all of them unless given); everything else in the fabric forwards for it.

    `shards` say in which proportion the members bring data, one for each member. `host_limits` are bytes/s that each
    host of the fabric can send, and as much receive, over all its links. `copying` lets switches copy and add up.

    >>> from ropewalk.fabric import Ring
    >>> network_of(Ring(4, bandwidth=10e9).build()).capacity
    (1, 1, 1, 1, 1, 1, 1, 1)
    """
    members = list(range(fabric.hosts)) if group is None else [int(host) for host in group]
    _check(fabric, members, shards, host_limits)
    equal = shards is None or len({Fraction(shard) for shard in shards}) == 1
    whole = group is None or members == list(range(fabric.hosts))
    tail, head, bandwidth, links = _joined_links(fabric)
    node = np.arange(fabric.nodes)
    opposite = node
    if host_limits is not None:
        tail, head, bandwidth, links, node, opposite = _limited(fabric, tail, head, bandwidth, links, host_limits)
    unit = common_unit(bandwidth)
    network = Network(
        fabric=fabric,
        members=np.array(members, np.int64),
        weight=(1,) * len(members) if equal or shards is None else _whole([_fraction(shard) for shard in shards]),
        vertices=len(node),
        tail=np.array(tail, np.int64),
        head=np.array(head, np.int64),
        capacity=tuple(int(value / unit) for value in bandwidth),
        unit=unit,
        links=tuple(links),
        node=node,
        opposite=opposite,
        copying=copying,
        symmetry=translations(fabric) if equal and whole and host_limits is None else None,
    )
    _check_connected(network)
    return network


def _check(
    fabric: Fabric, members: list[int], shards: Sequence[Shard] | None, host_limits: Sequence[float] | None
) -> None:
    findings = Findings(ProgramError, f"collective on {fabric.name}")
    for host in dict.fromkeys(members):
        if not 0 <= host < fabric.hosts:
            findings.add(f"{host} is not one of its {fabric.hosts} hosts: give hosts 0…{fabric.hosts - 1}")
        elif members.count(host) > 1:
            name = fabric.node_names[host]
            findings.add(f"host {name} is in the group {members.count(host)} times: list every host once")
    if len(set(members)) < 2:
        alone = "1 host, which communicates with nothing" if members else "no hosts"
        findings.add(f"the group has {alone}: give at least two")
    for link in np.flatnonzero(~(np.isfinite(fabric.bandwidth) & (fabric.bandwidth > 0))):
        speed = fabric.bandwidth[link]
        findings.add(
            f"link {fabric.link_name(int(link))} has a bandwidth of {speed:g} bytes/s: remove it, or give a higher "
            "bandwidth"
        )
    if shards is not None:
        if len(shards) != len(members):
            findings.add(f"there are {len(shards)} shards for {len(members)} members: give one for each member")
        elif not all(0 <= shard < math.inf for shard in shards) or not any(shards):
            findings.add("shards must be numbers of at least 0, not all 0: give the size of every member's shard")
    if host_limits is not None:
        if len(host_limits) != fabric.hosts:
            findings.add(f"there are {len(host_limits)} limits for {fabric.hosts} hosts: give one for each host")
        for host, limit in enumerate(host_limits):
            if not (math.isfinite(limit) and limit > 0):
                findings.add(f"the limit of host {host} is {limit:g} bytes/s: give a bandwidth above 0")
    findings.raise_if_any()


def _joined_links(fabric: Fabric) -> tuple[list[int], list[int], list[Fraction], list[tuple[int, ...]]]:
    """Links between the same two nodes as one arc, in the order of their first link; loops carry nothing."""
    speeds = {speed: meant(speed) for speed in np.unique(fabric.bandwidth).tolist()}
    together: dict[tuple[int, int], list[int]] = {}
    for link, ends in enumerate(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True)):
        if ends[0] != ends[1]:
            together.setdefault(ends, []).append(link)
    bandwidth = [
        sum((speeds[float(fabric.bandwidth[link])] for link in links), Fraction(0)) for links in together.values()
    ]
    return [u for u, _ in together], [v for _, v in together], bandwidth, [tuple(links) for links in together.values()]


def _limited(
    fabric: Fabric,
    tail: list[int],
    head: list[int],
    bandwidth: list[Fraction],
    links: list[tuple[int, ...]],
    host_limits: Sequence[float],
) -> tuple[list[int], list[int], list[Fraction], list[tuple[int, ...]], Ints, Ints]:
    """Every host gets a way out and a way in with its limit; its links start and end there."""
    hosts, nodes = fabric.hosts, fabric.nodes
    way_out, way_in = range(nodes, nodes + hosts), range(nodes + hosts, nodes + 2 * hosts)
    limits = [meant(float(limit)) for limit in host_limits]
    node = np.concatenate([np.arange(nodes), np.arange(hosts), np.arange(hosts)])
    opposite = np.concatenate([np.arange(nodes), np.array(way_in), np.array(way_out)])
    return (
        [way_out[u] if u < hosts else u for u in tail] + list(range(hosts)) + list(way_in),
        [way_in[v] if v < hosts else v for v in head] + list(way_out) + list(range(hosts)),
        bandwidth + limits + limits,
        links + [()] * (2 * hosts),
        node,
        opposite,
    )


def _fraction(shard: Shard) -> Fraction:
    return meant(shard) if isinstance(shard, float) else Fraction(shard)


def _whole(shards: list[Fraction]) -> tuple[int, ...]:
    unit = common_unit(shards)
    return tuple(int(shard / unit) for shard in shards)


def _check_connected(network: Network) -> None:
    """Every member must reach every other one."""
    ends = (network.tail, network.head)
    graph = coo_array((np.ones(network.arcs), ends), shape=(network.vertices, network.vertices))
    _, part = connected_components(graph, directed=True, connection="strong")
    apart = network.members[part[network.members] != part[network.members[0]]]
    if len(apart):
        names = network.fabric.node_names
        first, others = names[network.members[0]], listed([names[host] for host in apart])
        raise ProgramError(
            f"collective on {network.fabric.name}: {first} and {others} cannot reach each other in both directions: "
            "add links or leave hosts out of the group"
        )
