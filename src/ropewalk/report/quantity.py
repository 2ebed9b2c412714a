"""Numbers as a page shows them: three or four digits, a unit, and a true minus sign."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ropewalk.units import show_bandwidth, show_buffer, show_seconds, show_size


def seconds(value: float) -> str:
    """A duration as people print it: 56.88 ms, 10 µs."""
    return _together(show_seconds(value).replace(" us", " µs") if value else "0 s")


def size(value: float) -> str:
    return _together(show_size(value))


def buffer(value: float) -> str:
    """The size of a buffer: 1 MiB, 575 MB."""
    return _together(show_buffer(value))


def bandwidth(bytes_per_s: float) -> str:
    return _together(show_bandwidth(bytes_per_s))


def gigabytes(bytes_per_s: float) -> str:
    """Bytes per second as libraries of collectives report them: 173.3 GB/s; of small messages in MB/s or kB/s."""
    factor, unit = (1e3, "kB/s") if 0 < bytes_per_s < 1e6 else (1e6, "MB/s") if 0 < bytes_per_s < 1e7 else (1e9, "GB/s")
    return _together(f"{bytes_per_s / factor:.4g} {unit}")


def _together(text: str) -> str:
    """A number and its unit stay on one line."""
    return text.replace(" ", "\u00a0")


_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:±|%|[mµu]?s|min|h|W|[kMGT]B|[MGT]bps)(?![\w/]))|(?<=±) (?=\d)")


def unbroken(value: Any) -> Any:
    """A sentence with its numbers and their units on one line, as it stands on a page; markup stays as it is.

    What a script compares is no sentence: templates write it with the filter `e`, which makes it markup.

    >>> unbroken("it takes 2.9 s, 5 ± 1 % more").split(" ")
    ['it', 'takes', '2.9\\xa0s,', '5\\xa0±\\xa01\\xa0%', 'more']
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return _NUMBER_AND_UNIT.sub("\u00a0", value)


def count(value: int) -> str:
    """A whole number with thin groups of three: 16 384."""
    return f"{value:,}".replace(",", "\u202f")


def rate(per_second: float) -> str:
    """How many a second: 29.81, 64 130."""
    return count(round(per_second)) if per_second >= 1000 else f"{per_second:.4g}"


def times(ratio: float) -> str:
    """A ratio in words of the trade: 4.0×, 63×."""
    return f"{ratio:.2f}×" if ratio < 1.995 else f"{ratio:.1f}×" if ratio < 9.95 else f"{ratio:.0f}×"


def percent(part: float, *, signed: bool = False) -> str:
    """A part of one as percent, with as many digits as it deserves; rounding noise of a simulation is zero."""
    value = part * 100
    if abs(value) < 5e-4:
        return "0\u00a0%"
    digits = next((digits for digits, least in enumerate((99.5, 0.95, 0.095)) if abs(value) >= least), 3)
    return f"{value:{'+' if signed else ''}.{digits}f}\u00a0%".replace("-", "\u2212")


def span(ends: tuple[float, float], show: Callable[[float], str]) -> str:
    """`low`, or `low to high` where they differ."""
    low, high = (show(end) for end in ends)
    return low if low == high else f"{low} to {high}"
