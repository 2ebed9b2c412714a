"""Which copies of a collective the network cannot tell apart: colours, refined until nothing new is told apart.

The colours are an equitable partition of ranks, operations, transfers and links: whatever the colour, all of it have as
many neighbours of every other colour, over equal loads. Fair shares of links, and so all times of a flow simulation,
are then the same for all of a colour. Colours are words of 64 random-looking bits; two that ought to differ are equal
with a chance of about one in 10^13 for a million of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints, Words
from ropewalk.ragged import ranges
from ropewalk.sim.flow.colours import colour_links, colour_rows, mix, sum_by_row
from ropewalk.task.step import Act, Step

SAME = 1e-9
"""Numbers that differ by less, relatively, are equal up to rounding."""


class TransferHops(NamedTuple):
    """Every link of every transfer, and the part of a second that a byte of it takes there."""

    transfer: Ints
    link: Ints
    load: Floats


class Colours:
    """Colours of the ranks, operations, transfers and links of a step in which nothing waits."""

    def __init__(
        self, step: Step, sort: Ints, stage_of_rank: Ints, operation: Ints, own: Words, hops: TransferHops
    ) -> None:
        """`sort` of every operation, `operation` of every transfer and what is its `own` are what differs at first."""
        met = np.flatnonzero(step.act >= Act.ALL_REDUCE)
        sent = np.flatnonzero(step.act == Act.SEND)
        size = np.array([len(group) for group in step.groups], np.int64)
        many = size[step.group[met]]
        flat = np.concatenate([np.zeros(0, np.int32), *step.groups])
        members = flat[ranges((np.cumsum(size) - size)[step.group[met]], many)]
        # Who takes part in an operation, and as what: a member, who sends, who receives.
        self.by_operation = np.concatenate([np.repeat(met, many), sent, sent])
        self.by_rank = np.concatenate([members, step.rank[sent], step.peer[sent]]).astype(np.int64)
        self.role = hashed(np.repeat([0, 1, 2], [len(members), len(sent), len(sent)]))
        self.sort, self.stage_of_rank, self.operation, self.own, self.hops = sort, stage_of_rank, operation, own, hops

    def simultaneous(self) -> Ints:
        """Sorts of operations all of whose copies have one colour."""
        hops, role = self.hops, self.role
        rank, operation = hashed(self.stage_of_rank), hashed(self.sort)
        transfer = mixed(operation[self.operation], self.own)
        start = np.searchsorted(hops.transfer, np.arange(len(transfer) + 1))
        crossed, by_rank, by_operation = (
            ends.astype(np.int32) for ends in (hops.link, self.by_rank, self.by_operation)
        )
        pair = np.arange(len(by_rank) + 1)
        link = np.zeros(int(hops.link.max(initial=-1)) + 1, np.uint64)
        weight = hashed(rounded(hops.load))
        sorts, first, which = np.unique(self.sort, return_index=True, return_inverse=True)
        alike, several = np.ones(len(sorts), np.bool_), np.bincount(which) > 1
        seen = (-1, -1)
        while True:
            on_link, on_rank = np.zeros(len(link), np.uint64), np.zeros(len(rank), np.uint64)
            colour_links(start, crossed, weight, transfer, on_link)
            link = mix(link, on_link)
            on_path, met = np.empty(len(transfer), np.uint64), np.zeros(len(operation), np.uint64)
            colour_rows(start, crossed, weight, link, on_path)
            transfer = mix(transfer, on_path)
            operation = mix(operation, summed(self.operation, transfer, len(operation)))
            colour_links(pair, by_rank, role, operation[self.by_operation], on_rank)
            rank = mix(rank, on_rank)
            colour_links(pair, by_operation, role, rank[self.by_rank], met)
            operation = mix(operation, met)
            transfer = mix(transfer, operation[self.operation])
            # All else follows from links and ranks: where a sweep splits none of these, the next would split nothing.
            # Nor does another sweep bring together what has been told apart.
            told = len(np.unique(link)), len(np.unique(rank))
            alike[which[operation != operation[first][which]]] = False
            if told == seen or not (alike & several).any():
                break
            seen = told
        return np.asarray(sorts[alike], np.int64)


def hashed(values: NDArray[np.generic]) -> Words:
    """Values as words that look random (the finaliser of splitmix64)."""
    word = np.ascontiguousarray(values).astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(word ^ (word >> np.uint64(31)), np.uint64)


def rounded(values: Floats) -> Ints:
    """Numbers that are equal up to rounding as equal whole numbers."""
    mantissa, exponent = np.frexp(values)
    whole = np.where(np.isfinite(values), np.rint(mantissa / SAME), 0.0)
    return np.asarray(whole.astype(np.int64) * 4096 + exponent, np.int64)


def mixed(one: Words, other: Words) -> Words:
    return hashed(one * np.uint64(3) + other)


def summed(at: Ints, words: Words, many: int) -> Words:
    """Sums of words, whatever their order."""
    total = np.zeros(many, np.uint64)
    sum_by_row(at, words, total)
    return total
