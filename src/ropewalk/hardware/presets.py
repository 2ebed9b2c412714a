"""Clusters by name: servers as vendors build them, any number of them, on the network they are sold with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from ropewalk.errors import ClusterError

_PRESET = re.compile(r"([a-z][a-z0-9-]*):([0-9]{1,6})")


@dataclass(frozen=True)
class Preset:
    """A kind of server and how its vendor joins many of them."""

    name: str
    device: str
    network: str
    rails: bool
    about: str


_RAILS = "rail-optimised: NIC i of every server on leaf i, full bandwidth to the spines, as in a DGX SuperPOD"
_PLAIN = "servers one after the other on the leafs of a non-blocking leaf-spine"

PRESETS: dict[str, Preset] = {
    one.name: one
    for one in (
        Preset("dgx-1", "v100", "leaf-spine", False, f"8 V100, 4 NICs of 100 Gbps; {_PLAIN}"),
        Preset("dgx-a100", "a100", "leaf-spine", True, f"8 A100, 8 NICs of 200 Gbps; {_RAILS}"),
        Preset("dgx-h100", "h100", "leaf-spine", True, f"8 H100, 8 NICs of 400 Gbps; {_RAILS}"),
        Preset("dgx-h200", "h200", "leaf-spine", True, f"8 H200, 8 NICs of 400 Gbps; {_RAILS}"),
        Preset("dgx-b200", "b200", "leaf-spine", True, f"8 B200, 8 NICs of 400 Gbps; {_RAILS}"),
        Preset("hgx-a100", "a100", "leaf-spine", False, f"8 A100, 8 NICs of 200 Gbps; {_PLAIN}"),
        Preset("hgx-h100", "h100", "leaf-spine", False, f"8 H100, 8 NICs of 400 Gbps; {_PLAIN}"),
        Preset("hgx-h200", "h200", "leaf-spine", False, f"8 H200, 8 NICs of 400 Gbps; {_PLAIN}"),
        Preset("hgx-b200", "b200", "leaf-spine", False, f"8 B200, 8 NICs of 400 Gbps; {_PLAIN}"),
        Preset("mi300x", "mi300x", "leaf-spine", False, f"8 MI300X, 8 NICs of 400 Gbps; {_PLAIN}"),
    )
}
"""By name; `name:servers` is a cluster."""


def preset(text: str) -> tuple[Preset, int]:
    """The preset and its number of servers.

    >>> found, servers = preset("dgx-h100:64")
    >>> found.device, servers
    ('h100', 64)
    """
    known = ", ".join(PRESETS)
    match = _PRESET.fullmatch(text.strip().lower())
    name = text.strip().lower().partition(":")[0]
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]}:4? " if near else ""
        raise ClusterError(
            f"there is no cluster {text!r}: {hint}name a cluster file (.yaml, .json), a preset with its number of "
            f"servers such as dgx-h100:64 ({known}), or a shape such as 4x8"
        )
    if match is None or int(match[2]) < 1:
        raise ClusterError(f"cluster {text!r} has no number of servers: write it like {name}:16")
    return PRESETS[name], int(match[2])
