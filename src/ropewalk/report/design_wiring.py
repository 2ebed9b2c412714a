"""The wiring of a design as pictures: all cables on one circle of servers, and a panel for each kind of ring.

On a circle a regular ring is a star polygon, so its jump can be seen. In the panel of a kind of ring one ring stands
out, with its first hops as strong lines, and the others of its kind are faint. Cables that no ring is made of were laid
for transfers between pairs, or for shorter paths; they are drawn on top and have a panel of their own. Whoever points
at a server sees its cables and reads its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from ropewalk import palette
from ropewalk.codesign.rings import Ends, cables_by_kind
from ropewalk.fabric.wiring import Wiring, rings_in_words
from ropewalk.palette import Colour
from ropewalk.report import quantity

SIZE, RADIUS = 720.0, 318.0
PANEL, PANEL_RADIUS = 340.0, 138.0
NAME_WIDTH = 22.0
MOST_NAMES = 32
"""Numbers of servers around a circle."""
FIRST_HOPS = 3
"""Of a ring in its panel, drawn as strong lines and named."""
FINE, FINER = 96, 300
"""Lines of one kind from which on they are thin, and very thin."""
RINGS = (palette.BLUE, palette.AMBER, palette.GREEN, palette.PURPLE, palette.BROWN, palette.SKY)
PAIRS = palette.RED


@dataclass(frozen=True)
class CableKind:
    """Cables that were laid for the same purpose: rings of one size and jump, or single pairs of servers."""

    words: str
    colour: Colour
    routes: tuple[tuple[int, ...], ...]
    """Servers in the order in which each ring visits them, back to the first; of a pair, its two ends."""
    cables: int
    of_rings: bool
    wired: bool = True
    """Made of cables of its own; otherwise its hops go over the cables of others."""

    @property
    def style(self) -> Markup:
        return Markup("--light:{};--dark:{}").format(self.colour.light, self.colour.dark)


@dataclass(frozen=True)
class Panel:
    """One kind of cables by itself."""

    svg: Markup
    kind: CableKind


@dataclass(frozen=True)
class WiringDrawing:
    """All cables together, and each kind by itself."""

    svg: Markup
    kinds: tuple[CableKind, ...]
    panels: tuple[Panel, ...]
    remarks: tuple[str, ...] = ()


def draw_wiring(wiring: Wiring) -> WiringDrawing:
    """Chords on a circle; the server at the first place on top, the others clockwise."""
    kinds = _kinds(wiring)
    whole = _Circle(wiring, SIZE, RADIUS)
    # Short cables lie on top of long ones, those of pairs on top of all.
    drawn = sorted((kind for kind in kinds if kind.wired), key=lambda kind: (not kind.of_rings, -whole.span(kind)))
    words = ", ".join(f"{quantity.count(kind.cables)} cables: {kind.words}" for kind in drawn)
    parts = [
        *whole.begin(f"{quantity.count(wiring.servers)} servers, {words}", " whole"),
        *(whole.lines(kind.routes, kind, f"all{_fineness(kind.cables)}") for kind in drawn),
        *_servers(wiring, whole, kinds),
        *whole.names(wiring.by_place[:: _every(wiring.servers)], 20),
        Markup("</svg>"),
    ]
    panels = tuple(Panel(_panel(wiring, kind), kind) for kind in kinds)
    return WiringDrawing(Markup("").join(parts), kinds, panels)


class _Circle:
    """Servers around a circle, in the order of their places on the rings."""

    def __init__(self, wiring: Wiring, size: float, radius: float) -> None:
        self.wiring, self.size, self.radius = wiring, size, radius
        self.place = wiring.places or tuple(range(wiring.servers))
        self.disc = max(1.1, min(8.0, 0.28 * 2 * math.pi * radius / wiring.servers))

    def begin(self, label: str, css: str = "") -> list[Markup]:
        head = Markup('<svg class="fabric wiring{2}" viewBox="0 0 {0:g} {0:g}" role="img" aria-label="{1}">')
        return [head.format(self.size, label, css)]

    def at(self, server: int, beyond: float = 0.0) -> tuple[float, float]:
        turn = 2 * math.pi * self.place[server] / self.wiring.servers
        radius = self.radius + beyond
        return self.size / 2 + radius * math.sin(turn), self.size / 2 - radius * math.cos(turn)

    def span(self, kind: CableKind) -> int:
        """Places between the ends of its first hop."""
        apart = abs(self.place[kind.routes[0][1]] - self.place[kind.routes[0][0]])
        return min(apart, self.wiring.servers - apart)

    def hop(self, a: int, b: int) -> str:
        """A line that bends to the middle of the circle, so that short cables leave its rim, the longer the farther."""
        servers, apart = self.wiring.servers, abs(self.place[b] - self.place[a])
        turn = math.pi * (self.place[a] + self.place[b]) / servers
        chord = math.cos(math.pi * apart / servers)  # of the radius, with its sign: the middle of a straight line
        radius = self.radius * chord * (1 - math.sqrt(2 * min(apart, servers - apart) / servers))
        middle = self.size / 2 + radius * math.sin(turn), self.size / 2 - radius * math.cos(turn)
        return "Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*middle, *self.at(b))

    def lines(self, routes: tuple[tuple[int, ...], ...], kind: CableKind, css: str) -> Markup:
        """One path for all of them."""
        moves = "".join(
            "M{:.1f} {:.1f}".format(*self.at(route[0])) + "".join(self.hop(a, b) for a, b in pairwise(route))
            for route in routes
        )
        waits = "" if kind.wired else " relayed"
        return Markup('<path class="kind {}" style="{}" d="{}"/>').format(css + waits, kind.style, moves)

    def names(self, servers: Iterable[int], beyond: float) -> list[Markup]:
        """Numbers outside the circle, of those servers that are far enough from the ones before."""
        text = Markup('<text x="{:.1f}" y="{:.1f}">{}</text>')
        spots: list[tuple[float, float]] = []
        drawn = []
        for server in servers:
            spot = self.at(server, beyond)
            if all(math.dist(spot, other) > NAME_WIDTH for other in spots):
                spots.append(spot)
                drawn.append(text.format(*spot, server))
        return drawn


def _fineness(lines: int) -> str:
    return " finer" if lines > FINER else " fine" if lines > FINE else ""


def _every(servers: int) -> int:
    """All of a few servers are named, of more every second, fourth and so on."""
    return 1 if servers <= MOST_NAMES else 2 ** math.ceil(math.log2(servers / MOST_NAMES))


def _kinds(wiring: Wiring) -> tuple[CableKind, ...]:
    """Rings by size and jump in the order of the wiring, then everything else."""
    server, words = wiring.by_place, iter(rings_in_words(wiring))
    kinds: list[CableKind] = []
    for rings in wiring.rings:
        stride = wiring.servers // rings.size
        for jump in dict.fromkeys(rings.jumps):
            routes = tuple(
                tuple(server[first + stride * (hop * jump % rings.size)] for hop in range(rings.size + 1))
                for first in range(stride)
            )
            laid = len({frozenset(hop) if wiring.duplex else hop for route in routes for hop in pairwise(route)})
            times = rings.jumps.count(jump)
            colour = RINGS[len(kinds) % len(RINGS)]
            kinds.append(CableKind(next(words), colour, routes, laid * times, of_rings=True, wired=rings.wired))
    others = cables_by_kind(wiring)[1]
    if others:
        kinds.append(_of_pairs(others, wiring.duplex))
    return tuple(kinds)


def _of_pairs(cables: list[tuple[Ends, int]], duplex: bool) -> CableKind:
    (a, b), _ = cables[0]
    joint = "-" if duplex else " to "
    more = f" and {quantity.count(len(cables) - 1)} other pairs" if len(cables) > 1 else ""
    words = f"servers {a}{joint}{b}{more} have direct cables, for their own traffic or for shorter paths"
    count = sum(times for _, times in cables)
    return CableKind(words, PAIRS, tuple(ends for ends, _ in cables), count, of_rings=False)


def _servers(wiring: Wiring, circle: _Circle, kinds: tuple[CableKind, ...]) -> list[Markup]:
    """Discs; behind each, hidden until somebody points at it, its cables and the names of its neighbours."""
    near: list[dict[str, list[int]]] = [{} for _ in range(wiring.servers)]
    for kind in kinds:
        if not kind.wired:
            continue
        for route in kind.routes:
            for a, b in pairwise(route):
                near[a].setdefault(kind.style, []).append(b)
                if wiring.duplex:
                    near[b].setdefault(kind.style, []).append(a)
    disc = Markup('<g class="server">{}<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle></g>')
    drawn = []
    for server, by_kind in enumerate(near):
        neighbours = sorted({other for others in by_kind.values() for other in others} - {server})
        joined = "connects to" if wiring.duplex else "sends to"
        name = f"server {server} {joined} {', '.join(map(str, neighbours)) or 'nothing'}"
        drawn.append(disc.format(_own(circle, server, by_kind), *circle.at(server), circle.disc, name))
    first = wiring.by_place[0]
    example = Markup('<g class="example">{}</g>').format(_own(circle, first, near[first]))
    return [example, Markup('<g class="hosts">'), *drawn, Markup("</g>")]


def _own(circle: _Circle, server: int, by_kind: dict[str, list[int]]) -> Markup:
    """The cables of a server, each in the colour of its kind."""
    path = Markup('<path class="kind own" style="{}" d="{}"/>')
    return Markup("").join(
        path.format(Markup(style), _spokes(circle, server, sorted(set(others)))) for style, others in by_kind.items()
    )


def _spokes(circle: _Circle, server: int, others: list[int]) -> str:
    begin = "M{:.1f} {:.1f}".format(*circle.at(server))
    return "".join(begin + circle.hop(server, other) for other in others)


def _panel(wiring: Wiring, kind: CableKind) -> Markup:
    circle = _Circle(wiring, PANEL, PANEL_RADIUS)
    first, *others = kind.routes
    parts = [*circle.begin(kind.words)]
    if kind.of_rings:
        parts += [circle.lines(tuple(others), kind, "faint")] if others else []
        parts += [
            circle.lines((first,), kind, f"one{_fineness(len(first))}"),
            circle.lines((first[: FIRST_HOPS + 1],), kind, "first"),
        ]
        named = first[: FIRST_HOPS + 1]
    else:
        parts += [circle.lines(kind.routes, kind, f"one{_fineness(len(kind.routes))}")]
        named = first
    dot = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>')
    parts += [dot.format("rest", *circle.at(server), max(0.8, 0.5 * circle.disc)) for server in range(wiring.servers)]
    parts += [dot.format("named", *circle.at(server), 3.2) for server in named]
    parts += [*circle.names(named, 15), Markup("</svg>")]
    return Markup("").join(parts)
