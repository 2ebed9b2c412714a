"""The best rings of all groups together: the sets of coprime jumps whose circulant has the fewest hops for the demand.

The rings of a group of k among n servers jump by p*n/k, so the rings of all groups together are one circulant, and a
jump of one group is as good as the jumps of the others let it be. Two rules chosen group by group miss that: with one
ring each, 128 servers with rings of 128 and of 32 would jump by 1 and by 4, 8.9 hops on the mean, where 1 and 12 need
5.4. Nor is the geometric rule optimal within a group: of 128 servers with four duplex rings it leaves some 5 hops apart
where 4 suffice.

A circulant is small enough to be judged in a microsecond, so all sets of jumps are tried where there are at most
`SETS_TRIED`; beyond that a beam grows sets jump by jump, and the best of them and of the geometric rules are improved
by exchanging one jump at a time. Both are deterministic, and neither returns more hops than the geometric rule.

Multiplying all jumps by a number coprime to n renumbers the servers, so it maps circulants onto each other, and the
numbers coprime to n give all numbers coprime to k. Every set of coprime jumps is therefore as good as one in which a
group of one's choice has jump 1, as long as all distances are in equal demand and all coprime jumps are allowed; then
only such sets are looked at. Groups that ride on cables of others do not change that: they may take any coprime jump.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb, prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.permutations import round_up_jumps, select_jumps
from ropewalk.codesign.totient import totient_jumps
from ropewalk.errors import StrategyError

if TYPE_CHECKING:
    from ropewalk.codesign._circulant_kernel import WantedJumps

SETS_TRIED = 200_000
"""Sets up to which all are tried: a second at 128 servers."""

BEAM = 48
"""Partial sets that are kept at every step of the beam, and whole sets that are improved at its end."""

SCALE = 2.0**30
"""The largest demand as a whole number: times hops and summed over servers it stays exact."""

Rings = dict[int, tuple[int, ...]]
"""Jumps of the rings of each group size, ascending."""


def best_rings(
    servers: int,
    counts: Mapping[int, int],
    *,
    duplex: bool,
    weight: NDArray[np.float64] | None = None,
    riding: Mapping[int, float] | None = None,
    prime_only: bool = False,
    keep: int = 1,
) -> list[Rings]:
    """The best choices of `counts[k]` rings for the groups of each size k, at most `keep`, the best first.

    Best is the least demand times hops: `weight[m]` is the demand at distance m on servers (None: none), `riding[k]`
    that of groups without rings, whose sums go along the jump with the fewest hops. Then the fewest hops on the mean,
    the smaller diameter, the first in order. A group that has fewer rings than asked for gets all it has.

    >>> best_rings(128, {32: 1, 128: 1}, duplex=True)
    [{32: (3,), 128: (1,)}]
    """
    groups = [_Group.of(servers, size, count, duplex, prime_only) for size, count in counts.items()]
    demand = None if weight is None else _checked_weight(servers, weight)
    alike = demand is None or not demand[1:].any()
    search = _Search(servers, duplex, groups, demand, dict(riding or {}), alike and not prime_only)
    return search.best(keep)


@dataclass(frozen=True)
class _Group:
    """The jumps of one group size, and how many of them are wanted."""

    size: int
    stride: int
    candidates: tuple[int, ...]
    count: int

    @staticmethod
    def of(servers: int, size: int, count: int, duplex: bool, prime_only: bool) -> _Group:
        if count < 0:
            raise StrategyError(f"{count} rings for a group of {size}: give 0 or more")
        candidates = totient_jumps(size, prime_only=prime_only, duplex=duplex)
        return _Group(size, servers // size, candidates, min(count, len(candidates)))

    @property
    def on_servers(self) -> NDArray[np.int64]:
        return np.array(self.candidates, np.int64) * self.stride

    def sets(self, fixed: bool) -> int:
        return comb(len(self.candidates) - fixed, self.count - fixed)


class _Search:
    """Sets of jumps on servers, a column for each ring, the columns of a group side by side."""

    def __init__(
        self,
        servers: int,
        duplex: bool,
        groups: list[_Group],
        demand: NDArray[np.float64] | None,
        riding: dict[int, float],
        anchored: bool,
    ) -> None:
        self.servers, self.duplex = servers, duplex
        self.all_groups = groups
        self.groups = [group for group in groups if group.count]
        self.slot = np.cumsum([0, *(group.count for group in self.groups)])
        # Fixing a jump of the group with the most candidates leaves the fewest sets.
        most = max((len(group.candidates) for group in self.groups), default=0)
        sizes = [len(group.candidates) for group in self.groups]
        self.fixed = sizes.index(most) if anchored and self.groups else -1
        self.wanted = _wanted(servers, demand, riding)

    def best(self, keep: int) -> list[Rings]:
        if not self.groups:
            return [{group.size: () for group in self.all_groups}]
        if prod(group.sets(at == self.fixed) for at, group in enumerate(self.groups)) <= SETS_TRIED:
            return [self._rings(row) for row in self._of_all(keep)]
        return [self._rings(row) for row in self._improved(keep)]

    def _rings(self, row: NDArray[np.int64]) -> Rings:
        found: Rings = {group.size: () for group in self.all_groups}
        for group, first, last in zip(self.groups, self.slot[:-1], self.slot[1:], strict=True):
            found[group.size] = tuple(int(jump) // group.stride for jump in row[first:last])
        return found

    def _of_all(self, keep: int) -> NDArray[np.int64]:
        # Imported here because loading Numba takes longer than most commands run.
        from ropewalk.codesign._circulant_kernel import best_of_all

        start = np.cumsum([0, *(len(group.candidates) for group in self.groups)]).astype(np.int64)
        candidates = np.concatenate([group.on_servers for group in self.groups])
        counts = np.array([group.count for group in self.groups], np.int64)
        found = best_of_all(start, candidates, counts, self.fixed, self.servers, self.duplex, self.wanted, keep)
        return np.asarray(found, np.int64)

    def _judged(self, sets: NDArray[np.int64], keep: int, slots: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """The best rows, at most `keep`, best first; equal sets once."""
        from ropewalk.codesign._circulant_kernel import judge

        ordered = sets.copy()
        for first, last in zip(self.slot[:-1], self.slot[1:], strict=True):
            mine = np.arange(first, last) if slots is None else np.flatnonzero((slots >= first) & (slots < last))
            ordered[:, mine] = np.sort(sets[:, mine], axis=1)
        rows = np.unique(ordered, axis=0)
        cost, hops, farthest = (np.empty(len(rows), np.int64) for _ in range(3))
        judge(rows, self.servers, self.duplex, self.wanted, cost, hops, farthest)
        return np.asarray(rows[np.lexsort((np.arange(len(rows)), farthest, hops, cost))[:keep]])

    def _improved(self, keep: int) -> NDArray[np.int64]:
        """The best sets that a beam and exchanges of single jumps find, from the geometric rules and from scratch."""
        starts = []
        for rule in (select_jumps, round_up_jumps):
            # Both rules choose jump 1 first, so an anchored search may start from them.
            jumps = [rule(one.size, one.count, one.candidates, duplex=self.duplex) for one in self.groups]
            starts.append(
                np.concatenate([np.sort(one) * group.stride for one, group in zip(jumps, self.groups, strict=True)])
            )
        beam = np.concatenate([self._grown(), np.array(starts, np.int64)])
        ends = [self._exchanged(row) for row in self._judged(beam, BEAM)]
        return self._judged(np.array(ends), keep)

    def _grown(self) -> NDArray[np.int64]:
        """Whole sets of a beam: the fixed jump first, then groups with the most candidates, as these join most."""
        first = max(self.fixed, 0)
        order = sorted(range(len(self.groups)), key=lambda at: (at != first, -len(self.groups[at].candidates)))
        slots = [slot for at in order for slot in range(self.slot[at], self.slot[at + 1])]
        opening = self.groups[order[0]].on_servers
        beam = opening[: 1 if self.fixed >= 0 else len(opening), None]
        for number, slot in enumerate(slots[1:], start=1):
            group = self.groups[int(np.searchsorted(self.slot, slot, side="right")) - 1]
            filled = np.array(slots[: number + 1])
            beam = self._judged(_extended(beam, group.on_servers), BEAM, filled)
        return np.asarray(beam[:, np.argsort(slots)])

    def _exchanged(self, jumps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Exchange the one jump whose exchange helps most, until none helps."""
        while True:
            neighbours = [jumps[None]]
            for at, group in enumerate(self.groups):
                for place in range(self.slot[at] + (at == self.fixed), self.slot[at + 1]):
                    others = np.setdiff1d(group.on_servers, jumps[self.slot[at] : self.slot[at + 1]])
                    changed = np.repeat(jumps[None], len(others), axis=0)
                    changed[:, place] = others
                    neighbours.append(changed)
            best = self._judged(np.concatenate(neighbours), 1)[0]
            if np.array_equal(best, jumps):
                return jumps
            jumps = best


