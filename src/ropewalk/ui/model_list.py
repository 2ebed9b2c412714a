"""What the planner's form offers to choose from, read from the tables that commands read."""

from __future__ import annotations

from functools import cache
from typing import Any

SERVERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
NIC_GBPS = (25, 50, 100, 200, 400, 800)
NETWORKS = ("rails", "rail-only", "leaf-spine", "fat-tree", "switch", "wire")
"""Networks that are offered; any other can be typed."""


@cache
def models() -> list[dict[str, Any]]:
    """Every model of the zoo, with one sentence each, whether its samples are sequences, and how long they may be."""
    from ropewalk.workload.zoo import ZOO

    return [
        {"name": name, "about": entry.about, "sequences": entry.sequence > 0, "longest": entry.longest or None}
        for name, entry in ZOO.items()
    ]


@cache
def options_of_planner() -> dict[str, Any]:
    """Presets, devices, stacks, precisions and the steps of sliders."""
    from ropewalk.device.device import DEVICES
    from ropewalk.hardware import PRESETS
    from ropewalk.workload.zoo.stacks import STACKS

    return {
        "presets": [
            {"name": name, "about": one.about, "gpus": one.make(1).groups[0].gpus} for name, one in PRESETS.items()
        ],
        "devices": [{"name": name, "about": one.about} for name, one in DEVICES.items()],
        "stacks": [{"name": name, "about": one.about} for name, one in STACKS.items()],
        "networks": list(NETWORKS),
        "precisions": ["bf16", "fp8", "fp8-delayed", "fp8-block", "mxfp8", "nvfp4", "fp16", "tf32", "fp32"],
        "servers": list(SERVERS),
        "nic_gbps": list(NIC_GBPS),
    }
