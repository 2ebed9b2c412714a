"""What can be slow: links by direction, cables, GPUs and switches with all their links."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric

_GPU = re.compile(r"gpu([0-9]+)\.([0-9]+)")
_OF_SERVER = re.compile(r"\b(?:gpu|nic)([0-9]+)\.|\bnvswitch([0-9]+)\b")


@dataclass(frozen=True, eq=False)
class Component:
    """A part of the network whose links are slow together."""

    kind: str
    """link, cable, gpu or switch."""
    name: str
    links: tuple[int, ...]
    about: str = ""
    """Which NIC or NVLink it is, where that is known."""

    @property
    def spoken(self) -> str:
        """Its kind as people write it."""
        return "GPU" if self.kind == "gpu" else self.kind

    @property
    def said(self) -> str:
        return f"{self.spoken} {self.name}" + (f" ({self.about})" if self.about else "")

    @property
    def server(self) -> str | None:
        """The number of the server that it is in or at, where its name says it of one."""
        found = {number for numbers in _OF_SERVER.findall(self.name) for number in numbers if number}
        return found.pop() if len(found) == 1 else None


ORDER = ("cable", "link", "gpu", "switch")
"""Which of several that explain the same is named first."""


def components_of(fabric: Fabric) -> list[Component]:
    """Everything that may be guilty.

    >>> from ropewalk.fabric import IdealSwitch
    >>> [one.said for one in components_of(IdealSwitch(2).build())][:3]
    ['cable h0-switch', 'link h0->switch', 'link switch->h0']
    """
    names = fabric.node_names
    by_ends: dict[tuple[int, int], list[int]] = {}
    for link, (src, dst) in enumerate(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True)):
        by_ends.setdefault((src, dst), []).append(link)
    found: list[Component] = []
    for (src, dst), links in by_ends.items():
        back = by_ends.get((dst, src), [])
        if src < dst or not back:
            about = _about(names[src], names[dst])
            if back:
                found.append(Component("cable", f"{names[src]}-{names[dst]}", (*links, *back), about))
            for a, b, some in ((src, dst, links), (dst, src, back)):
                if some:
                    found.append(Component("link", f"{names[a]}->{names[b]}", tuple(some), about))
    for node, name in enumerate(names):
        own = np.flatnonzero((fabric.link_src == node) | (fabric.link_dst == node))
        if len(own) > 2:
            found.append(Component("gpu" if node < fabric.hosts else "switch", name, tuple(own.tolist())))
    return found


def _about(one: str, other: str) -> str:
    gpu = _GPU.fullmatch(one)
    if gpu is None:
        return ""
    if other.startswith("nvswitch"):
        return f"NVLink of GPU {gpu[2]} of server {gpu[1]}"
    return f"NIC {gpu[2]} of server {gpu[1]}" if not other.startswith("nic") else f"GPU {gpu[2]} of server {gpu[1]}"


def slowest_of(components: list[Component], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """For every row of seconds by link, those of the slowest link of each component."""
    links = np.concatenate([np.array(one.links) for one in components])
    start = np.cumsum([0, *(len(one.links) for one in components)])[:-1]
    return np.maximum.reduceat(seconds[:, links], start, axis=1)
