"""A fabric as a picture: an SVG that stays crisp at any size, hosts as discs and switches as squares.

Up to some hundred links each one can be pointed at for its name; thousands are drawn as a few long paths, which a
browser pans and zooms without effort.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.fabric.layout import layout
from ropewalk.report import quantity
from ropewalk.report.link_classes import LinkClasses, by_speed

WIDTH, HEIGHT = 1000.0, 640.0
"""The box that a drawing fits into, in its own units."""
NAMED_NODES = 1_500
NAMED_LINKS = 1_000
MOST_LINKS = 20_000


@dataclass(frozen=True)
class Drawing:
    """The picture, what its colours mean, and what was left out of it."""

    svg: Markup
    legend: tuple[tuple[str, str], ...]
    """(CSS class, words) of each class of links, none where all are alike."""
    palette: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Cables:
    """What is drawn between two nodes: one line for all links that join them."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    link: NDArray[np.int64]
    """The link with the highest value: it gives the line its class and its name."""
    one_way: NDArray[np.bool_]
    together: int
    """Lines in the whole fabric, drawn or not."""


def draw(
    fabric: Fabric,
    classes: LinkClasses | None = None,
    *,
    marks: Mapping[int, str] | None = None,
    most_links: int = MOST_LINKS,
) -> Drawing:
    """Draw a fabric with its links in classes, by speed unless told otherwise; `marks` are CSS classes of nodes.

    >>> from ropewalk.fabric import Ring
    >>> str(draw(Ring(3).build()).svg).count("<circle")
    3
    """
    classes = by_speed(fabric) if classes is None else classes
    at, unit, height = _placed(fabric)
    cables = _cables(fabric, classes, most_links)
    part = 0.3 if unit > 16 else 0.22  # where nodes crowd, the lines between them still need room
    host, switch = max(1.3, min(part * unit, 9.0)), max(2.4, min(part * 1.2 * unit, 10.0))
    label = f"{fabric.name}: {size_in_words(fabric)}"
    parts = [
        Markup('<svg class="fabric {}" viewBox="0 0 {:g} {:.0f}" role="img" aria-label="{}">').format(
            classes.palette, WIDTH, height, label
        ),
        Markup('<g class="links">'),
        *(_named_links if len(cables.link) <= NAMED_LINKS else _link_paths)(fabric, classes, cables, at),
        Markup("</g>"),
        *(_named_nodes if fabric.nodes <= NAMED_NODES else _node_paths)(fabric, at, host, switch, marks or {}),
        Markup("</svg>"),
    ]
    legend = tuple((f"c{number}", text) for number, text in enumerate(classes.labels))
    return Drawing(Markup("").join(parts), legend if len(legend) > 1 else (), classes.palette, _remarks(fabric, cables))


def _remarks(fabric: Fabric, cables: _Cables) -> tuple[str, ...]:
    remarks = []
    if len(cables.link) < cables.together:
        remarks.append(
            f"{quantity.count(len(cables.link))} of {quantity.count(cables.together)} lines are drawn, sampled evenly."
        )
    if fabric.nodes > NAMED_NODES:
        remarks.append(f"Names are omitted in drawings of more than {quantity.count(NAMED_NODES)} nodes.")
    return tuple(remarks)


def _placed(fabric: Fabric) -> tuple[NDArray[np.float64], float, float]:
    """Nodes in the box with y downwards, the length of one unit of the layout, and the height that is used."""
    at = layout(fabric) * (1, -1)
    low, extent = at.min(axis=0), np.ptp(at, axis=0)
    pad = 14.0
    spans = [(box - 2 * pad) / side for box, side in zip((WIDTH, HEIGHT), extent.tolist(), strict=True) if side > 0]
    unit = min([*spans, 130.0])
    used = extent * unit
    return (at - low) * unit + [(WIDTH - used[0]) / 2, pad], unit, used[1] + 2 * pad