def _extended(sets: NDArray[np.int64], jumps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every set with every jump that it does not have yet."""
    longer = np.column_stack([np.repeat(sets, len(jumps), axis=0), np.tile(jumps, len(sets))])
    fresh = (longer[:, :-1] != longer[:, -1:]).all(axis=1)
    return np.asarray(longer[fresh])


def _wanted(servers: int, demand: NDArray[np.float64] | None, riding: dict[int, float]) -> WantedJumps:
    from ropewalk.codesign._circulant_kernel import WantedJumps

    weight = np.zeros(servers) if demand is None else np.concatenate([[0.0], demand[1:]])
    rides = np.array([*riding.values()], np.float64)
    top = max(float(weight.max(initial=0.0)), float(rides.max(initial=0.0))) or 1.0
    hops = [np.array(totient_jumps(size, duplex=False), np.int64) * (servers // size) for size in riding]
    return WantedJumps(
        np.rint(weight / top * SCALE).astype(np.int64),
        np.cumsum([0, *map(len, hops)]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *hops]),
        np.rint(rides / top * SCALE).astype(np.int64),
    )


def _checked_weight(size: int, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Demand by distance as an array of the right length, without negative or infinite entries."""
    demand = np.ascontiguousarray(weight, np.float64)
    if demand.shape != (size,) or not np.isfinite(demand).all() or (demand < 0).any():
        raise StrategyError(
            f"the demand by distance has shape {demand.shape} or negative or infinite entries: "
            f"give {size} numbers, one for each distance 0…{size - 1}"
        )
    return demand
