"""The wiring of a design as a picture: servers on a circle, cables as chords, those for pairs standing out.

On a circle a regular ring is a star polygon, so its jump can be seen. Cables that no ring is made of were laid for
transfers between pairs, or for shorter ways, and are drawn on top.
"""

from __future__ import annotations

import math

from markupsafe import Markup

from ropewalk.codesign.rings import Ends, cables_by_kind
from ropewalk.fabric.wiring import Wiring
from ropewalk.report import quantity
from ropewalk.report.drawing import Drawing

SIZE, RADIUS = 720.0, 330.0
NAMED_CABLES = 1_500
"""Beyond this many, cables of a kind are one long path without names."""
NAMED_SERVERS = 64


def draw_wiring(wiring: Wiring) -> Drawing:
    """Chords on a circle; server 0 on top, the others clockwise."""
    rings, others = cables_by_kind(wiring)
    label = f"{wiring.servers} servers: {_cables(rings)} cables of rings, {_cables(others)} for pairs"
    radius = max(1.2, min(9.0, 0.28 * 2 * math.pi * RADIUS / wiring.servers))
    parts = [
        Markup('<svg class="fabric wiring" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">').format(
            SIZE, SIZE, label
        ),
        Markup('<g class="links">'),
        *_chords(wiring, rings, "sums"),
        *_chords(wiring, others, "pairs"),
        Markup('</g><g class="hosts">'),
        *(
            Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>server {}</title></circle>').format(
                *_at(wiring, server), radius, server
            )
            for server in range(wiring.servers)
        ),
        Markup("</g>"),
        *_names(wiring),
        Markup("</svg>"),
    ]
    legend = [("sums", f"cables of rings ({quantity.count(_cables(rings))})")] if rings else []
    if others:
        legend.append(("pairs", f"cables for pairs and short paths ({quantity.count(_cables(others))})"))
    return Drawing(Markup("").join(parts), tuple(legend), "wiring", ())


def _cables(some: list[tuple[Ends, int]]) -> int:
    return sum(count for _, count in some)


def _at(wiring: Wiring, server: int, radius: float = RADIUS) -> tuple[float, float]:
    turn = 2 * math.pi * server / wiring.servers
    return SIZE / 2 + radius * math.sin(turn), SIZE / 2 - radius * math.cos(turn)


def _chords(wiring: Wiring, cables: list[tuple[Ends, int]], css: str) -> list[Markup]:
    one_way = "" if wiring.duplex else " one-way"
    if len(cables) > NAMED_CABLES:
        path = " ".join("M{:.1f} {:.1f}L{:.1f} {:.1f}".format(*_at(wiring, a), *_at(wiring, b)) for (a, b), _ in cables)
        return [Markup('<path class="{}" d="{}"/>').format(css + one_way, path)]
    line = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"><title>{}</title></line>')
    joint = " – " if wiring.duplex else " → "
    drawn = []
    for (a, b), count in cables:
        jump = min((b - a) % wiring.servers, (a - b) % wiring.servers) if wiring.duplex else (b - a) % wiring.servers
        many = f" · {count} cables" if count > 1 else ""
        drawn.append(
            line.format(
                css + one_way, *_at(wiring, a), *_at(wiring, b), f"server {a}{joint}server {b} · {jump} apart{many}"
            )
        )
    return drawn


def _names(wiring: Wiring) -> list[Markup]:
    """Numbers outside the circle: all of a few servers, every so many of more."""
    every = 1 if wiring.servers <= NAMED_SERVERS else 2 ** math.ceil(math.log2(wiring.servers / 32))
    text = Markup('<text x="{:.1f}" y="{:.1f}">{}</text>')
    return [text.format(*_at(wiring, server, RADIUS + 20), server) for server in range(0, wiring.servers, every)]
