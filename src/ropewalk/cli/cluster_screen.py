"""What cluster commands print alike: lists of names that stay short, and warnings before everything else."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.cli.screen import console

MOST_NAMES = 8


def some(names: Sequence[str]) -> str:
    """The first few names; of more also the last, and how many there are.

    >>> some(["a", "b"]), some([f"spine{n}" for n in range(32)])
    ('a, b', 'spine0, spine1, spine2, spine3, spine4, spine5, … spine31 (32)')
    """
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES - 2])}, … {names[-1]} ({len(names)})"


def print_warnings(warnings: Sequence[str]) -> None:
    """What makes the numbers below differ from what was meant, probably."""
    for warning in warnings:
        console().print(f"warning: {warning}", style="yellow", soft_wrap=True)
