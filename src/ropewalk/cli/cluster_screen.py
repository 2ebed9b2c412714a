"""What cluster commands print alike: lists of names that stay short."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMES = 8


def some(names: Sequence[str]) -> str:
    """The first few names; of more also the last, and how many there are.

    >>> some(["a", "b"]), some([f"spine{n}" for n in range(32)])
    ('a, b', 'spine0, spine1, spine2, spine3, spine4, spine5, … spine31 (32)')
    """
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES - 2])}, … {names[-1]} ({len(names)})"
