"""What the cheapest columns cost under given prices, the kernels: exactly, where prices are whole numbers."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.topoadopt._arborescence import cheapest_arborescence, cheapest_spanning_tree
from ropewalk.collectives.topoadopt._ways import shortest_ways
from ropewalk.collectives.topoadopt._weights import Graph
from ropewalk.compiled import kernel


@kernel
def _between(graph: Graph, price: Floats) -> Floats:
    n = len(graph.members)
    between = np.empty((n, n))
    last = np.empty((n, len(graph.first) - 1), np.int64)
    shortest_ways(graph.first, graph.leaving, graph.head, graph.members, graph.forwarders, price, between, last)
    return between


@kernel
def cost_both_ways(graph: Graph, price: Floats) -> float:
    """The cheapest tree one way, under prices that are equal both ways."""
    cost: float = cheapest_spanning_tree(_between(graph, price), np.empty(len(graph.members), np.int64))
    return cost


@kernel
def costs_of_roots(graph: Graph, price: Floats, backwards: bool) -> Floats:
    """The cheapest tree out of each member, or into it."""
    between = _between(graph, price)
    if backwards:
        between = between.T.copy()
    parent: Ints = np.empty(len(between), np.int64)
    costs = np.empty(len(between))
    for root in range(len(between)):
        costs[root] = cheapest_arborescence(between, root, parent)
    return costs
