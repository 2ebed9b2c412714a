"""Into how many segments a forest's buffer is best cut: few start up often enough, many fill and drain quickly.

A forest whose longest way has `depth` branches takes depth - 1 rounds to fill. Cut into P segments, a buffer of M bytes
at B bytes/s takes T(P) = (P + depth - 1)(α + M / (B P)), where α is what a transfer costs on top of its bytes. The
smallest T is (√(M/B) + √((depth - 1) α))², at P = √((depth - 1) M / (B α)).
"""

from __future__ import annotations

import math
from fractions import Fraction

from ropewalk.errors import ProgramError

MOST_SEGMENTS = 1024
"""Where starting up is free there is no best number; with this many, a forest of depth 11 is within 1 % of its rate."""


def forest_seconds(size_bytes: float, algbw: Fraction | float, depth: int, start_up_s: float, segments: int) -> float:
    """Seconds that a forest takes in so many segments: rounds times the length of one.

    >>> forest_seconds(8e9, 1e9, depth=3, start_up_s=0.0, segments=4)
    12.0
    """
    _check(size_bytes, algbw, depth, start_up_s)
    if segments < 1:
        raise ProgramError(f"a pipeline of {segments} segments carries nothing: give at least 1")
    return (segments + depth - 1) * (start_up_s + size_bytes / float(algbw) / segments)


def best_segments(size_bytes: float, algbw: Fraction | float, depth: int, start_up_s: float) -> int:
    """The number of segments with the shortest time, up to `MOST_SEGMENTS` and to one byte a segment.

    >>> best_segments(100e6, 100e9, depth=5, start_up_s=10e-6)
    20
    """
    _check(size_bytes, algbw, depth, start_up_s)
    most = max(1, min(MOST_SEGMENTS, math.floor(size_bytes)))
    if depth == 1:
        return 1
    if start_up_s == 0:
        return most
    # T has one valley, so the best whole number stands beside the best real one, or at the end of what is allowed.
    valley = math.sqrt((depth - 1) * size_bytes / float(algbw) / start_up_s)
    nearby = {min(max(1, number), most) for number in (math.floor(min(valley, most)), math.ceil(min(valley, most)))}
    return min(sorted(nearby), key=lambda number: forest_seconds(size_bytes, algbw, depth, start_up_s, number))


def _check(size_bytes: float, algbw: Fraction | float, depth: int, start_up_s: float) -> None:
    for wrong, text in (
        (not (math.isfinite(size_bytes) and size_bytes >= 0), f"a buffer of {size_bytes:g} bytes: give 0 or more"),
        (not algbw > 0, f"a forest at {float(algbw):g} bytes/s: give a rate above 0"),
        (depth < 1, f"a forest of depth {depth}: give at least 1"),
        (not (math.isfinite(start_up_s) and start_up_s >= 0), f"a start-up of {start_up_s:g} s: give 0 s or more"),
    ):
        if wrong:
            raise ProgramError(text)
