"""Edge-disjoint Hamiltonian cycles of tori: the rings that a ring all-reduce can run at the same time.

A torus with k sides of 3 or more decomposes into k cycles that use every edge once. One dimension is added at a time:
let G be decomposed into cycles H1 … Hr and add an axis of n layers. The torus (axis × H1) gives two cycles, of which
the one that mostly runs along the axis is the *thread*. Every other Hj has n copies, one a layer, which are sewn
together layer by layer: an edge (u, w) of two neighbouring copies is given to the thread in exchange for the thread's
two edges at u and w between the layers. Where the thread runs the same way at u and w, it stays one cycle.

Two sides of size 2 make a cycle of length 4. A last one doubles the graph, and its edges alone sew the copies together;
half of the neighbours across it stay unused, as the degree is odd. Sides of size 1 do not count.

BCube(n, k) has the torus n^k inside it (a neighbour along axis l is one level-l switch away), a hypercube is 2^k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.torus_cycles import two_cycles
from ropewalk.errors import ProgramError


def hamiltonian_cycles(shape: Sequence[int]) -> list[Ints]:
    """As many edge-disjoint Hamiltonian cycles as the torus of this shape has, as orders of its hosts.

    That is one for every side of 3 or more and one for every two sides of size 2 (one at least: two hosts have the
    cycle there and back). Hosts are numbered with the first axis most significant. Where no way to sew the layers
    together is found, there are fewer cycles; every shape that has been tried has them all.

    >>> [len(order) for order in hamiltonian_cycles((3, 3, 3))]
    [27, 27, 27]
    """
    if math.prod(shape) < 2:
        raise ProgramError(f"a torus of shape {'x'.join(map(str, shape))} has no cycle: give it at least 2 hosts")
    return [order.copy() for order in _cycles_of(tuple(shape))]


@lru_cache(maxsize=64)
def _cycles_of(shape: tuple[int, ...]) -> tuple[Ints, ...]:
    double = [axis for axis, side in enumerate(shape) if side == 2]
    factors: list[tuple[int, tuple[int, ...]]] = [(side, (axis,)) for axis, side in enumerate(shape) if side > 2]
    factors += [(4, pair) for pair in zip(double[0::2], double[1::2], strict=False)]
    factors.sort(key=lambda factor: -factor[0])  # layers are easier to sew when there are fewer of them than places
    cycles: list[Ints] = []
    for length, _ in factors:
        cycles = _times_cycle(length, cycles) if cycles else [np.arange(length)]
    if len(double) % 2:
        cycles = _doubled(cycles) if cycles else [np.arange(2)]
        factors.append((2, (double[-1],)))
    # Vertices so far count the factors in this order, the first one least significant.
    vertex = np.arange(math.prod(shape))
    host = np.zeros_like(vertex)
    for length, axes in factors:
        host += _offset(shape, axes)[vertex % length]
        vertex //= length
    return tuple(host[order] for order in cycles)


def _offset(shape: tuple[int, ...], factor: tuple[int, ...]) -> NDArray[np.int64]:
    """What each place on a factor adds to the host number: one axis, or a square of two axes walked around."""
    weight = [math.prod(shape[axis + 1 :]) for axis in factor]
    if len(factor) == 1:
        return np.arange(shape[factor[0]]) * weight[0]
    return np.array([0, weight[0], weight[0] + weight[1], weight[1]])


def _times_cycle(layers: int, cycles: list[Ints]) -> list[Ints]:
    """Decompose (cycle of `layers`) × G, where G is decomposed into `cycles`; vertex (layer, v) is layer*|G| + v."""
    places = len(cycles[0])
    pair = two_cycles(layers, places)
    drawn: list[Ints] = []
    # Turned along the first cycle, the pair meets the other cycles differently; the first turns nearly always fit.
    for turn in range(places):
        turned = np.roll(cycles[0], -turn)
        drawn = [place // places * places + turned[place % places] for place in pair]
        along, thread = sorted(drawn, key=lambda order: _edges_between_layers(order, places))
        sewn = _sew_all(thread, cycles[1:], layers)
        if sewn is not None:
            return [along, *sewn]
    return drawn  # no shape is known for which this happens; two of the cycles are still right


def _edges_between_layers(order: Ints, places: int) -> int:
    return int(np.count_nonzero(order // places != np.roll(order, -1) // places))


def _sew_all(thread: Ints, cycles: list[Ints], layers: int) -> list[Ints] | None:
    """The thread and the joined cycles, or None where the thread fits nowhere."""
    joined: list[Ints] = []
    for cycle in cycles:
        sewn = _sew_layers(thread, cycle, layers)
        if sewn is None:
            return None
        thread = sewn[0]
        joined.append(sewn[1])
    return [thread, *joined]


def _sew_layers(thread: Ints, cycle: Ints, layers: int) -> tuple[Ints, Ints] | None:
    """Join the copies of `cycle` in all layers into one, at the expense of the thread."""
    places = len(cycle)
    joined = cycle
    fresh = np.ones(places, bool)
    for layer in range(layers - 1):
        position = np.empty(len(thread), np.int64)
        position[thread] = np.arange(len(thread))
        here, there = position[layer * places + cycle], position[(layer + 1) * places + cycle]
        # +1 where the thread goes on to the next layer, -1 where it comes from there, 0 where it does neither.
        way = ((there - here) % len(thread) == 1).astype(np.int64) - ((here - there) % len(thread) == 1)
        fits = (way != 0) & (way == np.roll(way, -1)) & fresh
        if not fits.any():
            return None
        edge = int(np.argmax(fits))
        ends = [edge, (edge + 1) % places]
        low, high = sorted((here if way[edge] > 0 else there)[ends].tolist())
        thread = np.concatenate([thread[: low + 1], thread[low + 1 : high + 1][::-1], thread[high + 1 :]])
        u, w = (layer * places + cycle[ends]).tolist()
        joined = _joined(joined, u, w, (layer + 1) * places + cycle, edge)
        fresh = np.arange(places) != edge  # in the next layer, this edge belongs to the thread now
    return thread, joined


def _joined(whole: Ints, u: int, w: int, copy: Ints, edge: int) -> Ints:
    """Open `whole` at its edge (u, w) and the copy of the next layer at the same edge, and join the ends crosswise."""
    at = int(np.flatnonzero(whole == u)[0])
    # Either way the path runs from w to u, and the copy is walked from u to w.
    path = np.roll(whole, -(at + 1)) if whole[(at + 1) % len(whole)] == w else np.roll(whole, -at)[::-1]
    return np.concatenate([path, np.roll(copy, -(edge + 1))[::-1]])


def _doubled(cycles: list[Ints]) -> list[Ints]:
    """Two copies of every cycle joined at one edge each, with no vertex used by two of these edges."""
    places = len(cycles[0])
    free = np.ones(places, bool)
    doubled = []
    for cycle in cycles:
        edge = int(np.argmax(free[cycle] & free[np.roll(cycle, -1)]))
        u, w = int(cycle[edge]), int(cycle[(edge + 1) % places])
        free[[u, w]] = False
        doubled.append(_joined(cycle, u, w, places + cycle, edge))
    return doubled
