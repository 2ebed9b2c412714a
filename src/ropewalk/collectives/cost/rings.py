"""Closed forms of rings on fabrics with several links for each host: BCube and torus.

A ring over a Hamiltonian cycle of neighbours loads each link that it uses with P/N in each of its 2(N-1) rounds. Rings
side by side carry equal parts of P, so the time falls with their number as long as no two of them share a link.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ropewalk.collectives.cost.form import ClosedForm, exact, written
from ropewalk.collectives.hamiltonian import hamiltonian_cycles
from ropewalk.fabric import BCube, Torus


def on_disjoint_links(hosts: int, width: int, symbol: str, note: str = "") -> ClosedForm:
    """`width` rings of P/width each that share no link."""
    term = f"2(N-1)/({symbol}N)" if symbol else "2(N-1)/N"
    return exact(Fraction(2 * (hosts - 1), width * hosts), 2 * (hosts - 1), written(term, "2(N-1)"), note)


def one_way(fabric: BCube | Torus, routing: str) -> ClosedForm:
    """One ring; the other links of every host stay idle."""
    return on_disjoint_links(fabric.hosts, 1, "")


def all_on_torus(torus: Torus, routing: str) -> ClosedForm:
    """All edge-disjoint cycles in both directions: there is one for each axis of 3 or more and each two axes of 2."""
    cycles = sum(side > 2 for side in torus.shape) + sum(side == 2 for side in torus.shape) // 2
    if torus.hosts == 2:
        return one_way(torus, routing)
    note = f"c = {cycles} edge-disjoint Hamiltonian cycles"
    return on_disjoint_links(torus.hosts, 2 * cycles, "2c·", note)


def both_ways_on_torus(torus: Torus, routing: str) -> ClosedForm:
    """One cycle in both directions; between two hosts these are the same link."""
    return on_disjoint_links(torus.hosts, 2, "2") if torus.hosts > 2 else one_way(torus, routing)


def all_on_bcube(cube: BCube, routing: str) -> ClosedForm:
    """The cycles of the torus n^k in both directions: two rings for each NIC, or one where n = 2."""
    if cube.ports > 2 or cube.levels % 2 == 0:
        return on_disjoint_links(cube.hosts, cube.levels, "k")
    width = max(1, cube.levels - 1)
    return on_disjoint_links(cube.hosts, width, f"{width}·", "an odd hypercube leaves one NIC of each host idle")


def both_ways_on_bcube(cube: BCube, routing: str) -> ClosedForm:
    """The first cycle in both directions: twice as fast only if it never leaves a host by the level it came from."""
    if _goes_straight(cube):
        return on_disjoint_links(cube.hosts, 1, "", "both directions share a NIC where the cycle stays on a level")
    return on_disjoint_links(cube.hosts, 2, "2")


def _goes_straight(cube: BCube) -> bool:
    """Whether the first cycle somewhere takes two steps in a row on the same level."""
    order = hamiltonian_cycles((cube.ports,) * cube.levels)[0]
    # Axis 0 of the torus is the highest digit; only whether two levels are the same matters here.
    digits = order[:, None] // cube.ports ** np.arange(cube.levels) % cube.ports
    level = np.argmax(digits != np.roll(digits, -1, axis=0), axis=1)
    return bool((level == np.roll(level, 1)).any())
