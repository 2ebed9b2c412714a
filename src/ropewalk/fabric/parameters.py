"""The checks that every builder makes of its parameters: whole numbers, large enough, and speeds that exist."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral

from ropewalk.errors import FabricError, Findings

MOST_LEVELS = 22
"""Levels or dimensions a fabric may have; 2^22 hosts are the most that are ever asked for."""


def at_least(findings: Findings, minimum: int, **values: object) -> None:
    """Find every parameter that is not a whole number of at least `minimum`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            findings.add(f"{name} is {value!r}: give a whole number, {minimum} or more")
        elif int(value) < minimum:
            findings.add(f"{name} is {value}: give {minimum} or more")


def at_most(findings: Findings, maximum: int, **values: int) -> None:
    """Find every parameter above `maximum`."""
    for name, value in values.items():
        if isinstance(value, Integral) and value > maximum:
            findings.add(f"{name} is {value}: give {maximum} or fewer")


def speeds(findings: Findings, latency: float, **bandwidths: float) -> None:
    """Find bandwidths that are not positive and latencies that are negative."""
    for name, value in bandwidths.items():
        if not (math.isfinite(value) and value > 0):
            findings.add(f"{name} is {value} bytes/s: give a positive bandwidth such as 12.5e9 (100 Gbps)")
    if not (math.isfinite(latency) and latency >= 0):
        findings.add(f"latency is {latency} s: give zero or more seconds, such as 1e-6")


def findings_of(family: str) -> Findings:
    """An empty list of findings about a builder of this family."""
    return Findings(FabricError, family)


def whole(values: Iterable[object], family: str, name: str) -> tuple[int, ...]:
    """A tuple of Python integers from any sequence of whole numbers, NumPy's included."""
    given = tuple(values)
    for value in given:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise FabricError(f"{family}: {name} holds {value!r}: give whole numbers")
    return tuple(int(value) for value in given if isinstance(value, Integral))


def numbered(prefix: str, count: int) -> list[str]:
    """Names prefix0, prefix1, …"""
    return [f"{prefix}{number}" for number in range(count)]


def numbered_in_groups(prefix: str, groups: int, count: int) -> list[str]:
    """Names prefix0.0, prefix0.1, …: the group, then the number inside it."""
    return [f"{prefix}{group}.{number}" for group in range(groups) for number in range(count)]
