"""Servers of GPUs: a fast switch inside each server, one NIC per GPU outside, and a switch for every rail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.fabric.fabric import Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, numbered_in_groups, speeds

NVLINK_A100 = 300e9
"""Bytes/s from an A100 to its NVSwitches, one direction: NVIDIA states 600 GB/s for both directions together."""
NVLINK_H100 = 450e9
"""Bytes/s from an H100 to its NVSwitches, one direction: NVIDIA states 900 GB/s for both directions together."""
NIC_A100 = 25e9
"""200 Gbps: one HDR InfiniBand adapter for each GPU of a DGX A100."""
NIC_H100 = 50e9
"""400 Gbps: one NDR InfiniBand adapter for each GPU of a DGX H100."""

_GENERATIONS = {NVLINK_A100: "dgx-a100", NVLINK_H100: "dgx-h100"}


@dataclass(frozen=True)
class Dgx:
    """Servers whose GPUs are the hosts of the fabric, joined by NVLink inside and by rails outside.

    GPU g of a server is node server*gpus + g (`fabric.server` says which server). Then come one NVSwitch node per
    server, the rail switches (GPU g has its NIC on rail g mod rails), and the spines. Without spines the fabric is
    rail-only: GPUs on different rails reach each other through NVLink. With spines, every rail switch has enough
    cables up not to block. Cables: NVLink of each GPU, NIC of each GPU, then rail to spine.

    >>> Dgx(2).build().hosts
    16
    """

    servers: int
    gpus: int = 8
    rails: int | None = None
    """Rail switches; one for each GPU of a server unless given."""
    spines: int = 0
    nvlink_bandwidth: float = NVLINK_A100
    bandwidth: float = NIC_A100
    """Bytes/s of the NIC of one GPU."""
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("dgx")
        at_least(findings, 1, servers=self.servers, gpus=self.gpus, rails=self.rail_count)
        at_least(findings, 0, spines=self.spines)
        if not findings and self.servers * self.gpus < 2:
            findings.add("there is one GPU: give more servers or more GPUs per server")
        if not findings and self.gpus % self.rail_count:
            findings.add(
                f"{self.gpus} GPUs do not divide evenly over {self.rail_count} rails: give a divisor of {self.gpus}"
            )
        elif not findings and self.spines and self.nics_per_rail % self.spines:
            findings.add(
                f"{self.nics_per_rail} NICs of a rail do not divide evenly over {self.spines} spines: "
                f"give a divisor of {self.nics_per_rail}"
            )
        speeds(findings, self.latency, bandwidth=self.bandwidth, nvlink_bandwidth=self.nvlink_bandwidth)
        findings.raise_if_any()
        if self.rails == self.gpus:
            object.__setattr__(self, "rails", None)  # one spelling, so that equal fabrics have equal records

    @property
    def rail_count(self) -> int:
        return self.gpus if self.rails is None else self.rails

    @property
    def nics_per_rail(self) -> int:
        return self.servers * self.gpus // self.rail_count

    @property
    def hosts(self) -> int:
        return self.servers * self.gpus

    @property
    def expression(self) -> str:
        """Shortest spelling; the family names the generation whose NVLink speed it has."""
        numbers = [self.servers, self.gpus, self.rail_count, self.spines]
        defaults = [None, 8, self.gpus, 0]
        while numbers[-1] == defaults[len(numbers) - 1]:
            numbers.pop()
        return f"{_GENERATIONS.get(self.nvlink_bandwidth, 'dgx')}:{','.join(map(str, numbers))}"

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        gpus = draft.add_hosts(numbered_in_groups("gpu", self.servers, self.gpus))
        server, place = np.divmod(np.arange(self.hosts, dtype=np.int32), np.int32(self.gpus))
        nvswitches = draft.add_switches(numbered("nvswitch", self.servers), level=1)
        rails = draft.add_switches(numbered("rail", self.rail_count), level=2)
        spines = draft.add_switches(numbered("spine", self.spines), level=3)
        draft.add_links(gpus, nvswitches[server], self.nvlink_bandwidth, self.latency)
        draft.add_links(gpus, rails[place % self.rail_count], self.bandwidth, self.latency)
        if self.spines:
            cables = self.nics_per_rail // self.spines
            below, above = np.repeat(rails, self.spines), np.tile(spines, self.rail_count)
            draft.add_links(below, above, cables * self.bandwidth, self.latency, cables)
        return draft.freeze(self, server=server)
