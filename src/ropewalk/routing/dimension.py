"""Dimension-order routing: correct one coordinate after the other, on torus, mesh, ring, hypercube and BCube.

One fixed order loads all links of an all-to-all alike, but what a single host receives comes in mostly by its links of
the last dimension. Rotating the order spreads that over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.routing.axes import Axes, axes_of
from ropewalk.routing.fit import misfit, needs_a_grid
from ropewalk.routing.routes import Router, Routes, starts, unique_pairs

_HOPS_AT_ONCE = 1 << 21
"""Hops whose links are worked out together: bounds the temporary arrays of a large all-to-all."""


def dimension(split_ties: bool = True) -> Router:
    """Correct the coordinates in a fixed order: the first axis first (the lowest digit first on BCube, hypercube).

    Half-way round an even ring both directions are equally short: `split_ties` sends half of the bytes each way (with
    a such axes, 2^a paths); without it all of them go clockwise.

    >>> from ropewalk.fabric import Torus
    >>> dimension()(Torus((4, 4)).build(), np.array([0]), np.array([10])).share
    array([0.25, 0.25, 0.25, 0.25])
    """
    return _router("dimension", rotate=False, split_ties=split_ties)


def dimension_rotated(split_ties: bool = True) -> Router:
    """Use all k rotations of the dimension order, each for 1/k of the bytes; rotations that are one path stand once."""
    return _router("dimension-rotated", rotate=True, split_ties=split_ties)


def _router(name: str, rotate: bool, split_ties: bool) -> Router:
    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        axes = axes_of(fabric.builder)
        if axes is None:
            raise misfit(name, needs_a_grid(fabric))
        pair_src, pair_dst = unique_pairs(fabric, src, dst)
        plan = _plan(axes, pair_src, pair_dst, rotate, split_ties)
        link_start = starts(axes.hops(plan.steps).sum(axis=1))
        link = np.empty(link_start[-1], np.int32)
        cuts = np.searchsorted(link_start, np.arange(0, max(1, link_start[-1]), _HOPS_AT_ONCE), "right") - 1
        for first, last in zip(cuts, [*cuts[1:], plan.paths], strict=True):
            link[link_start[first] : link_start[last]] = _links(
                axes, pair_src[plan.pair[first:last]], plan.first_axis[first:last], plan.steps[first:last]
            )
        return Routes(fabric, pair_src, pair_dst, plan.path_start, plan.share, link_start, link)

    return route


@dataclass(frozen=True, eq=False)
class _Plan:
    """The paths of all pairs before their links are known."""

    path_start: NDArray[np.int64]
    pair: NDArray[np.int64]
    share: NDArray[np.float64]
    first_axis: NDArray[np.int64]
    """The axis a path corrects first; the others follow in cyclic order."""
    steps: NDArray[np.int64]
    """Signed steps of each path along each axis."""

    @property
    def paths(self) -> int:
        return len(self.share)


def _plan(
    axes: Axes, pair_src: NDArray[np.int32], pair_dst: NDArray[np.int32], rotate: bool, split_ties: bool
) -> _Plan:
    steps, tied = axes.displacement(pair_src, pair_dst)
    tied &= split_ties
    turns = _rotations(steps != 0) if rotate else np.tile(np.arange(steps.shape[1]) == 0, (len(steps), 1))
    ties = tied.sum(axis=1)
    count = (turns > 0).sum(axis=1) << ties
    path_start = starts(count)
    pair = np.repeat(np.arange(len(steps)), count)
    # The number of a path within its pair holds one bit for each tie, and above them which rotation it is.
    number = np.arange(len(pair)) - path_start[:-1][pair]
    bit = np.maximum(np.cumsum(tied, axis=1) - 1, 0)[pair]
    backwards = tied[pair] & ((number[:, None] >> bit & 1) == 1)
    used_first = np.argsort(turns == 0, axis=1, kind="stable")
    first_axis = used_first[pair, number >> ties[pair]]
    share = turns[pair, first_axis] / turns.sum(axis=1)[pair] / 2.0 ** ties[pair]
    return _Plan(path_start, pair, share, first_axis, np.where(backwards, -steps[pair], steps[pair]))


def _rotations(moves: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many of the k rotated orders begin, for each pair, with each of the axes along which it moves."""
    pairs, k = moves.shape
    turns = np.zeros((pairs, k), np.int64)
    following = np.argmax(moves, axis=1)  # past the last axis, the first one that moves comes next
    for start in reversed(range(k)):
        following = np.where(moves[:, start], start, following)
        turns[np.arange(pairs), following] += 1
    return turns


def _links(
    axes: Axes, src: NDArray[np.int32], first_axis: NDArray[np.int64], steps: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Links of all paths, one behind the other, in travel order."""
    k = len(axes.sides)
    axis = (first_axis[:, None] + np.arange(k)) % k
    steps = np.take_along_axis(steps, axis, axis=1)
    side, weight = axes.sides[axis], axes.weights[axis]
    at = src[:, None] // weight % side
    shift = ((at + steps) % side - at) * weight
    # A leg begins where the legs before it have led.
    corner = src[:, None] + np.cumsum(shift, axis=1) - shift
    moves = steps != 0
    return axes.links(axis[moves], corner[moves], steps[moves])
