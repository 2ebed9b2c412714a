"""A network as the arrays that the kernels work on, and the start of a search on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.topoadopt._weights import FoundTrees, Graph, Search

_AT_A_TIME = 256
"""Trees that a kernel finds before they are looked through."""


def graph_of(network: Network) -> Graph:
    """The arrays of a network, with capacities as parts of the largest."""
    leaving = np.argsort(network.tail, kind="stable")
    first = np.searchsorted(network.tail[leaving], np.arange(network.vertices + 1))
    largest = max(network.capacity)
    return Graph(
        first=first.astype(np.int64),
        leaving=leaving.astype(np.int64),
        tail=np.ascontiguousarray(network.tail, np.int64),
        head=np.ascontiguousarray(network.head, np.int64),
        members=np.ascontiguousarray(network.members, np.int64),
        forwarders=np.flatnonzero(~network.is_member).astype(np.int64),
        mirror=np.zeros(0, np.int64) if network.mirror is None else network.mirror,
        capacity=np.array([capacity / largest for capacity in network.capacity]),
    )


def fresh_search(graph: Graph, *, turn: int = 0, floor: float = 0.0, rest: float = 0.0) -> Search:
    """Equal weights, nothing packed."""
    arcs = len(graph.capacity)
    return Search(
        weight=np.ones(arcs),
        load=np.zeros(arcs),
        best_weight=np.ones(arcs),
        bound=np.full(1, np.inf),
        packed=np.zeros(1),
        growth=np.zeros(1),
        turn=np.full(1, turn, np.int64),
        floor=np.full(1, floor),
        rest=np.full(1, rest),
        spent=np.zeros(2),
    )


def room_for_trees(graph: Graph) -> FoundTrees:
    """Space for the trees that a kernel finds at a time; a way passes every forwarder at most once."""
    members, longest = len(graph.members), len(graph.forwarders) + 1
    return FoundTrees(
        root=np.zeros(_AT_A_TIME, np.int64),
        rate=np.zeros(_AT_A_TIME),
        parent=np.zeros((_AT_A_TIME, members), np.int64),
        ways=np.full((_AT_A_TIME, members, longest), -1, np.int32),
    )


@dataclass(frozen=True, eq=False)
class SearchEnd:
    """How a search ended."""

    trees: int
    rate: float
    """What its trees carry together, in parts of the largest capacity."""
    price: Floats
    """The price of each arc that gave the least bound."""


def searched(
    graph: Graph, search: Search, pack: Callable[[], tuple[int, bool]], keep: Callable[[int], None]
) -> SearchEnd:
    """Run a kernel until it is finished, keeping its trees."""
    total = 0
    while True:
        count, finished = pack()
        keep(count)
        total += count
        if finished:
            break
    rate = float(search.packed[0] / (search.load / graph.capacity).max())
    return SearchEnd(total, rate, search.best_weight / graph.capacity)
