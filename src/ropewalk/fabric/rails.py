"""Rails without spines: one switch for each NIC number of the servers, and nothing between those switches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, speeds

RAIL_ONLY = "rail-only"
"""What people write for it; only servers complete it to a network, so it is no family of fabrics."""


@dataclass(frozen=True)
class RailSwitches:
    """Port (rail, server) is host rail*servers + server, on the switch of its rail.

    By themselves the rails are separate: servers join them, whose GPUs reach another rail through NVLink (Wang et al.,
    "Rail-only: a low-cost high-performance network for training LLMs with trillion parameters", 2023).

    >>> RailSwitches(rails=8, servers=4).build().switches
    8
    """

    rails: int
    servers: int
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of(RAIL_ONLY)
        at_least(findings, 1, rails=self.rails, servers=self.servers)
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def hosts(self) -> int:
        return self.rails * self.servers

    @property
    def expression(self) -> str:
        """For people to read: without servers there is no such network."""
        return RAIL_ONLY

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        ports = draft.add_hosts(numbered("h", self.hosts))
        switches = draft.add_switches(numbered("rail", self.rails), level=1)
        draft.add_links(ports, np.repeat(switches, self.servers), self.bandwidth, self.latency)
        return draft.freeze(self)
