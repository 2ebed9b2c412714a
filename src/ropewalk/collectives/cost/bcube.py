"""Closed forms on BCube(n, k): k NICs for each host, N = n^k hosts, switches that touch hosts only.

The hottest link is always a NIC. All transfers inside one switch are between hosts that differ in one digit, so a
collective is as fast as the evenness with which it uses the k NICs of every host.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ropewalk.collectives.cost import rings, star
from ropewalk.collectives.cost.form import HASHED, ClosedForm, Derivation, exact, written
from ropewalk.fabric import BCube


def mesh(cube: BCube, routing: str) -> ClosedForm:
    """Each NIC carries the pieces whose digit of that level differs: (n-1)/n of P in each phase, under any order."""
    form = exact(Fraction(2 * (cube.ports - 1), cube.ports), 2, written("2(n-1)/n", "2"))
    return form.as_bound(HASHED) if routing == "hashed" and cube.levels > 1 else form


def server(cube: BCube, routing: str) -> ClosedForm:
    """The NICs of the server are the hottest links; rotated orders spread the last hop over all k of them."""
    if routing == "dimension":
        term = 2 * (cube.ports - 1) * cube.ports ** (cube.levels - 1)
        return exact(term, 2, written("2(n-1)n^(k-1)", "2"), "one fixed order: most transfers end on one NIC")
    form = exact(Fraction(2 * (cube.hosts - 1), cube.levels), 2, written("2(N-1)/k", "2"))
    return form.as_bound(HASHED) if routing == "hashed" and cube.levels > 1 else form


def hips(cube: BCube, routing: str) -> ClosedForm:
    """k rotated processes with a mesh inside each switch: every NIC works in every round."""
    term = Fraction(2 * (cube.hosts - 1), cube.levels * cube.hosts)
    return exact(term, 2 * cube.levels, written("2(N-1)/(kN)", "2k"))


def halving_doubling(cube: BCube, routing: str) -> ClosedForm | None:
    """With n a power of two partners differ in one digit, and one NIC of each host works at a time."""
    return star.halving_doubling(cube.hosts) if cube.ports & (cube.ports - 1) == 0 else None


def printed_ring(cube: BCube) -> ClosedForm | None:
    """The published form for k = 2, which restricts odd n to half the rate.

    Two edge-disjoint Hamiltonian cycles of the n x n torus exist for every n ≥ 3, so the exact form needs no such case.
    """
    if cube.levels != 2 or cube.ports % 2 == 0:
        return None
    return ClosedForm(
        Fraction(2 * (cube.hosts - 1), cube.hosts),
        2 * (cube.hosts - 1),
        "paper",
        written("2(N-1)/N", "2(N-1)"),
        "published as twice the time of even n; edge-disjoint rings do not need the factor",
    )


BCUBE_FORMS: Mapping[str, Derivation] = {
    "ring": rings.all_on_bcube,
    "ring-one-way": rings.one_way,
    "double-ring": rings.both_ways_on_bcube,
    "mesh": mesh,
    "ps": server,
    "ps-dedicated": server,
    "ps-sharded": mesh,
    "halving-doubling": halving_doubling,
    "hips": hips,
}
