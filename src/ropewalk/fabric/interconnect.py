"""What joins GPUs of each generation inside a server and to the network, as their vendors build them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from ropewalk.errors import FabricError
from ropewalk.fabric.dgx import NIC_A100, NIC_H100, NVLINK_A100, NVLINK_H100


@dataclass(frozen=True)
class Interconnect:
    """Bytes/s are for one direction. Whatever joins the GPUs of a server is modelled as a switch that never blocks."""

    gpus_per_server: int
    nvlink_bandwidth: float
    """From one GPU to all others of its server together."""
    nics_per_server: int
    nic_bandwidth: float
    source: str


_PCIE = "PCI Express x16 between GPUs of a server without NVLink, its nominal rate; one 100 Gbps NIC for two GPUs"

INTERCONNECTS: dict[str, Interconnect] = {
    "p100": Interconnect(8, 80e9, 4, 12.5e9, "NVIDIA DGX-1 (P100): 4 NVLinks of 20 GB/s per direction, 4 EDR NICs"),
    "v100": Interconnect(8, 150e9, 4, 12.5e9, "NVIDIA DGX-1 (V100): 6 NVLinks of 25 GB/s per direction, 4 EDR NICs"),
    "a100": Interconnect(8, NVLINK_A100, 8, NIC_A100, "NVIDIA DGX A100: 12 NVLinks of 25 GB/s per direction, 8 HDR "
        "NICs"),
    "h100": Interconnect(8, NVLINK_H100, 8, NIC_H100, "NVIDIA DGX H100: 18 NVLinks of 25 GB/s per direction, 8 NDR "
        "NICs"),
    "h200": Interconnect(8, NVLINK_H100, 8, NIC_H100, "NVIDIA DGX H200: 18 NVLinks of 25 GB/s per direction, 8 NDR "
        "NICs"),
    "b200": Interconnect(8, 900e9, 8, 50e9, "NVIDIA DGX B200: 18 NVLinks of 50 GB/s per direction, 8 NDR NICs"),
    "b300": Interconnect(8, 900e9, 8, 100e9, "NVIDIA DGX B300: 18 NVLinks of 50 GB/s per direction, 8 XDR NICs"),
    "gb200": Interconnect(72, 900e9, 72, 50e9, "NVIDIA GB200 NVL72: 18 NVLinks of 50 GB/s per direction, an NDR NIC "
        "a GPU"),
    "gb300": Interconnect(72, 900e9, 72, 100e9, "NVIDIA GB300 NVL72: 18 NVLinks of 50 GB/s per direction, an XDR NIC "
        "a GPU"),
    "mi250": Interconnect(
        4, 400e9, 4, 25e9,
        "AMD Instinct MI250: 8 Infinity Fabric links of 50 GB/s per direction, a mesh modelled as a switch; "
        "4 NICs of 200 Gbps as in a Frontier node",
    ),
    "mi300x": Interconnect(
        8, 448e9, 8, 50e9,
        "AMD Instinct MI300X platform: 7 Infinity Fabric links of 64 GB/s per direction, a full mesh modelled as a "
        "switch "
        "(one pair has only 64 GB/s in reality); 8 NICs of 400 Gbps",
    ),
    "t4": Interconnect(4, 15.75e9, 2, 12.5e9, f"PCIe 3.0: {_PCIE}"),
    "a10": Interconnect(4, 31.5e9, 2, 12.5e9, f"PCIe 4.0: {_PCIE}"),
    "l4": Interconnect(8, 31.5e9, 4, 12.5e9, f"PCIe 4.0: {_PCIE}"),
    "l40s": Interconnect(8, 31.5e9, 4, 12.5e9, f"PCIe 4.0: {_PCIE}"),
    "rtx4090": Interconnect(8, 31.5e9, 4, 12.5e9, f"PCIe 4.0: {_PCIE}"),
}  # fmt: skip
"""By the name of the GPU."""

_TRIMMINGS = re.compile(r"[-_](?:sxm[0-9]?|oam|[0-9]+gb)")


def gpu_in(title: str) -> str | None:
    """The GPU that a driver's title speaks of, if it is one whose servers are known.

    Cards on PCI Express have the name of the GPU that they share a chip with, but are wired in no known way.

    >>> gpu_in("NVIDIA A100-SXM4-80GB"), gpu_in("NVIDIA GeForce RTX 4090"), gpu_in("NVIDIA H100 PCIe")
    ('a100', 'rtx4090', None)
    """
    words = re.split(r"[\s_-]+", title.lower())
    if "pcie" in words:
        return None
    named = {*words, *("".join(pair) for pair in pairwise(words))}
    return next((gpu for gpu in INTERCONNECTS if gpu in named), None)


def interconnect(gpu: str) -> Interconnect:
    """How servers of this GPU are built; the size of its memory and its socket make no difference.

    >>> interconnect("a100-80gb").nic_bandwidth
    25000000000.0
    """
    found = INTERCONNECTS.get(gpu.lower()) or INTERCONNECTS.get(_TRIMMINGS.sub("", gpu.lower()))
    if found is None:
        raise FabricError(
            f"the wiring of servers of gpu {gpu} is not known (known: {', '.join(INTERCONNECTS)}): "
            "give the bandwidth between GPUs of a server (--nvlink-bandwidth) and of a NIC (--bandwidth)"
        )
    return found
