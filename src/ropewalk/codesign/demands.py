"""What a seating asks of the network: sums over groups, which can take any ring, and transfers between pairs.

The two stay apart. An all-reduce is mutable: every regular ring over its group carries it equally well. A transfer
between two servers is not. Adding both into one matrix would lose what the search for a topology lives on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings, StrategyError


@dataclass(frozen=True)
class GroupSum:
    """An all-reduce: `size_bytes` of weights summed over the servers of a group in every step."""

    servers: tuple[int, ...]
    size_bytes: float

    @property
    def wire_bytes(self) -> float:
        """Bytes that all its servers together put on the wire: 2(k-1) times the size, whatever the rings."""
        return 2.0 * (len(self.servers) - 1) * self.size_bytes


@dataclass(frozen=True, eq=False)
class Demands:
    """All-reduces by group, and model-parallel bytes from server to server."""

    servers: int
    sums: tuple[GroupSum, ...]
    """One for each group of at least two servers, the groups in order of first use."""
    pairs: NDArray[np.float64]
    """pairs[a, b]: bytes that server a sends to server b in a step; the diagonal is zero."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "demands")
        if self.pairs.shape != (self.servers, self.servers):
            findings.add(f"the matrix of pairs is {self.pairs.shape}: give one row and column for each server")
        elif (self.pairs < 0).any() or np.diagonal(self.pairs).any() or not np.isfinite(self.pairs).all():
            findings.add("a pair sends a negative or infinite number of bytes, or a server sends to itself")
        if any(len(group.servers) < 2 or group.size_bytes < 0 for group in self.sums):
            findings.add("an all-reduce has fewer than two servers or a negative size")
        findings.raise_if_any()

    @property
    def sum_wire_bytes(self) -> float:
        """Bytes of all sums on the wire."""
        return sum(group.wire_bytes for group in self.sums)

    @property
    def pair_bytes(self) -> float:
        """Model-parallel bytes of a step."""
        return float(self.pairs.sum())
