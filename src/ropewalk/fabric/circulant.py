"""The circulant: several rings over the same hosts, each with its own stride."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ropewalk.errors import Findings
from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, speeds, whole


@dataclass(frozen=True)
class Circulant:
    """Host i is a neighbour of i + s and i - s (mod N) for every stride s.

    Cables are numbered stride by stride, in order of the host they leave forwards; cable i has links 2i (forwards) and
    2i + 1 (back). A stride of N/2 pairs the hosts up and has N/2 cables.

    >>> Circulant(16, (1, 3)).build().links
    64
    """

    hosts: int
    strides: tuple[int, ...]
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "strides", whole(self.strides, "circulant", "strides"))
        findings = findings_of("circulant")
        at_least(findings, 2, hosts=self.hosts)
        if not findings:
            self._find_bad_strides(findings)
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    def _find_bad_strides(self, findings: Findings) -> None:
        if not self.strides:
            findings.add("there are no strides: give at least one, such as 1")
        for stride in self.strides:
            if not 1 <= stride <= self.hosts // 2:
                advice = f"give {self.hosts - stride}" if self.hosts // 2 < stride < self.hosts else "give another"
                findings.add(f"stride {stride} is outside 1 … {self.hosts // 2} (half of {self.hosts} hosts): {advice}")
        if len(set(self.strides)) < len(self.strides):
            findings.add(f"strides {self.strides} repeat one: list each stride once")
        common = math.gcd(self.hosts, *self.strides)
        if not findings and common > 1:
            findings.add(
                f"strides and {self.hosts} hosts share the factor {common}, so it is not connected: add stride 1"
            )

    @property
    def expression(self) -> str:
        return f"circulant:{self.hosts},{','.join(map(str, self.strides))}"

    def bisection(self) -> float | None:
        """Bytes/s between halves, known where the circulant is one ring."""
        return min(2, self.hosts - 1) * self.bandwidth if len(self.strides) == 1 else None

    def build(self) -> Fabric:
        draft = FabricDraft(self.expression)
        hosts = draft.add_hosts(numbered("h", self.hosts))
        for stride in self.strides:
            leaving = hosts[: stride if 2 * stride == self.hosts else self.hosts]
            draft.add_links(leaving, (leaving + np.int32(stride)) % self.hosts, self.bandwidth, self.latency)
        return draft.freeze(self)
