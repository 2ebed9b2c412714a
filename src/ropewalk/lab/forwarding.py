"""What every node does with a packet: tables by destination, tables by source and destination, or the kernel's hash.

Routes that are given are pinned. Where the next hop of a node depends on the destination alone, it stands in the main
table. Where it depends on the source too (source routing, dimension order, coin changes), the sources that differ from
most get a table of their own, which a policy rule looks up first. A pair with several paths has a pair of addresses for
each of them, so a connection chooses its path by the addresses it is made between.

With `hashed`, every node lists all its next hops on shortest paths and the kernel picks one by a hash of addresses and
ports.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import LabError
from ropewalk.fabric import Fabric
from ropewalk.lab.network import host_address
from ropewalk.routing import Routes, shortest

MOST_PATHS = 64
"""Paths between two hosts; every host has an address for each."""

Table = dict[str, tuple[int, ...]]
"""Destination address -> the links that packets leave on; several where the kernel hashes."""


@dataclass
class NodeTables:
    """What one node knows."""

    main: Table = field(default_factory=dict)
    by_source: dict[str, Table] = field(default_factory=dict)
    """For packets from a source address: looked up before the main table."""


@dataclass(frozen=True, eq=False)
class LabTables:
    """The tables of all nodes."""

    nodes: tuple[NodeTables, ...]
    paths: int = 1
    """Addresses of each host: the most paths that a pair has."""


def every_pair(fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs of different hosts."""
    src, dst = (ends.ravel().astype(np.int32) for ends in np.divmod(np.arange(fabric.hosts**2), fabric.hosts))
    return src[src != dst], dst[src != dst]


def pinned(routes: Routes) -> LabTables:
    """Tables that send every pair over its own path or paths; pairs without one take the shortest.

    >>> from ropewalk.fabric import Ring
    >>> from ropewalk.routing import shortest
    >>> ring = Ring(4).build()
    >>> pinned(shortest(ring, *every_pair(ring))).nodes[1].main["10.0.0.131"]
    (1,)
    """
    number = path_numbers(routes)
    most = 1 + int(number.max(initial=0))
    if most > MOST_PATHS:
        raise LabError(
            f"routes on {routes.fabric.name} have {most} paths between two hosts, and a lab at most {MOST_PATHS}: "
            "choose a routing with fewer paths, such as --routing shortest"
        )
    chosen: list[dict[str, dict[str, int]]] = [defaultdict(dict) for _ in range(routes.fabric.nodes)]
    for (src, dst), paths in _paths_of_pairs(routes).items():
        for path in range(most):
            for link in paths[path % len(paths)]:
                node = int(routes.fabric.link_src[link])
                chosen[node][host_address(dst, path)][host_address(src, path)] = link
    return LabTables(tuple(map(_tables, chosen)), most)


def path_numbers(routes: Routes) -> NDArray[np.int64]:
    """The number of every path among those of its pair of hosts, rows that were appended included."""
    seen: Counter[tuple[int, int]] = Counter()
    numbers = []
    for pair in routes.pair_of_path.tolist():
        ends = int(routes.pair_src[pair]), int(routes.pair_dst[pair])
        numbers.append(seen[ends])
        seen[ends] += 1
    return np.array(numbers, np.int64)


def links_by_number(routes: Routes) -> dict[tuple[int, int, int], list[int]]:
    """The links of every path, by its pair of hosts and its number among theirs."""
    found = {}
    numbers = path_numbers(routes).tolist()
    for path, pair in enumerate(routes.pair_of_path.tolist()):
        ends = int(routes.pair_src[pair]), int(routes.pair_dst[pair])
        links = routes.link[routes.link_start[path] : routes.link_start[path + 1]]
        found[(*ends, numbers[path])] = links.tolist()
    return found


def _paths_of_pairs(routes: Routes) -> dict[tuple[int, int], list[list[int]]]:
    """All paths of every pair of hosts, by number; acknowledgements need pairs that nobody routed."""
    found: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
    src, dst = every_pair(routes.fabric)
    known = set(zip(routes.pair_src.tolist(), routes.pair_dst.tolist(), strict=True))
    others = np.array([pair not in known for pair in zip(src.tolist(), dst.tolist(), strict=True)], bool)
    others &= _joined(routes.fabric)[src, dst]
    parts = [routes]
    if others.any():
        parts.append(shortest(routes.fabric, src[others], dst[others]))
    for part in parts:
        start = part.link_start
        for path, pair in enumerate(part.pair_of_path.tolist()):
            ends = int(part.pair_src[pair]), int(part.pair_dst[pair])
            found[ends].append(part.link[start[path] : start[path + 1]].tolist())
    return found


def _joined(fabric: Fabric) -> NDArray[np.bool_]:
    """[source host, destination host]: is there any path? Circuits of an optical switch need not join all hosts."""
    reached = [_distances(fabric, host, relay=True)[: fabric.hosts] >= 0 for host in range(fabric.hosts)]
    return np.stack(reached, axis=1)


def hashed(fabric: Fabric) -> LabTables:
    """Tables with all next hops on shortest paths; hosts forward only where switches alone do not connect them."""
    nodes = tuple(NodeTables() for _ in range(fabric.nodes))
    for host in range(fabric.hosts):
        for node, links in _next_hops(fabric, host):
            nodes[node].main[host_address(host)] = links
    return LabTables(nodes)


def _tables(chosen: dict[str, dict[str, int]]) -> NodeTables:
    """For each destination the next hop of most sources in the main table, the others by source."""
    found = NodeTables()
    for destination, by_source in chosen.items():
        usual, _ = min(Counter(by_source.values()).items(), key=lambda entry: (-entry[1], entry[0]))
        found.main[destination] = (usual,)
        for source, link in by_source.items():
            if link != usual:
                found.by_source.setdefault(source, {})[destination] = (link,)
    return found


def _next_hops(fabric: Fabric, destination: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """For every node that reaches a host, its links one hop nearer; through hosts only where there is no other path."""
    distance = _distances(fabric, destination, relay=False)
    if (distance[: fabric.hosts] < 0).any():
        distance = _distances(fabric, destination, relay=True)
    start, link = fabric.outgoing()
    for node in np.flatnonzero(distance > 0).tolist():
        out = link[start[node] : start[node + 1]]
        nearer = out[distance[fabric.link_dst[out]] == distance[node] - 1]
        yield node, tuple(nearer.tolist())


def _distances(fabric: Fabric, destination: int, *, relay: bool) -> np.ndarray:
    """Links from every node to a host; -1 where there is no path."""
    distance = np.full(fabric.nodes, -1)
    distance[destination] = 0
    start, link = fabric.incoming()
    queue = deque([destination])
    while queue:
        node = queue.popleft()
        for before in fabric.link_src[link[start[node] : start[node + 1]]].tolist():
            if distance[before] < 0:
                distance[before] = distance[node] + 1
                if relay or before >= fabric.hosts:
                    queue.append(before)
    return distance
