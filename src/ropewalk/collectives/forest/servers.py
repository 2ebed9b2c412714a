"""Trees over servers: where every server has one gateway, servers are joined first, and rails do the rest.

Into a server there is only the way through its gateway, so that trees reach all members at the optimum only if they
reach all servers, each taken for one vertex: a far smaller problem (16 vertices in place of 160). Its trees are divided
evenly over the members of a server: member i of the root's server hands its part to member i of the next server, and
each of them hands it to the others of its own server. Whether all servers have room inside is counted at the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from ropewalk.collectives.forest.demand import CapacityGraph, Path
from ropewalk.collectives.forest.layers import layered
from ropewalk.collectives.forest.packing import Bundle, packed


@dataclass(frozen=True)
class _Server:
    gateway: int
    members: tuple[int, ...]
    inner: int
    """The switch over which members hand each other what has come in."""

    def inside(self, x: int, y: int) -> Path:
        return (x, self.inner, y)


def by_servers(wiring: CapacityGraph) -> tuple[CapacityGraph, list[Bundle]] | None:
    """The ways that are used and their trees; None where servers are not like that or have no room inside."""
    servers = _servers(wiring)
    if servers is None or len(set(wiring.trees.values())) != 1 or len(wiring.trees) < len(wiring.members):
        return None
    between = _between(wiring, servers)
    trees = layered(between) or packed(between)
    rails = len(servers[0].members)
    roots = {root: rails * count for root, count in wiring.trees.items()}
    used = CapacityGraph(wiring.vertices, roots, wiring.members, wiring.unit / rails)
    bundles = [_on_rail(bundle, rail, servers, used) for bundle in trees for rail in range(rails)]
    return (used, bundles) if _has_room(wiring, used, rails) else None


def _servers(wiring: CapacityGraph) -> list[_Server] | None:
    """Gateways (switches that other switches are joined to) with their members, if that is all there is."""
    members = set(wiring.members)
    gateways = {u for u, v in wiring.capacity if u not in members and v not in members}
    if len(gateways) < 2:
        return None
    of: dict[int, list[int]] = {gateway: [] for gateway in sorted(gateways)}
    inner: dict[int, set[int]] = {member: set() for member in members}
    for u, v in wiring.capacity:
        if u in members and v in gateways:
            of[v].append(u)
        elif u in members:
            inner[u].add(v)
    placed = sorted(member for listed in of.values() for member in listed)
    if placed != sorted(members) or len({len(listed) for listed in of.values()}) != 1:
        return None
    found = []
    for gateway, listed in of.items():
        switches = set.intersection(*(inner[member] for member in listed)) - members
        if len(listed) < 2 or len(switches) != 1:
            return None
        found.append(_Server(gateway, tuple(sorted(listed, key=wiring.members.index)), switches.pop()))
    return found


def _between(wiring: CapacityGraph, servers: list[_Server]) -> CapacityGraph:
    """Servers as the members: what their gateways send each other, and as many trees as their members want."""
    trees = {at: sum(wiring.trees[member] for member in server.members) for at, server in enumerate(servers)}
    between = CapacityGraph(len(servers), trees, tuple(range(len(servers))), wiring.unit)
    place = {server.gateway: at for at, server in enumerate(servers)}
    for (u, v), amount in wiring.capacity.items():
        if u in place and v in place:
            between.add((place[u], place[v]), amount)
    return between


def _on_rail(bundle: Bundle, rail: int, servers: list[_Server], used: CapacityGraph) -> Bundle:
    """The part of a tree over servers that their members of one place hand on; its ways are added to those used."""
    root = servers[bundle.root].members[rail]
    made = Bundle(root, bundle.trees, {root: 0}, [])

    def hand_on(path: Path) -> None:
        made.arcs.append((path[0], path[-1]))
        made.depth[path[-1]] = made.depth[path[0]] + 1
        used.add(path, bundle.trees)

    for before, at in [(-1, bundle.root), *bundle.arcs]:
        server = servers[at]
        relay = server.members[rail]
        if before >= 0:
            hand_on((servers[before].members[rail], servers[before].gateway, server.gateway, relay))
        for member in server.members[rail + 1 :] + server.members[:rail]:
            hand_on(server.inside(relay, member))
    return made


def _has_room(wiring: CapacityGraph, used: CapacityGraph, times: int) -> bool:
    """Whether no arc carries more than it can; capacities count `times` as much in the units of what is used."""
    load: Counter[tuple[int, int]] = Counter()
    for ways in used.ways.values():
        for path, amount in ways:
            for ends in pairwise(path):
                load[ends] += amount
    return all(amount <= times * wiring.capacity.get(ends, 0) for ends, amount in load.items())
