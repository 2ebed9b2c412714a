"""BCube: a server-centric fabric in which hosts with several NICs forward between small switches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import MOST_LEVELS, at_least, at_most, findings_of, numbered, speeds


@dataclass(frozen=True)
class BCube:
    """n^k hosts with k NICs; a level-l switch joins the n hosts that differ only in digit l (Guo et al., 2009).

    `levels` counts levels, which is one more than the subscript of the original BCube_k. Digits of a host are base n,
    digit 0 least significant. The level-l switch of a host is node hosts + l*n^(k-1) + index, where index is the host
    with digit l removed. Cable i = l*hosts + host has links 2i (host to switch) and 2i + 1 (switch to host).

    >>> BCube(4, 2).hosts, BCube(4, 2).build().switches
    (16, 8)
    """

    ports: int
    levels: int
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("bcube")
        at_least(findings, 2, ports=self.ports)
        at_least(findings, 1, levels=self.levels)
        at_most(findings, MOST_LEVELS, levels=self.levels)
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def hosts(self) -> int:
        return math.prod([self.ports] * self.levels)

    @property
    def expression(self) -> str:
        return f"bcube:{self.ports},{self.levels}"

    def bisection(self) -> float | None:
        """Bytes/s between halves where a closed form is known: one level is a switch, two ports are a hypercube.

        Elsewhere splitting one digit need not be the cheapest cut (BCube(6, 2) has one of 16 NICs, not 18): None.
        """
        if self.levels == 1 or self.ports == 2:
            return self.hosts // 2 * self.bandwidth
        return None

    def digit(self, host: ArrayLike, level: ArrayLike) -> NDArray[np.int64]:
        """Digit `level` of a host, which is also its port at the switch of that level."""
        return np.asarray(host, np.int64) // self.ports ** np.asarray(level, np.int64) % self.ports

    def switch(self, host: ArrayLike, level: ArrayLike) -> NDArray[np.int64]:
        """Node id of the level-`level` switch of a host."""
        weight = self.ports ** np.asarray(level, np.int64)
        node = np.asarray(host, np.int64)
        index = node // (weight * self.ports) * weight + node % weight
        return self.hosts + np.asarray(level, np.int64) * (self.hosts // self.ports) + index

    def up(self, host: ArrayLike, level: ArrayLike) -> NDArray[np.int64]:
        """Link from a host to its switch of a level; the link from the switch to the host is the next id."""
        return 2 * (np.asarray(level, np.int64) * self.hosts + np.asarray(host, np.int64))

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        hosts = draft.add_hosts(numbered("h", self.hosts))
        for level in range(self.levels):
            # Levels of a BCube are equals, not tiers; they are numbered so that a drawing can tell them apart.
            names = numbered(f"s{level}.", self.hosts // self.ports)
            draft.add_switches(names, level=level + 1)
        for level in range(self.levels):
            draft.add_links(hosts, self.switch(hosts, level), self.bandwidth, self.latency)
        return draft.freeze(self)
