"""Closed forms where only the NIC of a host can be the hottest link: one NIC for each host, nothing shared behind it.

An ideal switch is such a fabric for every collective; a tree with full bisection is one wherever no two transfers
meet inside it. The forms of trees start from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import prod

from ropewalk.collectives.cost.form import ClosedForm, Derivation, exact, written
from ropewalk.collectives.hips import near_square
from ropewalk.errors import ProgramError


def ring(hosts: int) -> ClosedForm:
    """One ring, or two in opposite directions with half of the bytes each: the NIC carries the same."""
    return exact(Fraction(2 * (hosts - 1), hosts), 2 * (hosts - 1), written("2(N-1)/N", "2(N-1)"))


def mesh(hosts: int) -> ClosedForm:
    """Everyone sends to everyone its piece (diffuse), then its sum (collect)."""
    return exact(Fraction(2 * (hosts - 1), hosts), 2, written("2(N-1)/N", "2"))


def hierarchy(levels: tuple[int, ...]) -> ClosedForm:
    """A mesh in each level; the volumes of the levels telescope to the volume of a flat mesh."""
    hosts = prod(levels)
    rounds = 2 * sum(size > 1 for size in levels)
    return exact(Fraction(2 * (hosts - 1), hosts), rounds, written("2(N-1)/N", str(rounds)))


def server(hosts: int) -> ClosedForm:
    """One server, on a worker (its own push stays at home) or on a host that only serves: N-1 workers cross its NIC."""
    return exact(2 * (hosts - 1), 2, written("2(N-1)", "2"))


def halving_doubling(hosts: int) -> ClosedForm:
    """Halving-doubling over the largest power of two p ≤ N; the other ranks fold their whole buffer in and out."""
    pairs = 1 << (hosts.bit_length() - 1)
    doublings = pairs.bit_length() - 1
    if pairs == hosts:
        return exact(Fraction(2 * (hosts - 1), hosts), 2 * doublings, written("2(N-1)/N", "2 log₂N "))
    # Ranks that do not fold run ahead of those that do, so the rounds in step are an estimate and no exact form.
    term = 2 + Fraction(2 * (pairs - 1), pairs)
    form = exact(term, 2 * doublings + 2, written("(2 + 2(p-1)/p)", "(2 log₂p + 2)"), f"p = {pairs}")
    return replace(form, edition="counted")


def dedicated_servers(workers: int, servers: int) -> ClosedForm:
    """`workers` workers push a share of 1/M each to M servers on hosts of their own, then pull the sums.

    >>> dedicated_servers(16, 4).bandwidth_term
    Fraction(8, 1)
    """
    _at_least_one(servers)
    return exact(2 * max(Fraction(workers, servers), Fraction(1)), 2, written("2 max(N/M, 1)", "2"))


def _at_least_one(servers: int) -> None:
    if servers < 1:
        raise ProgramError(f"a parameter server needs at least one server, not {servers}: use 1 or more")


SWITCH_FORMS: Mapping[str, Derivation] = {
    "ring": lambda switch, routing: ring(switch.hosts),
    "ring-one-way": lambda switch, routing: ring(switch.hosts),
    "double-ring": lambda switch, routing: ring(switch.hosts),
    "mesh": lambda switch, routing: mesh(switch.hosts),
    "ps": lambda switch, routing: server(switch.hosts),
    "ps-dedicated": lambda switch, routing: server(switch.hosts),
    "ps-sharded": lambda switch, routing: mesh(switch.hosts),
    "halving-doubling": lambda switch, routing: halving_doubling(switch.hosts),
    "hips": lambda switch, routing: hierarchy(near_square(switch.hosts)),
}
"""By logical topology, on an ideal switch: there is one path for each pair, so every routing gives the same."""
