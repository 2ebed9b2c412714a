"""The three-tier fat-tree: edge, aggregation and core switches of one radix, with any share of the uplinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, numbered_in_groups, speeds


@dataclass(frozen=True)
class FatTree:
    """Switches of radix r in pods of r/2 edge and r/2 aggregation switches, joined by (r/2)^2 cores.

    With m = r/2, host (pod, edge, h) is node (pod*m + edge)*m + h. Behind the hosts stand the edge switches
    (pod*m + edge), the aggregation switches (pod*m + aggregation) and the cores (aggregation*m + core): core (a, c)
    has one cable to aggregation switch a of every pod. `pods` below r leaves core ports empty; pods = r/2 gives m^3
    hosts. With fewer than m `aggregations` in a pod, edge switches have that many uplinks for their m hosts, and all
    above them shrinks alike: the tree is oversubscribed m : aggregations.

    Cable i has links 2i (up) and 2i + 1 (down). With H hosts, a aggregation switches in each of P pods and U = P*m*a
    uplinks, hosts come first (i = host), then edge to aggregation (i = H + (pod*m + edge)*a + aggregation), then
    aggregation to core (i = H + U + (pod*a + aggregation)*m + core).

    >>> FatTree(4).hosts, FatTree(4).build().switches
    (16, 20)
    >>> FatTree(8, aggregations=2).oversubscription
    2.0
    """

    radix: int
    pods: int | None = None
    aggregations: int | None = None
    """Of a pod; half the radix unless given, which does not block."""
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("fat-tree")
        at_least(findings, 2, radix=self.radix)
        if not findings and self.radix % 2:
            findings.add(f"radix is {self.radix}: half the ports go up, so give an even radix such as {self.radix + 1}")
        if self.pods is not None:
            at_least(findings, 2, pods=self.pods)
            if not findings and self.pods > self.radix:
                findings.add(
                    f"pods is {self.pods}, but a core of radix {self.radix} reaches {self.radix} pods: give fewer"
                )
        if not findings and self.aggregations is not None and self.half % max(self.aggregations, 1):
            findings.add(
                f"{self.half} hosts of an edge switch do not divide evenly over {self.aggregations} aggregation "
                f"switches: give a divisor of {self.half}"
            )
        if self.aggregations is not None:
            at_least(findings, 1, aggregations=self.aggregations)
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()
        # The full tree has one spelling, so that equal trees are equal.
        if self.pods == self.radix:
            object.__setattr__(self, "pods", None)
        if self.aggregations == self.half:
            object.__setattr__(self, "aggregations", None)

    @property
    def half(self) -> int:
        """m = r/2: hosts of an edge switch, edge switches of a pod, cores above an aggregation switch."""
        return self.radix // 2

    @property
    def uplinks(self) -> int:
        """Of an edge switch: as many as its pod has aggregation switches."""
        return self.half if self.aggregations is None else self.aggregations

    @property
    def oversubscription(self) -> float:
        """What the hosts of an edge switch can send, over what the switch can send up: 1 is non-blocking."""
        return self.half / self.uplinks

    @property
    def pod_count(self) -> int:
        return self.radix if self.pods is None else self.pods

    @property
    def hosts(self) -> int:
        return self.pod_count * self.half**2

    @property
    def expression(self) -> str:
        if self.aggregations is not None:
            return f"fat-tree:{self.radix},{self.pod_count},{self.aggregations}"
        return f"fat-tree:{self.radix}" if self.pods is None else f"fat-tree:{self.radix},{self.pods}"

    def bisection(self) -> float:
        """Bytes/s between halves: the tree above the edge switches never blocks, so their uplinks or NICs are the cut.

        The cheapest number of whole edge switches is on one side, and single hosts for the rest.
        """
        edges, half = self.pod_count * self.half, self.hosts // 2
        near = np.arange(edges + 1)
        misplaced = np.minimum(np.abs(near * self.half - half), np.abs(near * self.half - (self.hosts - half)))
        return float((np.minimum(near, edges - near) * self.uplinks + misplaced).min() * self.bandwidth)

    def host_up(self, host: ArrayLike) -> NDArray[np.int64]:
        """Link from a host to its edge switch; the link down to the host is the next id."""
        return 2 * np.asarray(host, np.int64)

    def edge_up(self, pod: ArrayLike, edge: ArrayLike, aggregation: ArrayLike) -> NDArray[np.int64]:
        """Link from an edge switch to an aggregation switch of its pod; the link down is the next id."""
        p, e, a = (np.asarray(value, np.int64) for value in (pod, edge, aggregation))
        return 2 * (self.hosts + (p * self.half + e) * self.uplinks + a)

    def core_up(self, pod: ArrayLike, aggregation: ArrayLike, core: ArrayLike) -> NDArray[np.int64]:
        """Link from an aggregation switch to its core number `core` (0 … m-1); the link down is the next id."""
        p, a, c = (np.asarray(value, np.int64) for value in (pod, aggregation, core))
        first = self.hosts + self.pod_count * self.half * self.uplinks
        return 2 * (first + (p * self.uplinks + a) * self.half + c)

    def build(self) -> Fabric:
        m, a, pods = self.half, self.uplinks, self.pod_count
        draft = FabricDraft(self.expression)
        hosts = draft.add_hosts(numbered("h", self.hosts))
        edges = draft.add_switches(numbered_in_groups("edge", pods, m), level=1)
        aggregations = draft.add_switches(numbered_in_groups("agg", pods, a), level=2)
        cores = draft.add_switches(numbered_in_groups("core", a, m), level=3)
        wire: dict[str, Any] = {"bandwidth": self.bandwidth, "latency": self.latency}
        draft.add_links(hosts, np.repeat(edges, m), **wire)
        draft.add_links(np.repeat(edges, a), np.repeat(aggregations.reshape(pods, a), m, axis=0).ravel(), **wire)
        draft.add_links(np.repeat(aggregations, m), np.tile(cores, pods), **wire)
        return draft.freeze(self)
