"""The colours of charts and of choices: pairs for light and dark pages, told apart by most eyes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """How one thing is coloured on a light page and on a dark one."""

    light: str
    dark: str


INK = Colour("#1d2129", "#e8eaed")
GREY = Colour("#868d99", "#7b828e")
RED = Colour("#d93f3e", "#e66767")
BLUE = Colour("#2b77d5", "#3987e5")
SKY = Colour("#86b6ef", "#9ec5f4")
NAVY = Colour("#104281", "#256abf")
STEEL = Colour("#6f8fb8", "#6d8bb3")
GREEN = Colour("#1ba673", "#199e70")
PURPLE = Colour("#4a3aa7", "#9085e9")
AMBER = Colour("#e09900", "#c98500")
RUST = Colour("#b5541c", "#d95926")
BROWN = Colour("#8a6d3b", "#b59a68")
PINK = Colour("#d6649a", "#d55181")
TEAL = Colour("#0b7285", "#3bb3c4")
OLIVE = Colour("#7c8500", "#a8b02c")
ORCHID = Colour("#b04fd6", "#cf95ec")
MAROON = Colour("#7b1e3b", "#93344f")
LIME = Colour("#63b32e", "#9bd65c")

SERIES = (BLUE, AMBER, GREEN, PINK, PURPLE, RUST, RED, BROWN)
"""For things without a colour of their own, in order of importance."""

MORE = (TEAL, OLIVE, ORCHID, MAROON, LIME)
"""For charts that need more than those."""
