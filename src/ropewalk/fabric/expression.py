"""Fabrics as people write them: `fat-tree:8`, `torus:8x8`, `bcube:4,2`, or the path of a fabric file.

>>> builder("torus:8x8")
Torus(shape=(8, 8), bandwidth=12500000000.0, latency=0.0)
>>> builder("fat-tree", hosts=64).expression
'fat-tree:8,4'
>>> builder("leaf-spine:2to1", hosts=64).expression
'leaf-spine:8x4x8'
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from ropewalk.documents.numbers import digits_alone
from ropewalk.errors import FabricError
from ropewalk.fabric.fabric import Builder, Fabric
from ropewalk.fabric.families import FAMILIES, MANY, Family

FILE_SUFFIXES = (".yaml", ".yml", ".json", ".graphml", ".xml")


_RATIO = re.compile(r"[0-9]{1,6}to[0-9]{1,6}", re.ASCII)
"""Hosts to uplinks of their switch."""
Sized = Callable[[int], Builder | None]

MOST_HOSTS = 1 << 22
"""A typing slip such as torus:800x8000 should end in a sentence, not in the memory of the machine."""


def builder(
    expression: str, bandwidth: float | None = None, latency: float | None = None, hosts: int | None = None
) -> Builder:
    """Read an expression; a bare family name is sized by `hosts`, a complete expression keeps its own size.

    `leaf-spine:2to1` and `fat-tree:2to1` are sized by `hosts` too, with half of the uplinks.
    Bandwidth (bytes/s) and latency (s) replace the family's own; inside DGX servers NVLink keeps its speed.
    """
    name, _, rest = expression.strip().partition(":")
    if is_path(expression):
        raise FabricError(f"{expression!r} is a fabric file, which has no builder: read it with fabric()")
    family = _family(name)
    if has_open_size(expression):
        if hosts is None:
            raise FabricError(f"{expression} has no size: write {family.example} ({name}:{family.usage}) or give hosts")
        found = _sized(expression, hosts, sizing_of(expression))
    else:
        found = family.make(*_numbers(expression, name, rest, family))
    if found.hosts > MOST_HOSTS:
        raise FabricError(f"{expression} has {found.hosts} hosts: the limit is {MOST_HOSTS}")
    given = {"bandwidth": bandwidth, "latency": latency}
    speeds = {key: value for key, value in given.items() if value is not None}
    record: Any = found
    replaced: Builder = dataclasses.replace(record, **speeds)
    return replaced


def fabric(
    expression_or_path: str | Path,
    bandwidth: float | None = None,
    latency: float | None = None,
    hosts: int | None = None,
) -> Fabric:
    """Build what an expression says, or read a fabric file, which has its own speeds and size.

    >>> fabric("ring:8").links
    16
    """
    text = str(expression_or_path)
    if is_path(text):
        from ropewalk.fabric.files import read_fabric  # keeps pydantic out of the start-up of the command line

        if (bandwidth, latency, hosts) != (None, None, None):
            raise FabricError(f"fabric file {text} has its own size, bandwidths and latencies: leave those options out")
        return read_fabric(text)
    if hosts is not None and not has_open_size(text):
        raise FabricError(f"{text} has its own size: leave out the number of hosts, or name only the family")
    return builder(text, bandwidth, latency, hosts).build()


def is_path(text: str) -> bool:
    """Does this name a fabric file rather than an expression?"""
    return text.lower().endswith(FILE_SUFFIXES)


def has_open_size(expression: str) -> bool:
    """Does it leave its size to whoever builds it, as `torus` and `fat-tree:2to1` do?"""
    _, colon, rest = expression.strip().partition(":")
    return not is_path(expression) and (not colon or _RATIO.fullmatch(rest) is not None)


def sizing_of(expression: str) -> Sized:
    """For an expression that leaves its size open: which member has so many hosts."""
    name, _, rest = expression.strip().partition(":")
    family = _family(name)
    if not rest:
        return family.sized
    ratio, tapered = ratio_of(expression), family.tapered
    assert tapered is not None, "a family without tiers has no ratio"
    return lambda hosts: tapered(hosts, ratio)


def nearest(family: str, hosts: int) -> Builder:
    """The member of a family whose number of hosts is nearest, the smaller of two that are equally near.

    >>> nearest("fat-tree", 100).expression
    'fat-tree:10,5'
    """
    near = _sizes_near(sizing_of(family), hosts, 1)
    return min(near, key=lambda found: (abs(found.hosts - hosts), found.hosts))


def ratio_of(expression: str) -> Fraction:
    """For an expression that leaves its size open: what hosts send over what their switches pass up.

    >>> ratio_of("leaf-spine:2to1"), ratio_of("leaf-spine")
    (Fraction(2, 1), Fraction(1, 1))
    """
    name, _, rest = expression.strip().partition(":")
    family = _family(name)
    if not rest:
        return Fraction(1)
    if family.tapered is None:
        narrow = ", ".join(f"{one.name}:2to1" for one in FAMILIES.values() if one.tapered is not None)
        raise FabricError(
            f"{expression}: {family.name} has no uplinks to reduce: write {family.example}, or one of {narrow}"
        )
    down, up = (int(part) for part in rest.split("to"))
    if not 1 <= up <= down:
        raise FabricError(
            f"{expression}: switches with more uplinks than hosts, or none, are not oversubscribed: write "
            f"{family.name}:2to1 for two hosts per uplink"
        )
    return Fraction(down, up)


def _sized(expression: str, hosts: int, sized: Sized) -> Builder:
    if hosts < 2:
        raise FabricError(f"{expression} with {hosts} hosts is not a network: give 2 or more hosts")
    if hosts > MOST_HOSTS:
        raise FabricError(f"{expression} with {hosts} hosts is too large: the limit is {MOST_HOSTS}")
    found = sized(hosts)
    if found is not None:
        return found
    near = sorted(_sizes_near(sized, hosts, 3), key=lambda other: other.hosts)
    sizes, expressions = (", ".join(str(getattr(one, key)) for one in near) for key in ("hosts", "expression"))
    rule = "" if ":" in expression else f"; the rule is {FAMILIES[expression].where}"
    raise FabricError(
        f"{expression} with {hosts} hosts does not exist: the nearest sizes are {sizes} ({expressions}){rule}"
    )


def _sizes_near(sized: Sized, hosts: int, count: int) -> list[Builder]:
    """The `count` nearest members of a family, nearest first; every family has sizes without end above."""
    found: list[Builder] = []
    for distance in range(4 * max(hosts, 8)):
        for size in dict.fromkeys((hosts - distance, hosts + distance)):
            candidate = sized(size) if size >= 2 else None
            if candidate is not None:
                found.append(candidate)
        if len(found) >= count:
            break
    return found[:count]


def _family(name: str) -> Family:
    if name in FAMILIES:
        return FAMILIES[name]
    examples = ", ".join(family.example for family in FAMILIES.values())
    raise FabricError(
        f"there is no fabric family {name!r}: {FAMILIES.hint(name)}write one of {examples}, or the path of a file "
        f"({', '.join(FILE_SUFFIXES)})"
    )


def _numbers(expression: str, name: str, rest: str, family: Family) -> list[int]:
    remedy = f"write {name}:{family.usage}, such as {family.example}"
    if re.fullmatch("[0-9]{1,9}(?:[x,][0-9]{1,9})*", rest) is None:
        if all(map(digits_alone, re.split("[x,]", rest))):
            raise FabricError(f"{expression!r} has a number of more than 9 digits: {remedy}")
        raise FabricError(f"{expression!r} needs whole numbers after the colon: {remedy}")
    numbers = [int(number) for number in re.split("[x,]", rest)]
    fewest, most = family.numbers
    if not fewest <= len(numbers) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} or more" if most == MANY else f"{fewest} to {most}"
        plural = "s" * (len(numbers) != 1)
        raise FabricError(f"{expression!r} has {len(numbers)} number{plural}, {name} takes {wanted}: {remedy}")
    return numbers