def _cables(fabric: Fabric, classes: LinkClasses, most: int) -> _Cables:
    low = np.minimum(fabric.link_src, fabric.link_dst).astype(np.int64)
    high = np.maximum(fabric.link_src, fabric.link_dst).astype(np.int64)
    order = np.lexsort((np.arange(fabric.links), -classes.value, high, low))
    pair = low[order] * fabric.nodes + high[order]
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    forward = (fabric.link_src < fabric.link_dst)[order].astype(np.int64)
    directions = np.add.reduceat(forward, start) if len(start) else forward
    size = np.diff(start, append=len(pair))
    chosen = np.arange(len(start))
    if len(chosen) > most:
        chosen = np.linspace(0, len(start) - 1, most).astype(np.int64)
    link = order[start[chosen]]
    one_way = ((directions == 0) | (directions == size))[chosen]
    return _Cables(low[link], high[link], link, one_way, len(start))


def _named_links(fabric: Fabric, classes: LinkClasses, cables: _Cables, at: NDArray[np.float64]) -> list[Markup]:
    line = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"><title>{}</title></line>')
    drawn = []
    # The highest class is drawn last, on top of the others.
    for number in np.argsort(classes.of_link[cables.link], kind="stable").tolist():
        link = int(cables.link[number])
        ends = (fabric.node_names[fabric.link_src[link]], fabric.node_names[fabric.link_dst[link]])
        joint = " → " if cables.one_way[number] or classes.directed else " – "
        css = f"c{classes.of_link[link]}" + (" one-way" if cables.one_way[number] else "")
        name = f"{joint.join(ends)} · {classes.show(float(classes.value[link]))}"
        drawn.append(line.format(css, *at[cables.first[number]], *at[cables.second[number]], name))
    return drawn


def _link_paths(fabric: Fabric, classes: LinkClasses, cables: _Cables, at: NDArray[np.float64]) -> list[Markup]:
    drawn = []
    faint = min(0.6, max(0.12, 2_500 / len(cables.link)))  # thousands of full lines would be one grey wall
    of_cable = classes.of_link[cables.link]
    for number in range(len(classes.labels)):
        mine = of_cable == number
        ends = np.column_stack([at[cables.first[mine]], at[cables.second[mine]]])
        moves = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in ends.tolist())
        if moves:
            drawn.append(Markup('<path class="c{}" stroke-opacity="{:.2f}" d="{}"/>').format(number, faint, moves))
    return drawn


def _named_nodes(
    fabric: Fabric, at: NDArray[np.float64], host: float, switch: float, marks: Mapping[int, str]
) -> list[Markup]:
    disc = Markup('<circle{} cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>')
    square = Markup('<rect{} x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{:.1f}"><title>{}</title></rect>')
    places = at.tolist()
    discs = [
        disc.format(_css(marks, node), *places[node], host, fabric.node_names[node]) for node in range(fabric.hosts)
    ]
    squares = [
        square.format(
            _css(marks, node), places[node][0] - switch, places[node][1] - switch, 2 * switch, 2 * switch, switch / 4,
            fabric.node_names[node],
        )
        for node in range(fabric.hosts, fabric.nodes)
    ]  # fmt: skip
    return [
        Markup('<g class="switches">'), *squares, Markup("</g>"),
        Markup('<g class="hosts">'), *discs, Markup("</g>"),
    ]  # fmt: skip


def _css(marks: Mapping[int, str], node: int) -> Markup:
    return Markup(' class="{}"').format(marks[node]) if node in marks else Markup("")


def _node_paths(
    fabric: Fabric, at: NDArray[np.float64], host: float, switch: float, marks: Mapping[int, str]
) -> list[Markup]:
    """Nodes as dots of a pen: a stroke of no length whose round or square cap is the node."""
    drawn = []
    kinds = (("switches", range(fabric.hosts, fabric.nodes), switch), ("hosts", range(fabric.hosts), host))
    for css, nodes, radius in kinds:
        for mark in sorted({marks.get(node, "") for node in nodes}):
            moves = "".join(f"M{at[node, 0]:.1f} {at[node, 1]:.1f}h0" for node in nodes if marks.get(node, "") == mark)
            drawn.append(
                Markup('<path class="{}" stroke-width="{:.1f}" d="{}"/>').format(
                    f"pen {css} {mark}".rstrip(), 2 * radius, moves
                )
            )
    return drawn


def size_in_words(fabric: Fabric) -> str:
    """64 hosts, 48 switches."""
    switches = "no switches" if not fabric.switches else f"{quantity.count(fabric.switches)} switches"
    return f"{quantity.count(fabric.hosts)} hosts, {'1 switch' if fabric.switches == 1 else switches}"
