"""The dragonfly: groups of fully meshed routers, with long links between the groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, numbered_in_groups, speeds


@dataclass(frozen=True)
class Dragonfly:
    """Groups of `routers` in full mesh, each with `hosts_per_router` hosts and `global_links` links to other groups.

    Every two groups are joined by the same number of links, routers*global_links // (groups - 1); global ports that
    are left over stay empty. Global port q of a group belongs to router q // global_links and leads q mod (groups - 1)
    + 1 groups further on. Host (group, router, h) is node (group*routers + router)*hosts_per_router + h; routers
    follow, group by group. Cables: hosts, then inside the groups, then between them.

    Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", 2008.

    >>> Dragonfly(9, 4, 2, 2).hosts
    72
    """

    groups: int
    routers: int
    hosts_per_router: int
    global_links: int
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("dragonfly")
        at_least(findings, 2, groups=self.groups)
        at_least(
            findings,
            1,
            routers=self.routers,
            hosts_per_router=self.hosts_per_router,
            global_links=self.global_links,
        )
        if not findings and self.groups - 1 > self.routers * self.global_links:
            most = self.routers * self.global_links + 1
            findings.add(
                f"{self.groups} groups need {self.groups - 1} global links per group: give at most {most} groups"
            )
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def hosts(self) -> int:
        return self.groups * self.routers * self.hosts_per_router

    @property
    def links_per_pair(self) -> int:
        """Cables between any two groups."""
        return self.routers * self.global_links // (self.groups - 1)

    @property
    def expression(self) -> str:
        return f"dragonfly:{self.groups},{self.routers},{self.hosts_per_router},{self.global_links}"

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        hosts = draft.add_hosts(numbered("h", self.hosts))
        routers = draft.add_switches(numbered_in_groups("router", self.groups, self.routers), level=1)
        of_group = routers.reshape(self.groups, self.routers)
        draft.add_links(hosts, np.repeat(routers, self.hosts_per_router), self.bandwidth, self.latency)
        near, far = np.triu_indices(self.routers, 1)
        draft.add_links(of_group[:, near].ravel(), of_group[:, far].ravel(), self.bandwidth, self.latency)
        # A pair (i, j) with i < j is d = j - i apart: port d - 1 of i meets port groups - 1 - d of j, in each bundle.
        first, second = np.triu_indices(self.groups, 1)
        bundle = np.arange(self.links_per_pair) * (self.groups - 1)
        apart = (second - first)[:, None]
        out_port, in_port = bundle + apart - 1, bundle + self.groups - 1 - apart
        leaving = of_group[first[:, None], out_port // self.global_links]
        arriving = of_group[second[:, None], in_port // self.global_links]
        draft.add_links(leaving.ravel(), arriving.ravel(), self.bandwidth, self.latency)
        return draft.freeze(self)
