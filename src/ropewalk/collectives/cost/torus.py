"""Closed forms on a torus (a ring is the torus of one axis): two links along every axis of three or more hosts.

An axis of two hosts has one duplex link, an axis of one host has none. Along an even axis what goes to the opposite
host is split, half each way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import prod

from ropewalk.collectives.cost import rings
from ropewalk.collectives.cost.form import HASHED, ClosedForm, Derivation, exact, written
from ropewalk.fabric import Torus


def mesh(torus: Torus, routing: str) -> ClosedForm:
    """The slowest axis decides: uniform traffic travels a quarter of it on average, over two links for each host."""
    side = max(_axes(torus), key=_all_to_all)
    term = ("n/4", "(n²-1)/(4n)")[side % 2] if side > 2 else "1"
    form = exact(2 * _all_to_all(side), 2, written(term, "2"), f"axis of n = {side}")
    return form.as_bound(HASHED) if routing == "hashed" else form


def printed_mesh(torus: Torus) -> ClosedForm | None:
    """The published form for a torus of k equal axes, larger than the load of the hottest link by k(1 + 4/n)."""
    axes = _axes(torus)
    side, count = axes[0], len(axes)
    if len(set(axes)) > 1 or count * (side + 4) % 2:
        return None
    note = "as published; the hottest link carries k(1 + 4/n) times less"
    if side % 4:
        note += "; published for n divisible by 4"
    term = Fraction(count * (side + 4), 4)
    return ClosedForm(term, count * (side + 4) // 2, "paper", written("k(n+4)/4", "k(n+4)/2 "), note)


def server(torus: Torus, routing: str) -> ClosedForm:
    """The links of the server are the hottest; rotated orders spread the transfers over all of its axes."""
    axes = _axes(torus)
    links = sum(map(_links, axes))
    equal = len(set(axes)) == 1
    if routing == "hashed":
        even = exact(Fraction(2 * (torus.hosts - 1), links), 2, written("2(N-1)/c", "2"), f"c = {links} links per host")
        return even.as_bound(HASHED)
    if routing == "dimension":
        # Pushing ends along the axis that is travelled last, pulling starts along the one that is travelled first.
        term = _alone_on_axis(axes, -1) + _alone_on_axis(axes, 0)
        formula = "(n-1)n^(k-1)" if equal and axes[0] > 2 else "Σ (last and first axis) (n-1)N/n/links"
        return exact(term, 2, written(formula, "2"), "one fixed order: most transfers end on one axis")
    if equal and len(axes) == len(torus.shape):
        term = Fraction(2 * (torus.hosts - 1), links)
        return exact(term, 2, written("(N-1)/k" if axes[0] > 2 else "2(N-1)/k", "2"))
    push, pull = (max(_rotated_loads(torus.shape, end)) for end in (-1, 0))
    return exact(push + pull, 2, written("Σ (push and pull) max over axes of transfers/links", "2"))


def hips(torus: Torus, routing: str) -> ClosedForm | None:
    """k rotated processes, in each axis a ring in both directions: every link works in every round.

    Axes of different length fall out of step, so that two processes meet on one axis; that is counted, not written.
    """
    axes = _axes(torus)
    if len(set(axes)) > 1:
        return None
    side, count = axes[0], len(axes)
    term = Fraction(2 * (torus.hosts - 1), _links(side) * count * torus.hosts)
    formula = "(N-1)/(kN)" if side > 2 else "2(N-1)/(kN)"
    return exact(term, 2 * count * (side - 1), written(formula, "2k(n-1)"))


def halving_doubling(torus: Torus, routing: str) -> ClosedForm | None:
    """Partners 1, 2, 4 … apart along the last axis, then along the one before it, each time with half of the bytes.

    At distance d < n/2 the link in the middle of a block carries d transfers, which cancels the halving: every
    doubling along an axis takes as long as the first one. The last one, between opposites, goes both ways round.
    """
    axes = _axes(torus)
    if torus.hosts & (torus.hosts - 1):
        return None
    term, held = Fraction(0), Fraction(1)
    for side in reversed(axes):
        doublings = side.bit_length() - 1
        term += held * (Fraction(2 * doublings - 1, 2) if side > 2 else 1)
        held /= side
    formula = "Σ axes (log₂n - 1/2) · (bytes held)/P" if len(axes) > 1 else "(log₂N - 1/2)"
    note = "an axis of 2 counts 1" if 2 in axes else ""
    form = exact(term, 2 * (torus.hosts.bit_length() - 1), written(formula, "2 log₂N "), note)
    return form.as_bound(HASHED) if routing == "hashed" and max(axes) > 2 else form


def _axes(torus: Torus) -> list[int]:
    return [side for side in torus.shape if side > 1]


def _links(side: int) -> int:
    """Directed links by which a host leaves along an axis."""
    return 2 if side > 2 else 1


def _all_to_all(side: int) -> Fraction:
    """Share of P on a link of an axis when every host sends P/N to every host."""
    mean_distance = Fraction(side * side // 4, side)
    return mean_distance / _links(side)


def _alone_on_axis(axes: Sequence[int], axis: int) -> Fraction:
    """Transfers on each of the server's links along the axis when all that can take it do."""
    side = axes[axis]
    return Fraction((side - 1) * prod(axes), side * _links(side))


def _rotated_loads(shape: Sequence[int], end: int) -> list[Fraction]:
    """Transfers on the server's links along each axis when each of the k rotated orders carries one k-th.

    A worker that differs from the server in some axes meets it along the last of them in travel order (end -1), or
    is left through the first of them (end 0).
    """
    count = len(shape)
    load = [Fraction(0)] * count
    for size in range(1, count + 1):
        for differing in combinations(range(count), size):
            workers = prod(shape[axis] - 1 for axis in differing)
            for turn in range(count):
                met = sorted(differing, key=lambda axis: (axis - turn) % count)[end]
                load[met] += Fraction(workers, count * _links(shape[met]))
    return load


TORUS_FORMS: Mapping[str, Derivation] = {
    "ring": rings.all_on_torus,
    "ring-one-way": rings.one_way,
    "double-ring": rings.both_ways_on_torus,
    "mesh": mesh,
    "ps": server,
    "ps-dedicated": server,
    "ps-sharded": mesh,
    "halving-doubling": halving_doubling,
    "hips": hips,
}
