"""Closed forms of all-reduces whose additions take time: what is sent, and what every rank adds.

A ring of n ranks sends 2(n-1) pieces of P/n and adds n-1 of them. Cut into k parts that circulate at the same time,
each piece takes w to send and a to add, and three regimes follow (start-ups aside):

- k = 1: sending and adding take turns, T = 2(n-1) w + (n-1) a.
- send-bound, a ≤ w, parts that share a port: the wire waits for the first addition only, T = 2(n-1) k w + a.
- mix-bound, a ≥ w: the adder never waits, then the last parts are gathered,
  T = k w + (n-1) k a + max((n-1) w, (n-1) k w - (k-1) a). At a = w (balanced) both say the same.

Parts that have dedicated links share the adder alone: T = 2(n-1) w + max((n-1) a + (k-1) a, (n-1) k a - (n-2) w).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropewalk.collectives.cost.form import ClosedForm
from ropewalk.collectives.mixer import Mixer
from ropewalk.collectives.program import Program


@dataclass(frozen=True)
class Mixed:
    """Seconds of an all-reduce with its additions."""

    seconds: float
    is_bound: bool
    """True: it may take longer than this, never shorter."""


def chunked_ring_s(ranks: int, parts: int, send_s: float, add_s: float) -> float:
    """A ring in `parts` parts that share the ports of their ranks: a piece takes so long to send and to add.

    >>> chunked_ring_s(4, 1, 1.0, 1.0), chunked_ring_s(4, 2, 1.0, 1.0), chunked_ring_s(4, 2, 1.0, 2.0)
    (9.0, 13.0, 18.0)
    """
    each = ranks - 1
    if parts == 1:
        return 2 * each * send_s + each * add_s
    if add_s <= send_s:
        return 2 * each * parts * send_s + add_s
    drained = max(each * send_s, each * parts * send_s - (parts - 1) * add_s)
    return parts * send_s + each * parts * add_s + drained


def separate_rings_s(ranks: int, rings: int, send_s: float, add_s: float) -> float:
    """Several rings with dedicated links, whose ranks add one piece after the other.

    >>> separate_rings_s(4, 4, 1.0, 0.25), separate_rings_s(4, 4, 1.0, 1.0)
    (7.5, 16.0)
    """
    each = ranks - 1
    return 2 * each * send_s + max((each + rings - 1) * add_s, each * rings * add_s - (each - 1) * send_s)


def mixed_seconds(
    form: ClosedForm, program: Program | None, hosts: int, size_bytes: float, bandwidth: float, alpha_s: float,
    mixer: Mixer,
) -> Mixed:  # fmt: skip
    """A closed form with the additions of the program that it describes.

    Exact for rings whose parts all share ports or share none, and for programs of one lane, in which ranks send and add
    in turn. Otherwise a bound: every byte is added n-1 times, so a rank adds (n-1)/n of them or more.
    """
    sent_s = form.seconds(size_bytes, bandwidth, alpha_s)
    if mixer.free:
        return Mixed(sent_s, form.is_bound)
    least = Mixed(max(sent_s, mixer.seconds(size_bytes * (hosts - 1) / hosts)), is_bound=True)
    if program is None:
        return least
    if program.lanes == 1:
        added = float(busiest_adds(program)) * size_bytes
        return Mixed(sent_s + mixer.seconds(added), form.is_bound)
    if not _is_rings(program):
        return least
    ranks, lanes, round_trip = program.ranks, program.lanes, Fraction(2 * (program.ranks - 1), program.ranks)
    piece = size_bytes / ranks / lanes
    send_s, add_s = piece / bandwidth, mixer.seconds(piece)
    if form.bandwidth_term == round_trip / lanes:
        return Mixed(separate_rings_s(ranks, lanes, send_s + alpha_s, add_s), form.is_bound)
    if form.bandwidth_term == round_trip:
        together = chunked_ring_s(ranks, lanes, send_s, add_s)
        one = chunked_ring_s(ranks, 1, send_s + alpha_s, add_s)
        return Mixed(max(together, one, sent_s), form.is_bound or alpha_s > 0)
    return least


def busiest_adds(program: Program) -> Fraction:
    """Buffers that ranks add up in rounds one after the other, each as long as its busiest rank adds.

    >>> from ropewalk.collectives.ring import ring_all_reduce
    >>> busiest_adds(ring_all_reduce([[0, 1, 2, 3]]))
    Fraction(3, 4)
    """
    repeats = np.bincount(program.pattern_of_round, minlength=len(program.patterns))
    total = 0
    for pattern, times in zip(program.patterns, repeats.tolist(), strict=True):
        added = np.bincount(pattern.dst[pattern.reduces], pattern.chunks[pattern.reduces], minlength=1)
        total += int(added.max()) * times
    return Fraction(total, program.buffer_chunks)


def _is_rings(program: Program) -> bool:
    """Does every rank send one piece to another in every lane, for 2(n-1) rounds of which the first half adds?"""
    rounds = [step.pattern for step in program.rounds]
    half = program.ranks - 1
    return len(rounds) == 2 * half and all(
        pattern.sends == program.ranks * program.lanes
        and bool((pattern.chunks == 1).all())
        and bool((pattern.reduces == (number < half)).all())
        for number, pattern in enumerate(rounds)
    )
