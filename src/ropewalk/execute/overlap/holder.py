"""Which module waits for a parameter: the one that holds it, or the innermost one around it that is called.

Not every module is called: PyTorch's attention reads the weights of its output projection and calls a function.
"""

from __future__ import annotations

from collections.abc import Collection

from ropewalk.errors import StrategyError


def holder(place: str, called: Collection[str]) -> str:
    """The innermost module that was called, of those that hold a place: the place itself or one around it.

    >>> holder("encoder.attend.out", {"", "encoder", "encoder.attend"}), holder("encoder", {""})
    ('encoder.attend', '')
    """
    parts = place.split(".") if place else []
    for length in range(len(parts), -1, -1):
        if (around := ".".join(parts[:length])) in called:
            return around
    raise StrategyError(f"no module that holds {place or 'the parameters'} was called: call the module itself")
