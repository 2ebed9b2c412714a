"""The ideal switch: all hosts on one switch that never blocks, the fabric every other one is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, speeds


@dataclass(frozen=True)
class IdealSwitch:
    """N hosts on one non-blocking switch, node N. Host h sends on link 2h and receives on link 2h + 1.

    >>> IdealSwitch(64).build().links
    128
    """

    hosts: int
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("switch")
        at_least(findings, 2, hosts=self.hosts)
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def expression(self) -> str:
        return f"switch:{self.hosts}"

    def bisection(self) -> float:
        """Bytes/s between halves: the NICs of one half."""
        return self.hosts // 2 * self.bandwidth

    def host_up(self, host: ArrayLike) -> NDArray[np.int64]:
        """Link from a host to the switch; the link back is the next id."""
        return 2 * np.asarray(host, np.int64)

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        hosts = draft.add_hosts(numbered("h", self.hosts))
        switch = draft.add_switches(["switch"], level=1)
        draft.add_links(hosts, switch, self.bandwidth, self.latency)
        return draft.freeze(self)
