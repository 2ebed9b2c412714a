"""Which rings a wiring gets: for the rings of all groups together, or group by group by a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.circulants import Rings, best_rings
from ropewalk.codesign.cosets import wire_bytes_by_size
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.totient import totient_jumps
from ropewalk.errors import FabricError

CHOICES = 3
"""Sets of rings that are offered: hops say nothing about the fullest link, so the best few are worth a closer look."""


class JumpSelection(Protocol):
    """Choices of different jumps for the groups of each size, so many as are asked for, the most promising first."""

    def __call__(self, counts: Mapping[int, int], demands: Demands, *, duplex: bool) -> list[Rings]: ...


class RingRule(Protocol):
    """Rings of one group by itself: `count` different jumps, for the demand at each distance (None: all alike)."""

    def __call__(
        self, size: int, count: int, *, duplex: bool, weight: NDArray[np.float64] | None = None
    ) -> tuple[int, ...]: ...


def jointly(
    counts: Mapping[int, int], demands: Demands, *, duplex: bool, prime_only: bool = False, keep: int = CHOICES
) -> list[Rings]:
    """Rings of all groups together with the fewest byte-hops for pairs and for sums of groups that get no rings.

    >>> from ropewalk.codesign.demands import GroupSum
    >>> sums = (GroupSum(tuple(range(128)), 1.0), GroupSum(tuple(range(0, 128, 4)), 1.0))
    >>> jointly({128: 1, 32: 1}, Demands(128, sums, np.zeros((128, 128))), duplex=True)[0]
    {128: (1,), 32: (3,)}
    """
    riding = {size: total for size, total in wire_bytes_by_size(demands).items() if size not in counts}
    weight = demand_by_distance(demands, demands.servers)
    return best_rings(
        demands.servers, counts, duplex=duplex, weight=weight, riding=riding, prime_only=prime_only, keep=keep
    )


def per_group(rule: RingRule) -> JumpSelection:
    """Every group by itself by a rule, as it was published."""

    def select(counts: Mapping[int, int], demands: Demands, *, duplex: bool) -> list[Rings]:
        chosen: Rings = {}
        for size, count in counts.items():
            jumps = tuple(rule(size, count, duplex=duplex, weight=demand_by_distance(demands, size)))
            if len(set(jumps)) != count:
                raise FabricError(
                    f"the selection returned jumps {jumps} for {count} rings of {size} servers: "
                    "return as many, none twice"
                )
            chosen[size] = jumps
        return [chosen]

    return select


def with_repeats(rings: Rings, counts: Mapping[int, int]) -> Rings:
    """As many jumps as asked for: where a group has fewer different rings, the first are laid again.

    >>> with_repeats({12: (1, 5)}, {12: 3})
    {12: (1, 5, 1)}
    """
    return {size: tuple(rings[size][at % len(rings[size])] for at in range(count)) for size, count in counts.items()}


def different(counts: Mapping[int, int], *, duplex: bool) -> dict[int, int]:
    """Rings asked for, at most as many as are different."""
    return {size: min(count, len(totient_jumps(size, duplex=duplex))) for size, count in counts.items()}


def demand_by_distance(demands: Demands, size: int) -> NDArray[np.float64] | None:
    """Bytes of pairs by how many members further on they go, for pairs inside a coset; None where there are none."""
    servers = np.arange(demands.servers)
    stride = demands.servers // size
    found = np.array(
        [demands.pairs[servers, (servers + member * stride) % demands.servers].sum() for member in range(size)]
    )
    return found if found.any() else None
