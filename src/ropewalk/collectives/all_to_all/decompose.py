"""From what each source puts on every arc to ways with amounts for each pair.

A flow of one source to everybody falls apart into ways to single destinations (Ford and Fulkerson 1962): each way that
is taken out empties an arc or satisfies a destination, so there are at most as many as arcs and members together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from ropewalk.arrays import Ints
from ropewalk.collectives.all_to_all._trace import take_path
from ropewalk.collectives.all_to_all.balance import balanced_flow
from ropewalk.collectives.all_to_all.paths import PairPaths
from ropewalk.collectives.optimum.concurrent import (
    ConcurrentFlow,
    exact_flows,
    largest_concurrent_flow,
    least_rate_bound,
    shortest_concurrent_flow,
)
from ropewalk.collectives.optimum.network import Network
from ropewalk.errors import PhysicsError, ProgramError

STEPS = 1 << 34
"""Whole numbers that a pair's rate is divided into where a flow has no small fractions."""

SOLVED_UP_TO = 70_000
"""Variables (arcs times sources) up to which the linear program is solved; beyond, flows are balanced with a gap.

Where shifts make all members alike there is one source, and the linear program is always solved."""

SHORTENED_UP_TO = 20_000
"""Variables up to which a second linear program looks for shorter ways."""

_LARGEST = 1 << 62
"""Sums stay below this in compiled code."""


def best_paths(network: Network) -> PairPaths:
    """Ways of all pairs that reach the largest rate that all of them can have together.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Mesh
    >>> paths = best_paths(network_of(Mesh((4, 4), bandwidth=1e9).build()))
    >>> paths.algbw, paths.gap
    (Fraction(1000000000, 1), Fraction(0, 1))
    """
    if not network.equal_shards:
        raise ProgramError("an all-to-all of unequal shards has no single bandwidth: leave the shards out")
    if network.symmetry is None and len(network.members) * network.arcs > SOLVED_UP_TO:
        return paths_of_flow(network, balanced_flow(network), fractions=False)
    found = largest_concurrent_flow(network)
    if found.flow.size <= SHORTENED_UP_TO:
        found = shortest_concurrent_flow(network, found)
    return paths_of_flow(network, found)


def paths_of_flow(network: Network, found: ConcurrentFlow, *, fractions: bool = True) -> PairPaths:
    """Ways of all pairs that put on the arcs what a concurrent flow does; `fractions` looks for those behind it."""
    bound = least_rate_bound(network, found.price)
    flows = exact_flows(network, found, bound) if fractions else None
    if flows is None:
        whole = STEPS
        amounts: list[NDArray[Any]] = [np.rint(flow / found.rate * whole).astype(np.int64) for flow in found.flow]
    else:
        whole = math.lcm(*{part.denominator for flow in flows for part in flow})
        small = whole * len(network.members) < _LARGEST
        kind = np.int64 if small else object
        amounts = [np.array([int(part * whole) for part in flow], kind) for flow in flows]
    source, destination, amount, hops, arcs = [], [], [], [], []
    for start, flow in zip(found.sources.tolist(), amounts, strict=True):
        for end, carried, path in _ways(network, start, flow, whole):
            source.append(start)
            destination.append(end)
            amount.append(carried)
            hops.append(len(path))
            arcs.append(path)
    return PairPaths(
        network=network,
        source=np.array(source, np.int64),
        destination=np.array(destination, np.int64),
        amount=tuple(amount),
        whole=whole,
        arc_start=np.concatenate([[0], np.cumsum(hops)]).astype(np.int64),
        arc=np.concatenate(arcs),
        bound=bound,
    )


def _ways(network: Network, source: int, flow: NDArray[Any], whole: int) -> Iterator[tuple[int, int, Ints]]:
    """Destination, amount and arcs of every way; the amounts of a destination add up to `whole`."""
    order = np.argsort(network.head, kind="stable")
    first = np.searchsorted(network.head[order], np.arange(network.vertices + 1))
    depth = _links_away(network, source, flow > 0)
    place, path = np.full(network.vertices, -1), np.zeros(network.vertices + 1, np.int64)
    take: Any = take_path if flow.dtype != object else take_path.py_func
    near_first = network.members[np.argsort(depth[network.members], kind="stable")].tolist()
    for destination in near_first:
        if destination == source:
            continue
        left = whole
        found: list[tuple[int, Ints]] = []
        while left:
            ends = np.array([source, destination])
            hops, amount = take(first, order, network.tail, depth, flow, ends, left, place, path)
            if hops == 0:
                break
            found.append((int(amount), path[:hops][::-1].copy()))
            left -= int(amount)
        if not found:
            names = network.fabric.node_names
            raise PhysicsError(
                f"all-to-all on {network.fabric.name}: no flow from {names[source]} arrives at {names[destination]}"
            )
        # What rounding has lost goes the fullest way.
        fullest = max(range(len(found)), key=lambda number: found[number][0])
        for number, (amount, arcs) in enumerate(found):
            yield destination, amount + (left if number == fullest else 0), arcs


def _links_away(network: Network, source: int, used: NDArray[np.bool_]) -> Ints:
    """Links from the source over used arcs; vertices that are not reached are further away than any."""
    ends = (network.tail[used], network.head[used])
    graph = coo_array((np.ones(int(used.sum())), ends), shape=(network.vertices, network.vertices)).tocsr()
    distance = dijkstra(graph, indices=np.array([source]), unweighted=True)[0]
    return np.where(np.isfinite(distance), distance, network.vertices).astype(np.int64)
