"""One colour for each logical topology, everywhere: a pair for light and dark pages, told apart by most eyes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """How one thing is coloured on a light page and on a dark one."""

    light: str
    dark: str


INK = Colour("#1d2129", "#e8eaed")
MUTED = Colour("#5b626e", "#a5acb8")
GRID = Colour("#e2e5e9", "#30353c")
PAPER = Colour("#fdfdfc", "#15171a")
ACCENT = Colour("#2a78d6", "#5598e7")
OTHER = Colour("#868d99", "#7b828e")

LOGICAL = {
    "hips": Colour("#d93f3e", "#e66767"),
    "ring": Colour("#2b77d5", "#3987e5"),
    "ring-one-way": Colour("#86b6ef", "#9ec5f4"),
    "ring-both-ways": Colour("#104281", "#256abf"),
    "mesh": Colour("#1ba673", "#199e70"),
    "halving-doubling": Colour("#4a3aa7", "#9085e9"),
    "ps": Colour("#e09900", "#c98500"),
    "ps-dedicated": Colour("#b5541c", "#d95926"),
    "ps-sharded": Colour("#8a6d3b", "#b59a68"),
    "double-tree": Colour("#d6649a", "#d55181"),
}
"""By the name on the command line; relatives have related colours."""

LOGICAL_NAMES = {
    "hips": "HiPS",
    "ps": "parameter server",
    "ps-dedicated": "parameter server (dedicated)",
    "ps-sharded": "parameter servers (sharded)",
    "ring-one-way": "ring (one way)",
    "ring-both-ways": "ring (both ways)",
    "double-tree": "double binary tree",
}
"""As people say them, where that differs from the command line."""

SERIES = tuple(
    LOGICAL[name]
    for name in ("ring", "ps", "mesh", "double-tree", "halving-doubling", "ps-dedicated", "hips", "ps-sharded")
)
"""Colours for things without a colour of their own, in order of importance."""

DARK_OF_LIGHT = {
    colour.light: colour.dark for colour in (INK, MUTED, GRID, PAPER, ACCENT, OTHER, *LOGICAL.values(), *SERIES)
}
"""Figures are written in light colours; the page swaps them by this table where the reader prefers dark."""


def of_logical(name: str) -> Colour:
    return LOGICAL.get(name, OTHER)


def name_of_logical(name: str) -> str:
    return LOGICAL_NAMES.get(name, name)
