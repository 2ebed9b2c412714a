"""The bandwidth tax: bytes carried by links over bytes asked for, the one number that says what relaying costs."""

from __future__ import annotations


def tax(carried_bytes: float, asked_bytes: float) -> float:
    """Bytes on all links together over bytes that ranks had for each other; 1 where nothing was asked for.

    A byte is carried once on every link of its path, so the tax is the mean number of links on a path: 1 on a cable
    from server to server, 2 through one switch, the mean number of hops where servers relay for each other.

    >>> tax(3e9, 2e9)
    1.5
    """
    return carried_bytes / asked_bytes if asked_bytes > 0 else 1.0
