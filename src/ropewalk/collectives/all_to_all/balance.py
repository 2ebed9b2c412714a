"""Nearly the largest concurrent flow, where its linear program is too large: with a bound that says how near.

Every source starts on its shortest ways. Sweeps then move flow away from full arcs (`_sweep.py`), with prices that get
sharper as the fullest arc comes near what the prices prove to be unavoidable. Both ends are kept: the best flow, and
the best bound on any flow's rate.
"""

from __future__ import annotations

import math

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.all_to_all._sweep import cheapest_tree, paid_distances, sweep, tree_load
from ropewalk.collectives.optimum.concurrent import ConcurrentFlow
from ropewalk.collectives.optimum.network import Network

NEAR_ENOUGH = 0.005
"""The gap between the rate and its bound at which sweeps end."""

MOST_SWEEPS = 400

_CHECKED_EVERY = 4
"""Sweeps between two bounds, each of which costs as many searches as a sweep."""

_FIRST_SHARPNESS, _LAST_SHARPNESS = 3.0, 300.0
"""Sharpness of prices, as multiples of the logarithm of the arcs: its inverse is about the gap that can be reached."""

_SHARPNESS_OF_GAP = 0.25
"""Sharpness times gap: sharper prices make sources jump, blunter ones stop short of the optimum."""

_STUCK, _SHARPENED = 0.97, 1.2
"""A gap that stays above this part of the one before has come to the end of what its prices can do: they sharpen."""

_REMEMBERED = 0.9
"""The part of earlier prices that a mean of prices keeps from sweep to sweep; means prove better bounds."""


def balanced_flow(
    network: Network, *, near_enough: float = NEAR_ENOUGH, most_sweeps: int = MOST_SWEEPS
) -> ConcurrentFlow:
    """A concurrent flow with prices that prove it to be near the largest one, on a network without known symmetry.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Mesh
    >>> 0.99 < balanced_flow(network_of(Mesh((4, 4), bandwidth=16.0).build())).rate * 16 <= 1
    True
    """
    assert network.symmetry is None, "prices that differ within a class of arcs prove nothing for one source alone"
    order = np.argsort(network.tail, kind="stable")
    first = np.searchsorted(network.tail[order], np.arange(network.vertices + 1))
    capacity = np.array(network.capacity, np.float64)
    sources = network.members
    flow = _shortest_ways(network, first, order)
    load = flow.sum(axis=0)
    unit = math.log(network.arcs + 2)
    sharpness = _FIRST_SHARPNESS
    least, bound, gap = math.inf, math.inf, math.inf
    best, price, mean = flow.copy(), np.ones(network.arcs), np.zeros(network.arcs)
    for number in range(most_sweeps):
        sweep(
            first, order, network.tail, network.head, capacity, sources, network.is_member, sharpness * unit, flow, load
        )
        load = flow.sum(axis=0)  # what adding up differences has rounded away
        filled = load / capacity
        if filled.max() < least:
            least = float(filled.max())
            best[:] = flow
        asked = np.exp(sharpness * unit * (filled / filled.max() - 1)) / capacity
        mean = _REMEMBERED * mean + asked / (capacity @ asked)
        if number % _CHECKED_EVERY:
            continue
        paid = paid_distances(first, order, network.head, mean, sources, network.is_member, network.vertices)
        if (allowed := float(capacity @ mean) / paid) < bound:
            bound, price = allowed, mean
        before, gap = gap, bound * least - 1
        if gap <= near_enough:
            break
        stuck = gap > _STUCK * before
        sharpness = min(_LAST_SHARPNESS, max(sharpness * (_SHARPENED if stuck else 1.0), _SHARPNESS_OF_GAP / gap))
    return ConcurrentFlow(rate=1 / least, sources=sources, flow=best / least, price=price)


def _shortest_ways(network: Network, first: Ints, order: Ints) -> Floats:
    """Every source's bytes on a tree of ways with the fewest links."""
    vertices = network.vertices
    distance, parent = np.empty(vertices), np.empty(vertices, np.int64)
    reach, below = np.empty(vertices, np.int64), np.empty(vertices)
    flow = np.zeros((len(network.members), network.arcs))
    for row, source in enumerate(network.members.tolist()):
        reached = cheapest_tree(first, order, network.head, np.ones(network.arcs), source, distance, parent, reach)
        tree_load(network.tail, parent, reach, reached, network.is_member, below, flow[row])
    return flow
