"""The best rings of a group: the set of coprime jumps whose circulant has the fewest hops for the demand.

The geometric rule is not optimal: of 128 servers with four duplex rings it leaves some 5 hops apart where 4 suffice.
A circulant is small enough to be judged in a microsecond, so all sets of jumps are tried where there are at most
`SETS_TRIED`; beyond that a beam grows sets jump by jump, and the best of them and of the geometric rules are improved
by exchanging one jump at a time. Both are deterministic, and neither returns more hops than the geometric rule.

Multiplying all jumps by a number coprime to n renumbers the servers, so it maps circulants onto each other. Every set
of coprime jumps is therefore as good as one with jump 1, as long as all distances are in equal demand and all coprime
jumps are allowed; then only sets with 1 are looked at.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.hops import checked_weight
from ropewalk.codesign.permutations import round_up_jumps, select_jumps
from ropewalk.codesign.totient import totient_jumps
from ropewalk.errors import StrategyError

SETS_TRIED = 1_000_000
"""Sets up to which all are tried: a few seconds at a thousand servers."""

BEAM = 48
"""Partial sets that are kept at every step of the beam, and whole sets that are improved at its end."""


def best_jumps(
    size: int,
    count: int,
    *,
    duplex: bool,
    weight: NDArray[np.float64] | None = None,
    prime_only: bool = False,
) -> tuple[int, ...]:
    """The `count` rings of a group with the fewest hops on the mean, ascending; all its rings if it has no more.

    `weight[m]` is the demand at distance m (None: all distances alike). Among sets with equally many hops the one with
    the smaller diameter is taken, then the first in order.

    >>> best_jumps(128, 2, duplex=True)
    (1, 15)
    >>> best_jumps(4, 3, duplex=True)
    (1,)
    """
    if count < 0:
        raise StrategyError(f"{count} rings for a group of {size}: give 0 or more")
    candidates = totient_jumps(size, prime_only=prime_only, duplex=duplex)
    demand = np.zeros(0) if weight is None else checked_weight(size, weight)
    if count >= len(candidates) or count == 0:
        return candidates[:count]
    if len(demand) and not demand[1:].any():
        # Nothing is asked for, so all sets are alike: as with equal demand.
        demand = np.zeros(0)
    anchored = len(demand) == 0 and not prime_only
    if comb(len(candidates) - anchored, count - anchored) <= SETS_TRIED:
        # Imported here because loading Numba takes longer than most commands run.
        from ropewalk.codesign._circulant_kernel import best_of_all

        found = best_of_all(np.array(candidates, np.int64), count, anchored, size, duplex, demand)
        return tuple(int(jump) for jump in found)
    return _improved(_Judge(size, duplex, demand), candidates, count, anchored)


class _Judge:
    """Orders sets of jumps from best to worst: by hops, diameter, and the jumps themselves."""

    def __init__(self, size: int, duplex: bool, demand: NDArray[np.float64]) -> None:
        self.size, self.duplex, self.demand = size, duplex, demand

    def best(self, sets: NDArray[np.int64], keep: int) -> NDArray[np.int64]:
        """The best rows, at most `keep`, best first; equal sets once."""
        from ropewalk.codesign._circulant_kernel import judge

        sets = np.unique(np.sort(sets, axis=1), axis=0)
        hops, farthest = np.empty(len(sets)), np.empty(len(sets), np.int64)
        judge(sets, self.size, self.duplex, self.demand, hops, farthest)
        return np.asarray(sets[np.lexsort((np.arange(len(sets)), farthest, hops))[:keep]])


def _improved(judge: _Judge, candidates: tuple[int, ...], count: int, anchored: bool) -> tuple[int, ...]:
    """The best set that a beam and exchanges of single jumps find, from the geometric rules and from scratch."""
    jumps = np.array(candidates, np.int64)
    rules = (select_jumps, round_up_jumps)
    # Both rules choose jump 1 first, so an anchored search may start from them.
    starts = [rule(judge.size, count, candidates, duplex=judge.duplex) for rule in rules]
    beam = jumps[: 1 if anchored else len(jumps), None]
    for _ in range(count - 1):
        beam = judge.best(_extended(beam, jumps), BEAM)
    tops = judge.best(np.concatenate([beam, np.array(starts, np.int64)]), BEAM)
    ends = [_exchanged(judge, row, jumps, anchored) for row in tops]
    return tuple(int(jump) for jump in judge.best(np.array(ends), 1)[0])


def _extended(sets: NDArray[np.int64], jumps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every set with every jump that it does not have yet."""
    longer = np.column_stack([np.repeat(sets, len(jumps), axis=0), np.tile(jumps, len(sets))])
    fresh = (longer[:, :-1] != longer[:, -1:]).all(axis=1)
    return np.asarray(longer[fresh])


def _exchanged(judge: _Judge, jumps: NDArray[np.int64], others: NDArray[np.int64], anchored: bool) -> NDArray[np.int64]:
    """Exchange the one jump whose exchange helps most, until none helps."""
    while True:
        neighbours = [_extended(np.delete(jumps, place)[None], others) for place in range(anchored, len(jumps))]
        best = judge.best(np.concatenate([jumps[None], *neighbours]), 1)[0]
        if np.array_equal(best, jumps):
            return jumps
        jumps = best
