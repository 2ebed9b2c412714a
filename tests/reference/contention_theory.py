"""Contention of single rounds, counted flow by flow, and the conditions that the literature states for it."""

from collections import Counter

import numpy as np

from ropewalk.collectives.program import Program
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.contention import RankSwitches


def uncontended(seats: RankSwitches, src, dst, load=1) -> bool:
    """Does no link carry more in a round of flows src -> dst than a NIC at the end of one of its flows does?"""
    sizes = np.broadcast_to(load, np.shape(src)).tolist()
    flows = [
        (int(a), int(b), size) for a, b, size in zip(src, dst, sizes, strict=True) if seats.leaf[a] != seats.leaf[b]
    ]
    sent, received, carried, nics = Counter(), Counter(), Counter(), Counter()
    for a, b, size in flows:
        sent[a] += size
        received[b] += size
    for a, b, size in flows:
        for link in (("up", seats.leaf[a], seats.spine[a]), ("down", seats.leaf[b], seats.spine[a])):
            carried[link] += size
            nics[link] = max(nics[link], sent[a], received[b])
    return all(carried[link] <= nics[link] for link in carried)


def contended_rounds(job: Allocation | RankSwitches, program: Program) -> int:
    """How many rounds of a collective contend for some link."""
    seats = job if isinstance(job, RankSwitches) else RankSwitches.of(job)
    bad = [not uncontended(seats, pattern.src, pattern.dst, pattern.chunks) for pattern in program.patterns]
    return int(np.array(bad, bool)[program.pattern_of_round].sum())


def is_injective(seats: RankSwitches, src, dst) -> bool:
    """The exact condition where NICs have one flow each: no two flows share (spine of source, leaf of destination)."""
    a, b = np.asarray(src), np.asarray(dst)
    cross = seats.leaf[a] != seats.leaf[b]
    pairs = np.column_stack([seats.spine[a[cross]], seats.leaf[b[cross]]])
    return len(np.unique(pairs, axis=0)) == len(pairs)


def is_leaf_wise(seats: RankSwitches, src, dst) -> bool:
    """The published pattern: one flow per NIC, all flows of a leaf to one leaf, and no leaf receiving from two."""
    a, b = np.asarray(src), np.asarray(dst)
    cross = seats.leaf[a] != seats.leaf[b]
    a, b = a[cross], b[cross]
    towards = np.unique(np.column_stack([seats.leaf[a], seats.leaf[b]]), axis=0)
    once = [len(np.unique(ends)) == len(ends) for ends in (a, b, towards[:, 0], towards[:, 1])]
    return all(once)
