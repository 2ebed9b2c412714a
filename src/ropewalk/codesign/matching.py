"""Cables for pairs: the heaviest matching again and again, with what a cable serves counted as half served.

TopologyFinder (TopoOpt, NSDI 2023) lays one matching for each port of d_MP and halves the remaining demand of the
matched pairs, both directions, after every round: a second cable for the same pair is worth half as much as the
first, so that one heavy pair does not eat every round.

The heaviest matching, not the heaviest *perfect* one: servers without anything to say to each other are not joined
only because both have a port, and an odd number of servers is no special case. Ports that a round leaves free stay in
the game: rounds go on among the servers that have some, until no two of them have demand for each other.

Duplex: matchings of a general graph (Edmonds' blossoms; among very many servers the heaviest pair first), each pair
weighing its bytes both ways. Simplex: a cable
serves one direction and takes a sending port here and a receiving port there, so a round is the heaviest assignment
of senders to receivers, which includes all matchings, and only the direction served is halved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ropewalk.codesign.cable_draft import CableDraft

SCALE = 2.0**40
"""The heaviest pair as a whole number; pairs a trillion times lighter still count."""

MOST_EXACT = 300
"""Servers up to which matchings are the heaviest; beyond, heaviest pairs come first, which takes seconds, not hours."""

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]


def heaviest_round(draft: CableDraft, worth: NDArray[np.float64]) -> Ends:
    """Cables between free ports, at most one for each server, that are worth most together: sources, destinations.

    Nothing is laid where a cable is worth nothing. Duplex: worth both ways is added, and the lower server comes first.
    """
    return _matching(draft, worth + worth.T) if draft.duplex else _assignment(draft, worth)


def lay_matchings(draft: CableDraft, demand: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lay rounds of cables until no free ports have demand for each other; returns what remains of the demand."""
    remaining = demand.copy()
    while True:
        sources, destinations = heaviest_round(draft, remaining)
        if not len(sources):
            return remaining
        draft.add(sources, destinations)
        remaining[sources, destinations] /= 2
        if draft.duplex:
            remaining[destinations, sources] /= 2


def _matching(draft: CableDraft, worth: NDArray[np.float64]) -> Ends:
    free = np.flatnonzero(draft.sending)
    open_to_each_other = worth[np.ix_(free, free)]
    np.fill_diagonal(open_to_each_other, 0.0)
    wanted = np.flatnonzero(open_to_each_other.any(axis=1))
    if not len(wanted):
        return free[:0], free[:0]
    weights = whole_numbers(open_to_each_other[np.ix_(wanted, wanted)], SCALE)
    if len(wanted) > MOST_EXACT:
        mate = heaviest_first(weights)
    else:
        # Imported here because loading Numba takes longer than most commands run.
        from ropewalk.codesign.blossom import heaviest_matching

        mate = heaviest_matching(weights)
    lower = np.flatnonzero(mate > np.arange(len(mate)))
    servers = free[wanted]
    return servers[lower], servers[mate[lower]]


def heaviest_first(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """The mate of every server, -1 where it has none: the heaviest pair first, then the heaviest of the rest.

    It is worth half of the heaviest matching at least. Of equal pairs that with the lowest server comes first.

    >>> heaviest_first(np.array([[0, 2, 3, 0], [2, 0, 0, 0], [3, 0, 0, 2], [0, 0, 2, 0]])).tolist()
    [2, -1, 0, -1]
    """
    left, mate = weights.copy(), np.full(len(weights), -1, np.int64)
    servers = np.arange(len(weights))
    while left.any():
        wish = left.argmax(axis=1)
        # A pair that both wish for most is the heaviest of either; of those with the most weight there is always one.
        agreed = (wish[wish] == servers) & (left[servers, wish] > 0)
        mate[agreed] = wish[agreed]
        left[agreed] = 0
        left[:, agreed] = 0
    return mate


def _assignment(draft: CableDraft, worth: NDArray[np.float64]) -> Ends:
    senders, receivers = np.flatnonzero(draft.sending), np.flatnonzero(draft.receiving)
    table = np.where(np.eye(draft.servers, dtype=bool), 0.0, worth)[np.ix_(senders, receivers)]
    rows, columns = (
        linear_sum_assignment(whole_numbers(table, SCALE), maximize=True)
        if table.any()
        else (senders[:0], receivers[:0])
    )
    useful = table[rows, columns] > 0
    return senders[rows[useful]], receivers[columns[useful]]


def whole_numbers(worth: NDArray[np.float64], scale: float) -> NDArray[np.int64]:
    """Worth in parts of the greatest, so that ties are ties on every machine; nothing of worth becomes zero."""
    scaled = np.rint(worth / worth.max() * scale).astype(np.int64)
    return np.where(worth > 0, np.maximum(scaled, 1), 0)
