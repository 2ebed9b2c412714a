"""Times of clusters in words: jobs run for minutes to weeks, so seconds alone say little."""

from __future__ import annotations

from ropewalk.report import quantity

REASONS = {
    "behind-the-head": "behind the head of the queue",
    "gpu-shortage": "too few GPUs",
    "server-fragmentation": "too few whole servers",
    "network-fragmentation": "no common spines",
    "restart": "restart after a failure",
}
"""Why jobs wait, as people say it, in the order in which it is drawn."""


def duration(seconds: float) -> str:
    """A time as people say it: 12.4 s, 5.3 min, 2.6 h, 11.1 d.

    >>> duration(9000.0).replace(chr(160), " ")
    '2.5 h'
    """
    if seconds < 120:
        return quantity.seconds(seconds)
    value, unit = seconds / 86400, "d"
    if round(seconds / 60) < 120:
        value, unit = seconds / 60, "min"
    elif round(seconds / 3600) < 48:
        value, unit = seconds / 3600, "h"
    return f"{value:.3g}\u00a0{unit}" if value < 1000 else f"{quantity.count(round(value))}\u00a0{unit}"


def reason(name: str) -> str:
    return REASONS.get(name, name)
