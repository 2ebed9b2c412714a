"""Clusters by name: servers as vendors build them, any number of them, on the network they are sold with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from ropewalk.choices import Choice, Choices
from ropewalk.errors import ClusterError
from ropewalk.hardware.complete import usual_size
from ropewalk.hardware.draft import ClusterDraft, GroupDraft

_PRESET = re.compile(r"([a-z][a-z0-9-]*):([0-9]{1,6})")


@dataclass(frozen=True)
class Preset(Choice[Callable[[int], ClusterDraft]]):
    """A kind of server and how its vendor joins many of them; `make` takes the number of servers."""

    def facts(self) -> dict[str, str]:
        return {"network": self.where}


def _preset(name: str, device: str, about: str, *, rails: bool) -> Preset:
    def make(count: int) -> ClusterDraft:
        group = GroupDraft(count, usual_size(device), device)
        return ClusterDraft(f"cluster {name}:{count}", (group,), "leaf-spine", None, rails, firm=False)

    return Preset(name, make, about, where=_RAILS if rails else _PLAIN)


_RAILS = "rail-optimised: NIC i of every server on leaf i, full bandwidth to the spines, as in a DGX SuperPOD"
_PLAIN = "servers fill the leafs of a non-blocking leaf-spine in order"

PRESETS: Choices[Preset] = Choices(
    "preset",
    (
        _preset("dgx-1", "v100", "8 V100, 4 NICs of 100 Gbps", rails=False),
        _preset("dgx-a100", "a100", "8 A100, 8 NICs of 200 Gbps", rails=True),
        _preset("dgx-h100", "h100", "8 H100, 8 NICs of 400 Gbps", rails=True),
        _preset("dgx-h200", "h200", "8 H200, 8 NICs of 400 Gbps", rails=True),
        _preset("dgx-b200", "b200", "8 B200, 8 NICs of 400 Gbps", rails=True),
        _preset("dgx-b300", "b300", "8 B300, 8 NICs of 800 Gbps", rails=True),
        _preset("gb200-nvl72", "gb200", "72 GPUs of GB200 on one NVLink domain, a NIC of 400 Gbps each", rails=True),
        _preset("gb300-nvl72", "gb300", "72 GPUs of GB300 on one NVLink domain, a NIC of 800 Gbps each", rails=True),
        _preset("hgx-a100", "a100", "8 A100, 8 NICs of 200 Gbps", rails=False),
        _preset("hgx-h100", "h100", "8 H100, 8 NICs of 400 Gbps", rails=False),
        _preset("hgx-h200", "h200", "8 H200, 8 NICs of 400 Gbps", rails=False),
        _preset("hgx-b200", "b200", "8 B200, 8 NICs of 400 Gbps", rails=False),
        _preset("mi300x", "mi300x", "8 MI300X, 8 NICs of 400 Gbps", rails=False),
    ),
    error=ClusterError,
)
"""By name; `name:servers` is a cluster."""


def preset(text: str) -> ClusterDraft:
    """The cluster that a preset and its number of servers say.

    >>> preset("dgx-h100:64").groups[0].device
    'h100'
    """
    known = ", ".join(PRESETS)
    match = _PRESET.fullmatch(text.strip().lower())
    name = text.strip().lower().partition(":")[0]
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]}:{4 if match is None else match[2]}? " if near else ""
        raise ClusterError(
            f"there is no cluster {text!r}: {hint}name a cluster file (.yaml, .json), a preset with its number of "
            f"servers such as dgx-h100:64 ({known}), or a shape such as 4x8"
        )
    if match is None or int(match[2]) < 1:
        raise ClusterError(f"cluster {text!r} has no number of servers from 1 to 999999: write it like {name}:16")
    return PRESETS[name].make(int(match[2]))
