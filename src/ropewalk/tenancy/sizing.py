"""How many GPUs two tiers of switches hold, and what it costs never to rearrange: Clos's two conditions.

>>> rearrangeable(64)
Sizing(ports=64, gpus_per_leaf=32, leafs=64, spines=32, unused_leaf_ports=0)
>>> strictly_non_blocking(64).gpus, strictly_non_blocking(64).switches
(1344, 105)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ropewalk.errors import ClusterError


@dataclass(frozen=True)
class Sizing:
    """A two-tier cluster of switches with `ports` ports, each leaf with one cable to each spine."""

    ports: int
    gpus_per_leaf: int
    leafs: int
    spines: int
    unused_leaf_ports: int

    @property
    def gpus(self) -> int:
        return self.leafs * self.gpus_per_leaf

    @property
    def switches(self) -> int:
        return self.leafs + self.spines

    @property
    def switches_per_gpu(self) -> Fraction:
        return Fraction(self.switches, self.gpus)

    @property
    def expression(self) -> str:
        """The cluster as written on the command line."""
        return f"leaf-spine:{self.leafs}x{self.spines}x{self.gpus_per_leaf}"


def rearrangeable(ports: int) -> Sizing:
    """As many ways up as down (m >= n): every permutation fits if routes may be rearranged. k²/2 GPUs, 3k/2 switches.

    Of an odd number of ports one stays free.
    """
    down = _ports(ports) // 2
    return Sizing(ports, down, ports, down, ports - 2 * down)


def strictly_non_blocking(ports: int) -> Sizing:
    """m >= 2n - 1 ways up (Clos 1953): every new connection fits without touching the others."""
    down = (_ports(ports) + 1) // 3
    up = 2 * down - 1
    return Sizing(ports, down, ports, up, ports - down - up)


def _ports(ports: int) -> int:
    if ports < 2:
        raise ClusterError(f"a switch with {ports} ports connects nothing: give 2 ports or more")
    return ports
