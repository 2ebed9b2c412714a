"""Servers whose GPUs no NVSwitch joins: the hybrid cube mesh of a DGX-1, and trees of PCI Express."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.fabric.fabric import Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, at_most, findings_of, numbered, numbered_in_groups, speeds

NVLINK_V100, NVLINK_P100 = 25e9, 20e9
"""Bytes/s of one NVLink, one direction."""
PCIE_4 = 31.5e9
"""Bytes/s of PCIe 4.0 x16, one direction."""
BETWEEN_CPUS = 22e9
"""Bytes/s between two sockets, as NCCL counts on them for Intel's CPUs since Sapphire Rapids."""

_PAIRS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 5), (2, 3), (2, 6), (3, 7), (4, 5), (4, 6), (4, 7),
          (5, 6), (5, 7), (6, 7))  # fmt: skip
_TWICE = {(0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7)}
"""Pairs of V100s with two NVLinks."""


@dataclass(frozen=True)
class CubeMesh:
    """The first GPUs of a DGX-1: two squares with their diagonals, joined corner by corner.

    A V100 has six NVLinks, two each to two of its four neighbours; a P100 has four, one to each.

    >>> CubeMesh().build().host_bandwidth().tolist() == [6 * 25e9] * 8
    True
    """

    gpus: int = 8
    bandwidth: float = NVLINK_V100
    """Of one NVLink."""
    twice: bool = True
    """Have some pairs two NVLinks, as between V100s?"""
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("dgx-1v" if self.twice else "dgx-1p")
        at_least(findings, 2, gpus=self.gpus)
        at_most(findings, 8, gpus=self.gpus)
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def hosts(self) -> int:
        return self.gpus

    @property
    def inside_bandwidth(self) -> float:
        """Bytes/s from a GPU of a whole server to all others together."""
        return (6 if self.twice else 4) * self.bandwidth

    @property
    def expression(self) -> str:
        return f"dgx-1{'v' if self.twice else 'p'}:{self.gpus}"

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        draft.add_hosts(numbered_in_groups("gpu", 1, self.gpus))
        pairs = [pair for pair in _PAIRS if max(pair) < self.gpus]
        cables = np.array([2 if self.twice and pair in _TWICE else 1 for pair in pairs])
        src, dst = np.array(pairs).T
        draft.add_links(src, dst, cables * self.bandwidth, self.latency, cables)
        return draft.freeze(self, server=np.zeros(self.gpus, np.int32))


@dataclass(frozen=True)
class PcieTree:
    """GPUs on switches of PCI Express, switches on the host bridges of the CPUs, CPUs joined to each other.

    GPUs count through the switches, switches through the CPUs. With one GPU per switch, GPUs are on the bridges. Links
    are PCIe 4.0 x16 unless given.

    >>> PcieTree(8).build().node_names[8:]
    ('pcie0', 'pcie1', 'cpu0', 'cpu1')
    """

    gpus: int
    per_switch: int = 4
    cpus: int = 2
    bandwidth: float = PCIE_4
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("pcie")
        at_least(findings, 2, gpus=self.gpus)
        at_least(findings, 1, per_switch=self.per_switch, cpus=self.cpus)
        if not findings and self.gpus % self.per_switch:
            findings.add(f"{self.gpus} GPUs do not fill switches of {self.per_switch}: give a divisor of {self.gpus}")
        elif not findings and self.switches % self.cpus:
            findings.add(f"{self.switches} switches do not spread over {self.cpus} CPUs: give a divisor of them")
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def hosts(self) -> int:
        return self.gpus

    @property
    def inside_bandwidth(self) -> float:
        """Bytes/s from a GPU to all others together."""
        return self.bandwidth

    @property
    def switches(self) -> int:
        return self.gpus // self.per_switch

    @property
    def expression(self) -> str:
        return f"pcie:{self.gpus},{self.per_switch},{self.cpus}"

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        gpus = draft.add_hosts(numbered_in_groups("gpu", 1, self.gpus))
        below = gpus
        if self.per_switch > 1:
            below = draft.add_switches(numbered("pcie", self.switches), level=1)
            draft.add_links(gpus, np.repeat(below, self.per_switch), self.bandwidth, self.latency)
        cpus = draft.add_switches(numbered("cpu", self.cpus), level=2)
        draft.add_links(below, np.repeat(cpus, len(below) // self.cpus), self.bandwidth, self.latency)
        first, second = np.triu_indices(self.cpus, 1)
        if len(first):
            draft.add_links(cpus[first], cpus[second], BETWEEN_CPUS, self.latency)
        return draft.freeze(self, server=np.zeros(self.gpus, np.int32))
