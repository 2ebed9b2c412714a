"""The two-tier leaf-spine fabric, with any oversubscription and several cables between a leaf and a spine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, speeds


@dataclass(frozen=True)
class LeafSpine:
    """Every leaf has its hosts below it and `cables` parallel links to every spine above it.

    Host (leaf, h) is node leaf*hosts_per_leaf + h; then come the leafs, then the spines. Cable i has links 2i (up)
    and 2i + 1 (down): hosts first (i = host), then leaf to spine
    (i = hosts + (leaf*spines + spine)*cables + cable).

    >>> LeafSpine(leafs=4, spines=2, hosts_per_leaf=4).oversubscription
    2.0
    """

    leafs: int
    spines: int
    hosts_per_leaf: int
    cables: int = 1
    uplink_bandwidth: float | None = None
    """Bytes/s of one leaf-spine cable; the bandwidth of a host link unless given."""
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("leaf-spine")
        at_least(
            findings, 1, leafs=self.leafs, spines=self.spines, hosts_per_leaf=self.hosts_per_leaf, cables=self.cables
        )
        if not findings and self.hosts < 2:
            findings.add("there is one host: give 2 leafs or 2 hosts per leaf")
        speeds(findings, self.latency, bandwidth=self.bandwidth, uplink_bandwidth=self.uplink)
        findings.raise_if_any()

    @property
    def uplink(self) -> float:
        return self.bandwidth if self.uplink_bandwidth is None else self.uplink_bandwidth

    @property
    def hosts(self) -> int:
        return self.leafs * self.hosts_per_leaf

    @property
    def oversubscription(self) -> float:
        """What the hosts of a leaf can send, over what the leaf can send up: 1 is non-blocking."""
        return self.hosts_per_leaf * self.bandwidth / (self.spines * self.cables * self.uplink)

    @property
    def expression(self) -> str:
        shape = f"leaf-spine:{self.leafs}x{self.spines}x{self.hosts_per_leaf}"
        return shape if self.cables == 1 else f"{shape}x{self.cables}"

    def bisection(self) -> float:
        """Bytes/s between halves: the cheapest number of whole leafs on one side, and NICs for the rest."""
        near = np.arange(self.leafs + 1)
        half = self.hosts // 2
        placed = near * self.hosts_per_leaf
        misplaced = np.minimum(np.abs(placed - half), np.abs(placed - (self.hosts - half)))
        uplinks = np.minimum(near, self.leafs - near) * self.spines * self.cables
        return float((uplinks * self.uplink + misplaced * self.bandwidth).min())

    def host_up(self, host: ArrayLike) -> NDArray[np.int64]:
        """Link from a host to its leaf; the link down to the host is the next id."""
        return 2 * np.asarray(host, np.int64)

    def leaf_up(self, leaf: ArrayLike, spine: ArrayLike, cable: ArrayLike = 0) -> NDArray[np.int64]:
        """Link from a leaf to a spine over one of their cables; the link down is the next id."""
        at, above, strand = (np.asarray(value, np.int64) for value in (leaf, spine, cable))
        return 2 * (self.hosts + (at * self.spines + above) * self.cables + strand)

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        hosts = draft.add_hosts(numbered("h", self.hosts))
        leafs = draft.add_switches(numbered("leaf", self.leafs), level=1)
        spines = draft.add_switches(numbered("spine", self.spines), level=2)
        draft.add_links(hosts, np.repeat(leafs, self.hosts_per_leaf), self.bandwidth, self.latency)
        below = np.repeat(leafs, self.spines * self.cables)
        above = np.tile(np.repeat(spines, self.cables), self.leafs)
        draft.add_links(below, above, self.uplink, self.latency)
        return draft.freeze(self)
