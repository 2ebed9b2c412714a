"""The map of gains as one SVG: a panel per speed of the network, a row per ring, a column per kind of network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

CELL_WIDTH, CELL_HEIGHT = 78, 24
LEFT, TOP, GAP, BOTTOM = 132, 62, 26, 34
NOTHING, MOST = (0xF2, 0xF4, 0xF7), (0x0B, 0x6E, 0x4F)
LOSS = (0xD1, 0x49, 0x5B)
FULL = 0.3
"""The gain that has the full colour."""

Cells = Mapping[tuple[str, str], float]
"""Gains by row and column."""


def write_map(panels: Sequence[tuple[str, Cells]], rows: Sequence[str], columns: Sequence[str], path: Path) -> None:
    """Panels side by side; every cell has its gain in per cent, the darker the larger."""
    width = LEFT + len(panels) * (len(columns) * CELL_WIDTH + GAP)
    height = TOP + len(rows) * CELL_HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#333">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    parts += [_text(LEFT - 10, _middle(row), name, "end") for row, name in enumerate(rows)]
    for number, (title, cells) in enumerate(panels):
        left = LEFT + number * (len(columns) * CELL_WIDTH + GAP)
        parts.append(f'<text x="{left}" y="22" font-size="14" font-weight="bold">{escape(title)}</text>')
        for column, name in enumerate(columns):
            x = left + column * CELL_WIDTH
            parts.append(_text(x + CELL_WIDTH / 2, TOP - 10, name))
            for row, label in enumerate(rows):
                if (label, name) in cells:
                    parts += _cell(x, TOP + row * CELL_HEIGHT, cells[label, name])
    note = (
        "Median gain of the streamed all-reduce over the best published scheme, %, over VGG16, ResNet-50, BERT-large "
    )
    parts.append(_text(LEFT, height - 12, f"{note}and GPT-2 XL.", "start"))
    path.write_text("\n".join([*parts, "</svg>\n"]))


def _middle(row: int) -> float:
    return TOP + row * CELL_HEIGHT + CELL_HEIGHT / 2 + 4


def _text(x: float, y: float, words: str, anchor: str = "middle", colour: str = "#333") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def _cell(x: float, y: float, gain: float) -> list[str]:
    depth = min(1.0, abs(gain) / FULL)
    end = MOST if gain >= 0 else LOSS
    red, green, blue = (round(low + depth * (high - low)) for low, high in zip(NOTHING, end, strict=True))
    words = _text(
        x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 4, f"{100 * gain:.1f}", colour="#fff" if depth > 0.5 else "#333"
    )
    return [
        f'<rect x="{x:g}" y="{y:g}" width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}" rx="3" '
        f'fill="#{red:02x}{green:02x}{blue:02x}"/>',
        words,
    ]
