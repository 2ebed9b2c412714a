"""Who gets how many ports: first sums against transfers between pairs, then the sums of each group size.

Choices that the published algorithm leaves open, made here once:

- A sum weighs what it puts on the wire, 2(k-1) times its size, because that is what shares cables with the bytes of
  pairs.
- The published split rounds up in favour of rings and leaves them at least one, so that the network stays in one
  piece. With four simplex ports, pairs get none below a quarter of all bytes: they ride the rings. A second split
  rounds down (`Favour.PAIRS`); which of the two is faster is for a simulation to say.
- Ports are counted as they are used up. A duplex ring takes two ports of every server (a ring of two servers is one
  cable and takes one), a simplex ring a sending and a receiving one, counted as one. So duplex shares are rounded in
  whole rings, d_A is even, and four duplex ports are two rings where four simplex ports are four.
- A group has only so many different rings (one duplex ring for 2, 3, 4 and 6 servers, two for 8 and 12). What it
  cannot use goes to the other groups, where it has the most bytes for each ring; then to pairs, up to their share
  rounded up; the rest lays the same rings again, as parallel cables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

from ropewalk.codesign.cosets import wire_bytes_by_size
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.totient import totient_jumps

ROUNDING = 1e-9
"""A share this little above a whole number is that number: it comes from adding bytes, not from the demand."""


SPLITS = 6
"""Splits that are offered at most."""


class Favour(Enum):
    """Who gets the port that does not divide: the published split rounds up for rings, the other one for pairs."""

    RINGS = "rings"
    PAIRS = "pairs"


@dataclass(frozen=True)
class Degrees:
    """Ports of every server and the rings they are for."""

    split_sums: int
    """Ports that the split alone gives to rings (d_A)."""
    split_pairs: int
    rings: dict[int, int]
    """How many rings the groups of each size get, the largest demand first; more than are different means repeats."""
    ring_ports: int
    """Ports that these rings use; the others are for pairs."""


def ports_of_ring(size: int, *, duplex: bool) -> int:
    """Ports that a ring over groups of `size` uses on every server.

    >>> ports_of_ring(8, duplex=True), ports_of_ring(2, duplex=True), ports_of_ring(8, duplex=False)
    (2, 1, 1)
    """
    return 2 if duplex and size > 2 else 1


def split_degree(
    sum_bytes: float, pair_bytes: float, degree: int, *, duplex: bool, favour: Favour = Favour.RINGS
) -> tuple[int, int]:
    """Ports for rings and for pairs: d_A = max(1, ceil(d * share of the sums)), in whole duplex rings where duplex.

    In favour of pairs the number of rings is rounded down instead.

    >>> split_degree(75.0, 25.0, 4, duplex=False), split_degree(76.0, 24.0, 4, duplex=False)
    ((3, 1), (4, 0))
    >>> split_degree(50.0, 50.0, 4, duplex=True), split_degree(75.0, 25.0, 4, duplex=True)
    ((2, 2), (4, 0))
    >>> split_degree(75.0, 25.0, 4, duplex=True, favour=Favour.PAIRS)
    (2, 2)
    """
    share = sum_bytes / (sum_bytes + pair_bytes) if sum_bytes + pair_bytes > 0 else 1.0
    ports = min(degree, 2 if duplex else 1)
    exact = degree / ports * share
    rounded = _ceil(exact) if favour is Favour.RINGS else math.floor(exact + ROUNDING)
    rings = min(max(1, rounded), degree // ports)
    return rings * ports, degree - rings * ports


def share_ports(demands: Demands, degree: int, *, duplex: bool, favour: Favour = Favour.RINGS) -> Degrees:
    """Rings for each group size, with one over all servers where the others would leave the network in pieces."""
    totals = wire_bytes_by_size(demands)
    for_sums, for_pairs = split_degree(demands.sum_wire_bytes, demands.pair_bytes, degree, duplex=duplex, favour=favour)
    shares = _Shares(demands.servers, totals, for_sums, duplex)
    shares.by_demand()
    shares.connect()
    shares.hand_on()
    # The split rounded in favour of rings; where rings can only be repeated, it is rounded in favour of pairs.
    owed, _ = split_degree(demands.pair_bytes, demands.sum_wire_bytes, degree, duplex=duplex)
    kept = max(0, owed - for_pairs) if demands.pair_bytes > 0 else 0
    shares.repeat(kept)
    rings = {size: count for size, count in shares.rings.items() if count}
    used = sum(count * ports_of_ring(size, duplex=duplex) for size, count in rings.items())
    return Degrees(for_sums, for_pairs, rings, used)


def port_splits(demands: Demands, degree: int, *, duplex: bool) -> list[Degrees]:
    """Splits among which a simulation should choose, none twice: the published one first.

    Then the one that rounds in favour of pairs, and others of as many ring ports among the group sizes: a group that
    gets no ring of its own rides on those of others, and rings over all servers shorten paths for everybody.
    """
    published, for_pairs = (share_ports(demands, degree, duplex=duplex, favour=favour) for favour in Favour)
    sizes = dict.fromkeys([demands.servers, *wire_bytes_by_size(demands)])
    others = [
        replace(published, rings=rings)
        for rings in _allocations(demands.servers, tuple(sizes), published.ring_ports, duplex)
    ]
    # Next to the published numbers of rings first; of equally near ones the one with more rings over all servers.
    others.sort(key=lambda one: sum(abs(one.rings.get(size, 0) - published.rings.get(size, 0)) for size in sizes))
    splits = [published]
    for split in (for_pairs, *others):
        if dict(split.rings) not in [dict(known.rings) for known in splits] and len(splits) < SPLITS:
            splits.append(split)
    return splits


def _allocations(servers: int, sizes: tuple[int, ...], ports: int, duplex: bool) -> list[dict[int, int]]:
    """All numbers of different rings of these sizes that use up so many ports and join all servers."""
    found = []
    most = [min(ports // ports_of_ring(size, duplex=duplex), len(totient_jumps(size, duplex=duplex))) for size in sizes]
    for counts in product(*(range(limit, -1, -1) for limit in most)):
        rings = {size: count for size, count in zip(sizes, counts, strict=True) if count}
        used = sum(count * ports_of_ring(size, duplex=duplex) for size, count in rings.items())
        if used == ports and math.gcd(servers, *(servers // size for size in rings)) == 1:
            found.append(rings)
    return found


class _Shares:
    """Rings handed out so far and the ports that are left of d_A."""

    def __init__(self, servers: int, totals: dict[int, float], ports: int, duplex: bool) -> None:
        self.servers = servers
        self.totals = totals if servers in totals else {**totals, servers: 0.0}
        self.left = self.ports = ports
        self.all_bytes = sum(totals.values())
        self.rings = dict.fromkeys(self.totals, 0)
        self.cost = {size: ports_of_ring(size, duplex=duplex) for size in self.totals}
        self.different = {size: len(totient_jumps(size, duplex=duplex)) for size in self.totals}
        self.ring_ports = ports_of_ring(servers, duplex=duplex)

    def by_demand(self) -> None:
        """The published rule: d_k = ceil(d_A * share of the group size), largest first, until d_A is used up."""
        if self.all_bytes == 0:
            return
        budget = self.ports // self.ring_ports
        for size, total in self.totals.items():
            asked = _ceil(budget * total / self.all_bytes)
            self._give(size, min(asked, self.different[size], self.left // self.cost[size]))

    def connect(self) -> None:
        """Lay one ring over all servers if the rings leave pieces, in place of the last rings of the least demand.

        Rings of size k join servers n/k apart, so all rings together join servers whose distance is a multiple of the
        greatest common divisor of those strides and n.
        """
        strides = (self.servers // size for size, count in self.rings.items() if count)
        if math.gcd(self.servers, *strides) == 1:
            return
        for size in reversed(self.totals):
            while self.rings[size] and self.left < self.cost[self.servers]:
                self._give(size, -1)
        self._give(self.servers, 1)

    def hand_on(self) -> None:
        """Give ports that nobody could use to the groups with the most bytes for each ring, as long as rings differ."""
        while sizes := [size for size in self.totals if self._affordable(size) and self._has_more(size)]:
            self._give(max(sizes, key=self._pressure), 1)

    def repeat(self, kept: int) -> None:
        """Lay rings again where the bytes for each ring are most, leaving `kept` ports."""
        while sizes := [size for size in self.totals if self._affordable(size, kept) and self.rings[size]]:
            neediest = max(sizes, key=self._pressure)
            if self.totals[neediest] == 0:
                return
            self._give(neediest, 1)

    def _give(self, size: int, count: int) -> None:
        self.rings[size] += count
        self.left -= count * self.cost[size]

    def _affordable(self, size: int, kept: int = 0) -> bool:
        return self.left - kept >= self.cost[size]

    def _has_more(self, size: int) -> bool:
        wanted = self.totals[size] > 0 or self.all_bytes == 0
        return wanted and self.rings[size] < self.different[size]

    def _pressure(self, size: int) -> tuple[float, float, int]:
        count = self.rings[size]
        return (self.totals[size] / count if count else math.inf, self.totals[size], size)


def _ceil(value: float) -> int:
    return math.ceil(value - ROUNDING)
