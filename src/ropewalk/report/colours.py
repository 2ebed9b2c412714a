"""What colours mean on pages; the pairs for light and dark pages themselves are those of `ropewalk.palette`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ropewalk.collectives.table import COLLECTIVES
from ropewalk.palette import (
    AMBER,
    BLUE,
    BROWN,
    GREEN,
    GREY,
    INK,
    MORE,
    NAVY,
    PINK,
    PURPLE,
    RED,
    RUST,
    SERIES,
    SKY,
    STEEL,
    Colour,
)

MUTED = Colour("#5b626e", "#a5acb8")
GRID = Colour("#e2e5e9", "#30353c")
PAPER = Colour("#fdfdfc", "#15171a")
ACCENT = Colour("#2a78d6", "#5598e7")
OTHER = GREY

_MADE_FOR_THE_NETWORK = {"fixed": "equal trees", "paths": "paths"}
"""Schedules that are made for a network and have no line of their own among the collectives: what they are called."""

COMPUTE_PHASES = {
    "forward": BLUE,
    "backward": NAVY,
    "recompute": STEEL,
    "update": SKY,
}
"""Computation by the word in its label that says which pass it belongs to: one family of blues."""

PURPOSES = {
    "compute": BLUE,
    "tensor": AMBER,
    "data": GREEN,
    "pipeline": PINK,
    "expert": RED,
    "zero": BROWN,
    "context": PURPLE,
    "tables": RUST,
}
"""What a stream of a training step is for."""

IDLE = Colour("#d9dde3", "#3a4048")
"""Time in which nothing happened, memory that nothing holds."""

MEMORY = {
    "weights": BLUE,
    "gradients": GREEN,
    "optimiser": PURPLE,
    "activations": AMBER,
    "workspace": PINK,
    "fragmentation": OTHER,
}
"""What the memory of a GPU is taken up by."""

HEAT = (Colour("#dbe8f8", "#1d2b3c"), Colour("#6a9fdf", "#3f74b5"), Colour("#0b3a80", "#b7d4f8"))
"""Little, some and much, in one hue: bright cells stand out on a dark page, dark ones on a light page."""

SUMS, PAIRS = GREEN, RUST
"""All-reduces and transfers between pairs, wherever a design is drawn."""

DARK_OF_LIGHT = {
    colour.light: colour.dark
    for colour in (INK, MUTED, GRID, PAPER, ACCENT, IDLE, SKY, NAVY, STEEL, GREY, *SERIES, *MORE, *HEAT)
}
"""Figures are written in light colours; the page swaps them by this table where the reader prefers dark."""


RAMP = (AMBER, GREEN, BLUE, PURPLE)
"""From little to much, where values have an order and each needs a colour of its own."""


def ramp(steps: int) -> tuple[Colour, ...]:
    """So many colours from little to much.

    >>> ramp(2) == (RAMP[0], RAMP[-1]), len(set(ramp(12)))
    (True, 12)
    """
    mixed = []
    for step in range(steps):
        place = step * (len(RAMP) - 1) / max(1, steps - 1)
        first = min(int(place), len(RAMP) - 2)
        low, high, part = RAMP[first], RAMP[first + 1], place - first
        mixed.append(Colour(_between(low.light, high.light, part), _between(low.dark, high.dark, part)))
    return tuple(mixed)


def _between(low: str, high: str, part: float) -> str:
    """The colour so far on the way from one to another."""
    pairs = [(int(low[at : at + 2], 16), int(high[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in pairs)


def of_logical(name: str) -> Colour:
    """The colour of a collective, by its name on the command line; what is made for a network is in ink."""
    return INK if name in _MADE_FOR_THE_NETWORK else COLLECTIVES.colours().get(name, OTHER)


def of_names(names: Iterable[str], known: Mapping[str, Colour], spare: Sequence[Colour] = SERIES) -> dict[str, Colour]:
    """A colour for each name: its own where it has one, otherwise the first that nobody has taken yet."""
    wanted = list(dict.fromkeys(names))
    found = {name: known[name] for name in wanted if name in known}
    free = [colour for colour in spare if colour not in found.values()]
    strangers = [name for name in wanted if name not in known]
    found |= {name: free[number] if number < len(free) else OTHER for number, name in enumerate(strangers)}
    return {name: found[name] for name in wanted}


def name_of_logical(name: str) -> str:
    """A collective as people say it."""
    return COLLECTIVES[name].label if name in COLLECTIVES else _MADE_FOR_THE_NETWORK.get(name, name)
