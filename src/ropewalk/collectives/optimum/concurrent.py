"""All-to-all: every member sends every other one the same, all at once, as fast as the links allow.

The linear program of the largest concurrent flow, with all bytes of one source as one flow: what a member keeps of a
source's flow is what passes in but not out. Where shifts of the fabric make all members alike, the flow of one source
tells those of all: shifted, they put on every link the mean of what it puts on links of that kind.

From above the answer is proved by prices of links: with y(e) for a byte over arc e, all pairs pay at least their
shortest distance, and together they cannot pay more than the sum of c(e) y(e).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag, coo_array, csr_array, hstack
from scipy.sparse.csgraph import dijkstra

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.optimum.linear_program import SIMPLEX_UP_TO, largest_first_variable
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import DENOMINATORS, common_unit, nearby
from ropewalk.collectives.optimum.rooted import narrowest_between_members

_PRICE_STEPS = 1 << 20
"""Steps that the highest price is divided into where no small fractions are found behind prices."""


@dataclass(frozen=True, eq=False)
class ConcurrentFlow:
    """The largest rate that all ordered pairs of members can have at the same time."""

    rate: float
    """Of each pair, in units of capacity."""
    sources: Ints
    """The members whose flows were computed: one where all are alike."""
    flow: Floats
    """What each of those sources puts on each arc."""
    price: Floats
    """Of a byte over each arc, at the optimum."""


def largest_concurrent_flow(network: Network) -> ConcurrentFlow:
    """Solve the linear program."""
    sources = network.sinks
    scale = float(_largest_use(network))
    conserve, demand, load, limit = _rows(network, sources)
    equal = hstack([csr_array(-demand[:, None]), conserve]).tocsr()
    rows = hstack([csr_array((len(limit), 1)), load]).tocsr()
    subject = f"all-to-all on {network.fabric.name}"
    solution = largest_first_variable(subject, rows, np.minimum(limit / scale, 1), equal, np.zeros(equal.shape[0]))
    size = np.bincount(network.arc_class)
    price = np.maximum(solution.upper_price, 0)[network.arc_class] / size[network.arc_class]
    return ConcurrentFlow(
        rate=float(solution.values[0]) * scale,
        sources=sources,
        flow=solution.values[1:].reshape(len(sources), network.arcs) * scale,
        price=price,
    )


def _largest_use(network: Network) -> Fraction:
    """What an arc can be used for at most: N - 1 pairs or more share the narrowest cut, and there are N (N - 1)."""
    largest = Fraction(max(network.capacity))
    return min(largest, len(network.members) * narrowest_between_members(network)) if network.uneven else largest


def shortest_concurrent_flow(network: Network, found: ConcurrentFlow) -> ConcurrentFlow:
    """A flow of the same rate that crosses as few links as that rate allows.

    The first linear program ends in any corner where the rate is largest, and sends bytes round where nobody minds;
    a second one with the rate given asks for the least bytes on all links. It can only fail by rounding: then the
    flow stays as it was found.
    """
    conserve, demand, load, limit = _rows(network, found.sources)
    solve: Any = linprog  # its annotations know no sparse rows
    method = "highs" if conserve.shape[1] <= SIMPLEX_UP_TO else "highs-ipm"
    everything = np.ones(conserve.shape[1])
    result = solve(
        everything, A_ub=load, b_ub=limit / found.rate, A_eq=conserve, b_eq=demand, bounds=(0, None), method=method
    )
    if result.status != 0:
        return found
    return replace(found, flow=np.asarray(result.x, np.float64).reshape(found.flow.shape) * found.rate)


def _rows(network: Network, sources: Ints) -> tuple[csr_array[Any], Floats, csr_array[Any], Floats]:
    """What vertices keep of each source's flow and how many rates that must be; what classes of arcs carry and can."""
    arcs, classes = network.arcs, int(network.arc_class.max()) + 1
    kept = [_conservation(network, int(source)) for source in sources]
    conserve = block_diag([table for table, _ in kept], format="csr")
    size = np.bincount(network.arc_class)
    # With one source for all, a class of arcs carries the source's flow over it once for every member.
    images = len(network.members) // len(sources)
    once = coo_array((images / size[network.arc_class], (network.arc_class, np.arange(arcs))), shape=(classes, arcs))
    load = hstack([once.tocsr()] * len(sources)).tocsr()
    _, arc = np.unique(network.arc_class, return_index=True)
    return (
        conserve,
        np.concatenate([demand for _, demand in kept]),
        load,
        np.array([float(network.capacity[a]) for a in arc]),
    )


def _conservation(network: Network, source: int) -> tuple[csr_array[Any], Floats]:
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
    least = least_rate_bound(network, found.price)
    return least if exact_flows(network, found, least) is not None else None


def least_rate_bound(network: Network, price: Floats) -> Fraction:
    """The least bound on the rate that prices near the given ones prove."""
    scaled = price / price.max()
    tried = [nearby(scaled, size) for size in DENOMINATORS]
    tried.append([Fraction(round(value * _PRICE_STEPS), _PRICE_STEPS) for value in scaled.tolist()])
    bounds = [bound for bound in (rate_bound(network, near) for near in tried) if bound is not None]
    # Whole prices of at most a million always prove something: no distance is too long for them to be counted.
    return min(bounds)


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


def exact_flows(network: Network, found: ConcurrentFlow, rate: Fraction) -> list[list[Fraction]] | None:
    """Flows near the solution's, in units of `rate`, that give every pair exactly that; None where none were found."""
    for denominator in DENOMINATORS:
        flows = [nearby(flow / float(rate), denominator) for flow in found.flow]
        if _reaches(network, found.sources, flows, rate):
            return flows
    return None


def _reaches(network: Network, sources: Ints, flows: list[list[Fraction]], rate: Fraction) -> bool:
    """Whether these flows, in units of `rate`, give every pair that rate within the links."""
    classes = network.arc_class
    size = np.bincount(classes)
    images = len(network.members) // len(sources)
    ends = list(zip(network.tail.tolist(), network.head.tolist(), strict=True))
    load = [Fraction(0)] * len(size)
    for source, flow in zip(sources.tolist(), flows, strict=True):
        surplus = [Fraction(0)] * network.vertices
        for arc, part in enumerate(flow):
            if part:
                tail, head = ends[arc]
                surplus[tail] -= part
                surplus[head] += part
                load[classes[arc]] += part * images
        if any(surplus[vertex] != kept for vertex, kept in enumerate(network.is_member.tolist()) if vertex != source):
            return False
    return all(
        load[classes[arc]] * rate <= int(size[classes[arc]]) * network.capacity[arc] for arc in range(network.arcs)
    )
