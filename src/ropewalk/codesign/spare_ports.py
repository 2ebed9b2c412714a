"""Ports that no pair asked for: cables that bring what is sent in many hops nearer to where it goes.

A port costs the same whether or not it is used. Rounds of the heaviest matching go on with another worth: the bytes
times the hops that a cable saves for traffic of its two ends. (What it saves for others passing by is left out: it
would take a sum over all pairs for every possible cable.) Ports that even this leaves dark are used as if every pair
sent alike: that shortens ways for whatever passes by or may come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.cable_draft import CableDraft
from ropewalk.codesign.matching import heaviest_round, whole_numbers

SCALE = 2.0**30
"""The heaviest demand as a whole number: its product with hops, summed over servers, stays exact."""


def lay_shortcuts(draft: CableDraft, demand: NDArray[np.float64]) -> None:
    """Lay rounds of cables on free ports until none of them would shorten a way, first those in demand, then any."""
    for wanted in (demand, 1.0 - np.eye(draft.servers)):
        while draft.sending.any() and draft.receiving.any():
            sources, destinations = heaviest_round(draft, hops_saved(draft, wanted))
            if not len(sources):
                break
            draft.add(sources, destinations)


def hops_saved(draft: CableDraft, demand: NDArray[np.float64]) -> NDArray[np.float64]:
    """Byte-hops that a cable from a to b saves for what a sends and b receives, in parts of the heaviest demand.

    Duplex: what a cable between a and b saves is saved[a, b] + saved[b, a]. Zero where no port is free.
    """
    # Imported here because loading Numba takes longer than most commands run.
    from ropewalk.codesign._shortcut_kernel import saved_for_senders

    hops = draft.hops()
    senders, receivers = np.flatnonzero(draft.sending), np.flatnonzero(draft.receiving)
    saved = np.zeros(demand.shape, np.int64)
    if not demand.any():
        return saved.astype(np.float64)
    if draft.duplex:
        # What a receives from afar comes over the same cable as what it sends there. Bytes between a and b are seen
        # from both ends, so each end counts half.
        both = whole_numbers(demand + demand.T, SCALE)
        saved_for_senders(hops, both, senders, receivers, saved)
        between = both * np.maximum(hops - 1, 0)
        return np.where(saved > 0, saved - between / 2, 0.0) / SCALE
    whole = whole_numbers(demand, SCALE)
    saved_for_senders(hops, whole, senders, receivers, saved)
    arriving = np.zeros_like(saved)
    saved_for_senders(np.ascontiguousarray(hops.T), np.ascontiguousarray(whole.T), receivers, senders, arriving)
    total = saved + arriving.T
    return np.where(total > 0, total - whole * np.maximum(hops - 1, 0), 0) / SCALE
