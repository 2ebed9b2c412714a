"""The three-tier fat-tree: edge, aggregation and core switches of one radix."""

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
    hosts.

    Every tier has as many cables as there are hosts, H. Cable i has links 2i (up) and 2i + 1 (down): hosts first
    (i = host), then edge to aggregation (i = H + (pod*m + edge)*m + aggregation), then aggregation to core
    (i = 2H + (pod*m + aggregation)*m + core).

    >>> FatTree(4).hosts, FatTree(4).build().switches
    (16, 20)
    """

    radix: int
    pods: int | None = None
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
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()
        if self.pods == self.radix:
            object.__setattr__(self, "pods", None)  # the full tree has one spelling, so that equal trees are equal

    @property
    def half(self) -> int:
        """m = r/2: hosts of an edge switch, edge and aggregation switches of a pod."""
        return self.radix // 2

    @property
    def pod_count(self) -> int:
        return self.radix if self.pods is None else self.pods

    @property
    def hosts(self) -> int:
        return self.pod_count * self.half**2

    @property
    def expression(self) -> str:
        return f"fat-tree:{self.radix}" if self.pods is None else f"fat-tree:{self.radix},{self.pods}"

    def bisection(self) -> float:
        """Bytes/s between halves of the hosts: the tree is rearrangeably non-blocking, so the NICs are the cut."""
        return self.hosts // 2 * self.bandwidth

    def host_up(self, host: ArrayLike) -> NDArray[np.int64]:
        """Link from a host to its edge switch; the link down to the host is the next id."""
        return 2 * np.asarray(host, np.int64)

    def edge_up(self, pod: ArrayLike, edge: ArrayLike, aggregation: ArrayLike) -> NDArray[np.int64]:
        """Link from an edge switch to an aggregation switch of its pod; the link down is the next id."""
        return self._up(1, pod, edge, aggregation)

    def core_up(self, pod: ArrayLike, aggregation: ArrayLike, core: ArrayLike) -> NDArray[np.int64]:
        """Link from an aggregation switch to its core number `core` (0 … m-1); the link down is the next id."""
        return self._up(2, pod, aggregation, core)

    def _up(self, tier: int, pod: ArrayLike, below: ArrayLike, above: ArrayLike) -> NDArray[np.int64]:
        p, b, a = (np.asarray(value, np.int64) for value in (pod, below, above))
        return 2 * (tier * self.hosts + (p * self.half + b) * self.half + a)

    def build(self) -> Fabric:
        m, pods = self.half, self.pod_count
        draft = FabricDraft(self.expression)
        hosts = draft.add_hosts(numbered("h", self.hosts))
        edges = draft.add_switches(numbered_in_groups("edge", pods, m), level=1)
        aggregations = draft.add_switches(numbered_in_groups("agg", pods, m), level=2)
        cores = draft.add_switches(numbered_in_groups("core", m, m), level=3)
        wire: dict[str, Any] = {"bandwidth": self.bandwidth, "latency": self.latency}
        draft.add_links(hosts, np.repeat(edges, m), **wire)
        draft.add_links(np.repeat(edges, m), np.repeat(aggregations.reshape(pods, m), m, axis=0).ravel(), **wire)
        draft.add_links(np.repeat(aggregations, m), np.tile(cores, pods), **wire)
        return draft.freeze(self)
