"""The binary hypercube: hosts are neighbours when their numbers differ in one bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import MOST_LEVELS, at_least, at_most, findings_of, numbered, speeds


@dataclass(frozen=True)
class Hypercube:
    """2^d hosts with one link per bit of their number.

    Cables are numbered bit by bit (least significant first), in order of the host with that bit clear; cable i has
    links 2i (from the host with the bit clear) and 2i + 1 (from the one with the bit set).

    >>> Hypercube(4).hosts, Hypercube(4).build().links
    (16, 64)
    """

    dimensions: int
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("hypercube")
        at_least(findings, 1, dimensions=self.dimensions)
        at_most(findings, MOST_LEVELS, dimensions=self.dimensions)
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def hosts(self) -> int:
        return 1 << int(self.dimensions)

    @property
    def expression(self) -> str:
        return f"hypercube:{self.dimensions}"

    def bisection(self) -> float:
        """Bytes/s between halves: all links of one bit."""
        return self.hosts // 2 * self.bandwidth

    def link(self, host: ArrayLike, dimension: ArrayLike) -> NDArray[np.int64]:
        """Link by which a host sends to the host that differs in bit `dimension`."""
        node, bit = np.asarray(host, np.int64), np.asarray(dimension, np.int64)
        index = node >> (bit + 1) << bit | node & ((1 << bit) - 1)
        return np.asarray(2 * (bit * (self.hosts // 2) + index) + (node >> bit & 1), np.int64)

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        hosts = draft.add_hosts(numbered("h", self.hosts))
        for bit in range(self.dimensions):
            clear = hosts[hosts >> bit & 1 == 0]
            draft.add_links(clear, clear | 1 << bit, self.bandwidth, self.latency)
        return draft.freeze(self)
