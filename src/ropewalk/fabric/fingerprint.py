"""What tells whether a fabric is still the one that something was decided for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ropewalk.fabric.fabric import Fabric


@dataclass(frozen=True)
class Fingerprint:
    """Two fabrics with the same fingerprint have the same nodes, links, speeds and latencies."""

    hosts: int
    links: int
    digest: str

    def changed(self, now: Fingerprint) -> str | None:
        """How a fabric differs from the one with this fingerprint; None where it does not."""
        if now == self:
            return None
        for what, before, after in (("hosts", self.hosts, now.hosts), ("links", self.links, now.links)):
            if before != after:
                return f"it has {after} {what} now, but had {before}"
        return "its names, bandwidths or latencies have changed"


def fingerprint(fabric: Fabric) -> Fingerprint:
    """The fingerprint of a fabric; the same on every machine.

    >>> from ropewalk.fabric import IdealSwitch
    >>> before, after = (fingerprint(IdealSwitch(4, speed).build()) for speed in (1e9, 2e9))
    >>> before.changed(after)
    'its names, bandwidths or latencies have changed'
    """
    digest = hashlib.sha256("\n".join(fabric.node_names).encode())
    for ints in (fabric.link_src, fabric.link_dst, fabric.cables):
        digest.update(np.ascontiguousarray(ints, "<i8").tobytes())
    for floats in (fabric.bandwidth, fabric.latency):
        digest.update(np.ascontiguousarray(floats, "<f8").tobytes())
    return Fingerprint(fabric.hosts, fabric.links, digest.hexdigest())
