"""Kernels of longest paths: a topological order and one sweep over it in each direction, O(V + E)."""

from __future__ import annotations

import numpy as np

from ropewalk.compiled import kernel_ieee as kernel


@kernel
def topological_order(out_start, out_node, waits):  # type: ignore[no-untyped-def]
    """Nodes so that edges only go forward, first come first served; shorter than the graph where it has a cycle."""
    nodes = len(out_start) - 1
    left = waits.copy()
    order = np.empty(nodes, np.int64)
    count = 0
    for node in range(nodes):
        if left[node] == 0:
            order[count] = node
            count += 1
    at = 0
    while at < count:
        node = order[at]
        at += 1
        for edge in range(out_start[node], out_start[node + 1]):
            reader = out_node[edge]
            left[reader] -= 1
            if left[reader] == 0:
                order[count] = reader
                count += 1
    return order[:count]


@kernel
def longest_to(order, out_start, out_node, weight):  # type: ignore[no-untyped-def]
    """For every node the longest path that ends where it begins; its own weight is not part of it."""
    before = np.zeros(len(weight))
    for node in order:
        here = before[node] + weight[node]
        for edge in range(out_start[node], out_start[node + 1]):
            reader = out_node[edge]
            if here > before[reader]:
                before[reader] = here
    return before


@kernel
def longest_from(order, out_start, out_node, weight):  # type: ignore[no-untyped-def]
    """For every node the longest path that begins where it ends; its own weight is not part of it."""
    behind = np.zeros(len(weight))
    for at in range(len(order) - 1, -1, -1):
        node = order[at]
        for edge in range(out_start[node], out_start[node + 1]):
            reader = out_node[edge]
            there = behind[reader] + weight[reader]
            if there > behind[node]:
                behind[node] = there
    return behind


@kernel
def a_cycle(out_start, out_node, waits, order):  # type: ignore[no-untyped-def]
    """Nodes of one cycle of a graph whose topological order does not reach every node."""
    nodes = len(out_start) - 1
    stuck = np.ones(nodes, np.bool_)
    for node in order:
        stuck[node] = False
    # Every stuck node has a stuck predecessor, so walking back among them must close a cycle.
    before = np.full(nodes, -1, np.int64)
    start = -1
    for node in range(nodes):
        if stuck[node]:
            for edge in range(out_start[node], out_start[node + 1]):
                if stuck[out_node[edge]]:
                    before[out_node[edge]] = node
            start = node
    seen = np.zeros(nodes, np.bool_)
    node = start
    while not seen[node]:
        seen[node] = True
        node = before[node]
    cycle = [node]
    back = before[node]
    while back != node:
        cycle.append(back)
        back = before[back]
    return np.array(cycle[::-1])
