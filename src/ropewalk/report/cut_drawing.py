"""A fabric with the cut that limits a collective: its inside in one colour, the links that cross it on top."""

from __future__ import annotations

import numpy as np

from ropewalk.collectives.optimum import Cut
from ropewalk.fabric import Fabric
from ropewalk.report import quantity
from ropewalk.report.drawing import Drawing, draw
from ropewalk.report.link_classes import LinkClasses

MOST_DRAWN_NODES = 5_000
MOST_DRAWN_LINKS = 6_000


def draw_cut(fabric: Fabric, members: set[int], cut: Cut | None) -> Drawing | None:
    """The fabric, its cut and who takes part; by speed where there is no cut, None where it is too large."""
    if fabric.nodes > MOST_DRAWN_NODES:
        return None
    inside = set() if cut is None else {*cut.members, *cut.forwarders}
    marks = dict.fromkeys(inside, "inside")
    for host in set(range(fabric.hosts)) - members:
        marks[host] = "relay inside" if host in inside else "relay"
    return draw(fabric, None if cut is None else by_cut(fabric, cut), marks=marks, most_links=MOST_DRAWN_LINKS)


def by_cut(fabric: Fabric, cut: Cut) -> LinkClasses:
    """Links that cross a cut, and all others."""
    return some_links(fabric, cut.links, f"links across the cut ({quantity.count(len(cut.links))})")


def some_links(fabric: Fabric, links: tuple[int, ...], label: str) -> LinkClasses:
    """Some links on top, and all others."""
    chosen = np.zeros(fabric.links, np.bool_)
    chosen[list(links)] = True
    # Of the links between two nodes the highest value is drawn: below zero, others yield to one that is chosen.
    value = np.where(chosen, fabric.bandwidth, -fabric.bandwidth)
    return LinkClasses(
        "cut", value, chosen.astype(np.int64), ("other links", label), lambda signed: quantity.gigabytes(abs(signed)),
        directed=True,
    )  # fmt: skip


def draw_links(fabric: Fabric, links: tuple[int, ...], label: str) -> Drawing | None:
    """The fabric with some links marked; None where it is too large."""
    if fabric.nodes > MOST_DRAWN_NODES:
        return None
    return draw(fabric, some_links(fabric, links, label), most_links=MOST_DRAWN_LINKS)
