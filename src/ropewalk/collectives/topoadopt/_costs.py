"""What the cheapest columns cost under given prices, the kernels: exactly, where prices are whole numbers."""

from __future__ import annotations

import numpy as np
from numba import njit

from ropewalk.collectives.optimum._push_relabel import INT
from ropewalk.collectives.optimum.linear_program import FLOAT
from ropewalk.collectives.topoadopt._arborescence import cheapest_arborescence, cheapest_spanning_tree
from ropewalk.collectives.topoadopt._ways import shortest_ways
from ropewalk.collectives.topoadopt._weights import Graph


@njit(cache=True, nogil=True)
def _between(graph: Graph, price: FLOAT) -> FLOAT:
    n = len(graph.members)
    between = np.empty((n, n))
    last = np.empty((n, len(graph.first) - 1), np.int64)
    shortest_ways(graph.first, graph.leaving, graph.head, graph.members, graph.forwarders, price, between, last)
    return between


@njit(cache=True, nogil=True)
def cost_both_ways(graph: Graph, price: FLOAT) -> float:
    """The cheapest tree one way, under prices that are equal both ways."""
    cost: float = cheapest_spanning_tree(_between(graph, price), np.empty(len(graph.members), np.int64))
    return cost


@njit(cache=True, nogil=True)
def costs_of_roots(graph: Graph, price: FLOAT, backwards: bool) -> FLOAT:
    """The cheapest tree out of each member, or into it."""
    between = _between(graph, price)
    if backwards:
        between = between.T.copy()
    parent: INT = np.empty(len(between), np.int64)
    costs = np.empty(len(between))
    for root in range(len(between)):
        costs[root] = cheapest_arborescence(between, root, parent)
    return costs
