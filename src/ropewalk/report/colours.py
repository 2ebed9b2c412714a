"""One colour for each logical topology, everywhere: a pair for light and dark pages, told apart by most eyes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

SCHEDULES = LOGICAL | {
    "forest": INK,
    "topoadopt": INK,
    "fixed": INK,
    "paths": INK,
    "ring-in-order": LOGICAL["ring-one-way"],
    "bfb": LOGICAL["ps"],
    "bruck": LOGICAL["ps-sharded"],
    "binomial": LOGICAL["ps-dedicated"],
    "shift": LOGICAL["ring"],
    "direct": LOGICAL["mesh"],
    "xor": LOGICAL["halving-doubling"],
    "hierarchical": LOGICAL["hips"],
}
"""What carries a collective on a fabric: schedules that were made for it in ink, those of libraries in colour."""

LOGICAL_NAMES = {
    "hips": "HiPS",
    "ps": "parameter server",
    "ps-dedicated": "parameter server (dedicated)",
    "ps-sharded": "parameter servers (sharded)",
    "ring-one-way": "ring (one way)",
    "ring-both-ways": "ring (both ways)",
    "double-tree": "double binary tree",
    "ring-in-order": "ring in the order of ranks",
    "bfb": "breadth first",
    "topoadopt": "TopoAdopt",
    "fixed": "equal trees",
}
"""As people say them, where that differs from the command line."""

SERIES = tuple(
    LOGICAL[name]
    for name in ("ring", "ps", "mesh", "double-tree", "halving-doubling", "ps-dedicated", "hips", "ps-sharded")
)
"""Colours for things without a colour of their own, in order of importance."""

COMPUTE_PHASES = {
    "forward": LOGICAL["ring"],
    "backward": LOGICAL["ring-both-ways"],
    "recompute": Colour("#6f8fb8", "#6d8bb3"),
    "update": LOGICAL["ring-one-way"],
}
"""Computation by the word in its label that says which pass it belongs to: one family of blues."""

PURPOSES = {
    "compute": LOGICAL["ring"],
    "tensor": LOGICAL["ps"],
    "data": LOGICAL["mesh"],
    "pipeline": LOGICAL["double-tree"],
    "expert": LOGICAL["hips"],
    "zero": LOGICAL["ps-sharded"],
    "context": LOGICAL["halving-doubling"],
    "tables": LOGICAL["ps-dedicated"],
    "sums": LOGICAL["mesh"],
    "activations": LOGICAL["ps"],
    "gradients": LOGICAL["ps-dedicated"],
    "experts": LOGICAL["hips"],
}
"""What a stream of a training step is for."""

IDLE = Colour("#d9dde3", "#3a4048")
"""Time in which nothing happened, memory that nothing holds."""

MEMORY = {
    "weights": LOGICAL["ring"],
    "gradients": LOGICAL["mesh"],
    "optimiser": LOGICAL["halving-doubling"],
    "activations": LOGICAL["ps"],
    "workspace": LOGICAL["double-tree"],
    "fragmentation": OTHER,
}
"""What the memory of a GPU is taken up by."""

HEAT = (Colour("#dbe8f8", "#1d2b3c"), Colour("#6a9fdf", "#3f74b5"), Colour("#0b3a80", "#b7d4f8"))
"""Little, some and much, in one hue: bright cells stand out on a dark page, dark ones on a light page."""

SUMS, PAIRS = LOGICAL["mesh"], LOGICAL["ps-dedicated"]
"""All-reduces and transfers between pairs, wherever a design is drawn."""

DARK_OF_LIGHT = {
    colour.light: colour.dark
    for colour in (
        INK, MUTED, GRID, PAPER, ACCENT, OTHER, IDLE, *LOGICAL.values(), *SERIES, *COMPUTE_PHASES.values(),
        *PURPOSES.values(), *MEMORY.values(), *HEAT,
    )
}  # fmt: skip
"""Figures are written in light colours; the page swaps them by this table where the reader prefers dark."""


def of_logical(name: str) -> Colour:
    return LOGICAL.get(name, OTHER)


def of_names(names: Iterable[str], known: Mapping[str, Colour]) -> dict[str, Colour]:
    """A colour for each name: its own where it has one, otherwise the first that nobody has taken yet."""
    wanted = list(dict.fromkeys(names))
    found = {name: known[name] for name in wanted if name in known}
    free = [colour for colour in SERIES if colour not in found.values()]
    strangers = [name for name in wanted if name not in known]
    found |= {name: free[number] if number < len(free) else OTHER for number, name in enumerate(strangers)}
    return {name: found[name] for name in wanted}


def name_of_logical(name: str) -> str:
    return LOGICAL_NAMES.get(name, name)
