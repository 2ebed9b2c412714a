"""All-to-all: every member sends every other one the same, all at once, as fast as the links allow.

The linear program of the largest concurrent flow, with all bytes of one source as one flow: what a member keeps of a
source's flow is what passes in but not out. Where shifts of the fabric make all members alike, the flow of one source
tells those of all: shifted, they put on every link the mean of what it puts on links of that kind.

From above the answer is proved by prices of links: with y(e) for a byte over arc e, all pairs pay at least their
shortest distance, and together they cannot pay more than the sum of c(e) y(e).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import block_diag, coo_array, csr_array, hstack
from scipy.sparse.csgraph import dijkstra

from ropewalk.collective.optimum._push_relabel import INT
from ropewalk.collective.optimum.linear_program import FLOAT, largest_first_variable
from ropewalk.collective.optimum.network import Network
from ropewalk.collective.optimum.rational import DENOMINATORS, common_unit, nearby


@dataclass(frozen=True, eq=False)
class ConcurrentFlow:
    """The largest rate that all ordered pairs of members can have at the same time."""

    rate: float
    """Of each pair, in units of capacity."""
    sources: INT
    """The members whose flows were computed: one where all are alike."""
    flow: FLOAT
    """What each of those sources puts on each arc."""
    price: FLOAT
    """Of a byte over each arc, at the optimum."""


def largest_concurrent_flow(network: Network) -> ConcurrentFlow:
    """Solve the linear program."""
    sources = network.sinks
    arcs, classes = network.arcs, int(network.arc_class.max()) + 1
    scale = float(max(network.capacity))
    conserve, rates = [], []
    for source in sources:
        kept, demand = _conservation(network, int(source))
        conserve.append(kept)
        rates.append(demand)
    equal = hstack([csr_array(-np.concatenate(rates)[:, None]), block_diag(conserve, format="csr")]).tocsr()
    size = np.bincount(network.arc_class)
    # With one source for all, a class of arcs carries the source's flow over it once for every member.
    images = len(network.members) // len(sources)
    once = coo_array((images / size[network.arc_class], (network.arc_class, np.arange(arcs))), shape=(classes, arcs))
    load = hstack([csr_array((classes, 1)), *([once.tocsr()] * len(sources))]).tocsr()
    _, arc = np.unique(network.arc_class, return_index=True)
    limit = np.array([network.capacity[a] / scale for a in arc])
    subject = f"all-to-all on {network.fabric.name}"
    solution = largest_first_variable(subject, load, limit, equal, np.zeros(equal.shape[0]))
    price = np.maximum(solution.upper_price, 0)[network.arc_class] / size[network.arc_class]
    return ConcurrentFlow(
        rate=float(solution.values[0]) * scale,
        sources=sources,
        flow=solution.values[1:].reshape(len(sources), arcs) * scale,
        price=price,
    )


def _conservation(network: Network, source: int) -> tuple[csr_array[Any], FLOAT]:
    """In minus out of every vertex but the source, and how many rates it keeps: one for a member, none otherwise."""
    place = np.arange(network.vertices)
    place[source:] -= 1
    place[source] = -1
    row = np.concatenate([place[network.head], place[network.tail]])
    sign = np.repeat([1.0, -1.0], network.arcs)
    column = np.tile(np.arange(network.arcs), 2)
    kept = row >= 0
    shape = (network.vertices - 1, network.arcs)
    table = coo_array((sign[kept], (row[kept], column[kept])), shape=shape).tocsr()
    return table, np.delete(network.is_member.astype(float), source)


def proved_rate(network: Network, found: ConcurrentFlow) -> Fraction | None:
    """The rate as a fraction that is reached and cannot be exceeded; None where nearby fractions prove nothing."""
    bounds = [rate_bound(network, nearby(found.price / found.price.max(), size)) for size in DENOMINATORS]
    known = [bound for bound in bounds if bound is not None]
    if not known:
        return None
    least = min(known)
    return least if any(_reaches(network, found, least, size) for size in DENOMINATORS) else None


def rate_bound(network: Network, price: list[Fraction]) -> Fraction | None:
    """No rate of all pairs is larger than what links can earn over what one byte of every pair must pay.

    Prices of 1 for every arc give the bound of distances in links.
    """
    unit = common_unit(price)
    if unit == 0:
        return None
    whole = [int(value / unit) for value in price]
    if max(whole) * network.vertices >= 1 << 52:
        return None  # distances would be rounded
    # A stored zero would read as no arc at all, so distances are counted in V steps a unit plus 1 for every arc.
    steps = network.vertices
    length = np.array(whole, np.float64) * steps + 1
    if length.max() * network.vertices >= 1 << 52:
        return None
    shape = (network.vertices, network.vertices)
    graph = coo_array((length, (network.tail, network.head)), shape=shape).tocsr()
    distance = dijkstra(graph, indices=network.sinks)[:, network.members]
    paid = sum(int(value) for value in (distance // steps).ravel()) * len(network.members) // len(network.sinks)
    earned = sum(cost * capacity for cost, capacity in zip(whole, network.capacity, strict=True))
    return Fraction(earned, paid) if paid else None


def _reaches(network: Network, found: ConcurrentFlow, rate: Fraction, denominator: int) -> bool:
    """Whether flows near the solution's give every pair exactly this rate within the links."""
    classes = network.arc_class
    size = np.bincount(classes)
    images = len(network.members) // len(found.sources)
    load = [Fraction(0)] * len(size)
    for source, flow in zip(found.sources.tolist(), found.flow, strict=True):
        part = [value * rate for value in nearby(flow / float(rate), denominator)]
        surplus = [Fraction(0)] * network.vertices
        for arc, (tail, head) in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True)):
            surplus[tail] -= part[arc]
            surplus[head] += part[arc]
            load[classes[arc]] += part[arc] * images
        kept = [rate if network.is_member[vertex] else Fraction(0) for vertex in range(network.vertices)]
        if any(surplus[vertex] != kept[vertex] for vertex in range(network.vertices) if vertex != source):
            return False
    return all(load[classes[arc]] <= int(size[classes[arc]]) * network.capacity[arc] for arc in range(network.arcs))
