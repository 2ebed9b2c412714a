"""Optima the long way: every cut, every partition, and linear programs with a flow for every member written out."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

Link = tuple[int, int, Fraction]


def gather_by_all_cuts(hosts: int, nodes: int, links: list[Link], weight: list[int] | None = None) -> Fraction:
    """The least over all cuts of total weight times capacity over weight inside."""
    weight = weight or [1] * hosts
    return min(
        Fraction(sum(weight)) * capacity / inside
        for chosen, capacity in all_cuts(hosts, nodes, links)
        if (inside := sum(weight[host] for host in chosen if host < hosts))
    )


def all_cuts(hosts: int, nodes: int, links: list[Link]) -> Iterator[tuple[frozenset[int], Fraction]]:
    """Every set of nodes with some of the hosts but not all, and the capacity of links out of it."""
    for size in range(1, nodes):
        for chosen in map(frozenset, combinations(range(nodes), size)):
            if 0 < sum(node < hosts for node in chosen) < hosts:
                yield chosen, sum((c for u, v, c in links if u in chosen and v not in chosen), Fraction(0))


def strength_by_all_partitions(nodes: int, links: list[Link]) -> Fraction:
    """The least bandwidth between parts over parts less one, of links given both ways."""
    return min(
        sum((c for u, v, c in links if part[u] != part[v]), Fraction(0)) / 2 / max(part)
        for part in _partitions(nodes)
        if max(part)
    )


def _partitions(nodes: int) -> Iterator[list[int]]:
    def grow(part: list[int]) -> Iterator[list[int]]:
        if len(part) == nodes:
            yield part
            return
        for label in range(max(part) + 2):
            yield from grow([*part, label])

    return grow([0])


def sharing_by_flows(
    hosts: int, nodes: int, links: list[Link], *, share: list[float] | None, reduces: bool, copying: bool = False
) -> float:
    """The largest X: x(v) bytes/s have root v, and every host is reached by a flow of X within g (and h backwards).

    Variables: X, x of every host, then for spreading (and reducing) g of every link and a flow of every host over
    links and over arcs from an outer source to every host.
    """
    m, parts = len(links), 1 + reduces
    block = m + hosts * (m + hosts)
    width = 1 + hosts + parts * block
    upper: list[np.ndarray] = []
    limit: list[float] = []
    equal: list[np.ndarray] = []

    def row() -> np.ndarray:
        return np.zeros(width)

    total = row()
    total[0] = 1
    total[1 : 1 + hosts] = -1
    equal.append(total)
    if share is not None:
        for host in range(hosts):
            fixed = row()
            fixed[0], fixed[1 + host] = -share[host], 1
            equal.append(fixed)
    for e, (_, _, capacity) in enumerate(links):
        within = row()
        for part in range(parts):
            within[1 + hosts + part * block + e] = 1
        upper.append(within)
        limit.append(float(capacity))
    for part in range(parts):
        g = 1 + hosts + part * block
        ends = [(u, v) if part == 0 else (v, u) for u, v, _ in links]
        if not copying:
            for switch in range(hosts, nodes):
                balance = row()
                for e, (u, v) in enumerate(ends):
                    balance[g + e] += (v == switch) - (u == switch)
                equal.append(balance)
        for sink in range(hosts):
            f = g + m + sink * (m + hosts)
            for e in range(m):
                below = row()
                below[f + e], below[g + e] = 1, -1
                upper.append(below)
                limit.append(0.0)
            for host in range(hosts):
                below = row()
                below[f + m + host], below[1 + host] = 1, -1
                upper.append(below)
                limit.append(0.0)
            for node in range(nodes):
                kept = row()
                for e, (u, v) in enumerate(ends):
                    kept[f + e] += (v == node) - (u == node)
                if node < hosts:
                    kept[f + m + node] += 1
                if node == sink:
                    kept[0] = -1
                equal.append(kept)
    objective = row()
    objective[0] = -1
    solved = linprog(
        objective, A_ub=np.array(upper), b_ub=limit, A_eq=np.array(equal), b_eq=np.zeros(len(equal)), method="highs"
    )
    assert solved.status == 0, solved.message
    return float(solved.x[0])


def concurrent_by_pairs(hosts: int, nodes: int, links: list[Link]) -> float:
    """The largest rate that every ordered pair of hosts has at once, with a flow of its own for each pair."""
    m = len(links)
    pairs = [(s, t) for s in range(hosts) for t in range(hosts) if s != t]
    width = 1 + m * len(pairs)
    equal = np.zeros((len(pairs) * (nodes - 1), width))
    at = 0
    for number, (s, t) in enumerate(pairs):
        for node in range(nodes):
            if node == s:
                continue
            for e, (u, v, _) in enumerate(links):
                equal[at, 1 + number * m + e] += (v == node) - (u == node)
            equal[at, 0] = -1.0 if node == t else 0.0
            at += 1
    upper = np.hstack([np.zeros((m, 1)), *[np.eye(m)] * len(pairs)])
    objective = np.zeros(width)
    objective[0] = -1
    capacity = [float(c) for _, _, c in links]
    solved = linprog(objective, A_ub=upper, b_ub=capacity, A_eq=equal, b_eq=np.zeros(at), method="highs")
    assert solved.status == 0, solved.message
    return float(solved.x[0])
