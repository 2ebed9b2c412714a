"""What cluster commands print alike: tables that are never cut off, and lists of names that stay short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ropewalk.cli.screen import console

if TYPE_CHECKING:
    from rich.table import Table

MOST_NAMES = 8


def print_whole(table: Table) -> None:
    """A table too wide for the terminal runs over its edge: cut-off numbers would be worse."""
    screen = console()
    needed = screen.measure(table, options=screen.options.update(max_width=1000)).maximum
    screen.width = max(screen.width, needed)
    screen.print(table)


def some(names: Sequence[str]) -> str:
    """The first few names; of more also the last, and how many there are.

    >>> some(["a", "b"]), some([f"spine{n}" for n in range(32)])
    ('a, b', 'spine0, spine1, spine2, spine3, spine4, spine5, … spine31 (32)')
    """
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES - 2])}, … {names[-1]} ({len(names)})"
