"""What NCCL's names of links mean in bytes/s: as the wires are built, or as NCCL itself counts on them.

NCCL plans with what it measured: an NVLink of 25 GB/s counts as 20, PCIe 3.0 x16 as 12. Simulations and optima want the
wire, so `PHYSICAL` is what is used unless `NCCL` is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

GB = 1e9
INSIDE_A_CHIP = 5000 * GB
"""Two faces of one switch: no bottleneck."""


@dataclass(frozen=True)
class LinkSpeeds:
    """GB/s of one link or lane, one direction."""

    name: str
    nvlink: Sequence[tuple[int, float]]
    """(compute capability from which on, GB/s of one NVLink), newest first."""
    nvlink_bridge: float
    """NVLink of cards with compute capability 8.6, which have slower bridges."""
    xgmi: Sequence[tuple[str, float]]
    """(beginning of the name of an AMD GPU, GB/s of one Infinity Fabric link)."""
    pcie_lane: dict[float, float]
    """GT/s -> GB/s of one lane."""

    def nvlink_bandwidth(self, capability: int) -> float:
        """Bytes/s of one NVLink of a GPU of this compute capability, such as 80.

        >>> PHYSICAL.nvlink_bandwidth(90), NCCL.nvlink_bandwidth(90)
        (25000000000.0, 20600000000.0)
        """
        if capability == 86:
            return self.nvlink_bridge * GB
        return next((speed for since, speed in self.nvlink if capability >= since), self.nvlink[-1][1]) * GB

    def xgmi_bandwidth(self, gpu: str) -> float:
        """Bytes/s of one Infinity Fabric link of a GPU such as gfx942; older files leave out the letters."""
        name = gpu if gpu.startswith("gfx") else f"gfx{gpu}"
        return next((speed for begin, speed in self.xgmi if name.startswith(begin)), self.xgmi[-1][1]) * GB

    def pcie_bandwidth(self, transfers: float, lanes: int) -> float:
        return self.pcie_lane[transfers] * lanes * GB


PHYSICAL = LinkSpeeds(
    "physical",
    nvlink=[(100, 50.0), (70, 25.0), (60, 20.0)],
    nvlink_bridge=14.0625,
    xgmi=[("gfx94", 64.0), ("gfx95", 76.8), ("gfx90a", 50.0), ("gfx", 46.0)],
    # x16 carries 4, 8, 15.75, 31.5, 63 and 121 GB/s
    pcie_lane={2.5: 0.25, 5.0: 0.5, 8.0: 15.75 / 16, 16.0: 31.5 / 16, 32.0: 63 / 16, 64.0: 121 / 16},
)
NCCL = LinkSpeeds(
    "nccl",
    nvlink=[(100, 40.1), (90, 20.6), (70, 20.0), (60, 18.0)],
    nvlink_bridge=12.0,
    xgmi=[("gfx94", 48.0), ("gfx95", 48.0), ("gfx90a", 36.0), ("gfx", 24.0)],
    pcie_lane={2.5: 0.1875, 5.0: 0.375, 8.0: 0.75, 16.0: 1.5, 32.0: 3.0, 64.0: 6.0},
)
SPEEDS: dict[str, LinkSpeeds] = {speeds.name: speeds for speeds in (PHYSICAL, NCCL)}

_TRANSFERS = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?GT/s(?: PCIe)?")
UNKNOWN_SPEED = 8.0
"""GT/s where the kernel does not know: virtual machines hide it, and NCCL then takes PCIe 3.0 x16."""
UNKNOWN_LANES = 16


def transfers_of(text: str) -> float | None:
    """GT/s of a lane as the kernel writes it; None where this is no speed of PCI Express.

    >>> transfers_of("16.0 GT/s PCIe"), transfers_of("Unknown"), transfers_of("fast")
    (16.0, 8.0, None)
    """
    if not text.strip() or text.strip().lower().startswith("unknown"):
        return UNKNOWN_SPEED
    match = _TRANSFERS.fullmatch(text.strip())
    speed = float(match[1]) if match else None
    return speed if speed in PHYSICAL.pcie_lane else None


def between_cpus(arch: str, vendor: str, family: int, model: int) -> float | None:
    """Bytes/s between two sockets as NCCL counts on them, as no file says how they are wired; None where unknown."""
    if arch == "ppc64":
        return 32 * GB
    if arch == "arm64":
        return 6 * GB
    if arch != "x86_64":
        return None
    if vendor == "AuthenticAMD":
        return 16 * GB
    if vendor == "GenuineIntel":
        if family != 6:
            return 6 * GB
        # A model that nobody knows, such as -1, counts as an old one.
        return next((speed for since, speed in ((0xCF, 40), (0x8F, 22), (0x55, 10)) if model >= since), 6) * GB
    if vendor in ("CentaurHauls", "  Shanghai  "):
        return (9 if (family, model) == (7, 0x5B) else 6) * GB
    return None
