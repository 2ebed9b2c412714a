"""The cost of any program on any routes, by counting: round by round, how long the hottest link is busy.

This is what a formula abbreviates, so it checks the formulas, and stands in for them where none exists. Rounds go in
lockstep here: a round begins when the whole round before it has ended, and lasts as long as its hottest link is busy.
That is exact for programs whose rounds load the network alike everywhere; where some ranks have less to do than others
(a double tree, folded halving-doubling) they run ahead, and the rounds of a simulation overlap.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.cost.form import ClosedForm, nearest_fraction, receiving_bandwidth, written
from ropewalk.collectives.program import Pattern, Program
from ropewalk.fabric import Fabric
from ropewalk.routing import Routes


def counted(program: Program, routes: Routes, bandwidth: float) -> ClosedForm:
    """Sum over rounds of the load of the hottest link, in units of P over `bandwidth`; rank r is host r.

    >>> from ropewalk.collectives.mesh import mesh_all_reduce
    >>> from ropewalk.fabric import Torus
    >>> from ropewalk.routing import dimension
    >>> torus, everyone = Torus((3, 3)), np.arange(9)
    >>> routes = dimension()(torus.build(), *np.nonzero(everyone[:, None] != everyone))
    >>> counted(mesh_all_reduce(9), routes, torus.bandwidth).bandwidth_term
    Fraction(2, 3)
    """
    usage = routes.usage()
    speed = routes.fabric.bandwidth / bandwidth
    busy = [_hottest_link(pattern, routes, usage, speed) for pattern in program.patterns]
    formula = written("Σ over rounds of the hottest link", "rounds · ")
    return _in_lockstep(program, busy, formula, "rounds in lockstep, each as long as its hottest link")


def counted_at_hosts(program: Program, fabric: Fabric, bandwidth: float) -> ClosedForm:
    """The same sum with nothing but what hosts send and receive: a bound for every routing."""
    busy = [_hottest_host(pattern, fabric, bandwidth) for pattern in program.patterns]
    formula = written("Σ over rounds of the hottest host", "rounds · ")
    return _in_lockstep(program, busy, formula, "rounds in lockstep").as_bound("lower bound: only hosts are counted")


def _in_lockstep(program: Program, busy: list[Fraction], formula: str, note: str) -> ClosedForm:
    repeats = np.bincount(program.pattern_of_round, minlength=len(busy))
    total = sum((time * int(times) for time, times in zip(busy, repeats, strict=True)), Fraction(0))
    rounds = sum(step.pattern.sends > 0 for step in program.rounds)
    return ClosedForm(total / program.buffer_chunks, rounds, "counted", formula, f"{program.name}: {note}")


def _hottest_link(
    pattern: Pattern,
    routes: Routes,
    usage: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    speed: NDArray[np.float64],
) -> Fraction:
    """Chunks on the hottest link of a round over the speed of that link."""
    if pattern.sends == 0:
        return Fraction(0)
    start, link, share = usage
    chunks = np.bincount(routes.find(pattern.src, pattern.dst), weights=pattern.chunks, minlength=routes.pairs)
    load = np.bincount(link, weights=share * np.repeat(chunks, np.diff(start)), minlength=routes.fabric.links)
    return nearest_fraction(float((load / speed).max()))


def _hottest_host(pattern: Pattern, fabric: Fabric, bandwidth: float) -> Fraction:
    """Chunks that the busiest host sends or receives in a round over the speed of all its links together."""
    sent, received = (
        np.bincount(end, weights=pattern.chunks, minlength=fabric.hosts) for end in (pattern.src, pattern.dst)
    )
    time = np.maximum(sent / fabric.host_bandwidth(), received / receiving_bandwidth(fabric)) * bandwidth
    return nearest_fraction(float(time.max()))
