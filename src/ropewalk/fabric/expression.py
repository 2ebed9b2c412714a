"""Fabrics as people write them: `fat-tree:8`, `torus:8x8`, `bcube:4,2`, or the path of a fabric file.

>>> builder("torus:8x8")
Torus(shape=(8, 8), bandwidth=12500000000.0, latency=0.0)
>>> builder("fat-tree", hosts=64).expression
'fat-tree:8,4'
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from ropewalk.errors import FabricError
from ropewalk.fabric.fabric import Builder, Fabric
from ropewalk.fabric.families import FAMILIES, MANY, Family

FILE_SUFFIXES = (".yaml", ".yml", ".json", ".graphml", ".xml")


MOST_HOSTS = 1 << 22
"""A typing slip such as torus:800x8000 should end in a sentence, not in the memory of the machine."""


def builder(
    expression: str, bandwidth: float | None = None, latency: float | None = None, hosts: int | None = None
) -> Builder:
    """Read an expression; a bare family name is sized by `hosts`, a complete expression keeps its own size.

    Bandwidth (bytes/s) and latency (s) replace the family's own; inside DGX servers NVLink keeps its speed.
    """
    name, colon, rest = expression.strip().partition(":")
    if is_path(expression):
        raise FabricError(f"{expression!r} is a fabric file, which has no builder: read it with fabric()")
    family = _family(name)
    if not colon:
        if hosts is None:
            raise FabricError(f"{name} has no size: write {family.example} ({name}:{family.usage}) or give hosts")
        found = _sized(name, hosts)
    else:
        found = family.make(*_numbers(expression, name, rest, family))
    if found.hosts > MOST_HOSTS:
        raise FabricError(f"{expression} has {found.hosts} hosts: the most a fabric can have is {MOST_HOSTS}")
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
    if hosts is not None and ":" in text:
        raise FabricError(f"{text} gives its size itself: leave out the number of hosts, or name the family alone")
    return builder(text, bandwidth, latency, hosts).build()


def is_path(text: str) -> bool:
    """Does this name a fabric file rather than an expression?"""
    return text.lower().endswith(FILE_SUFFIXES)


def nearest(family: str, hosts: int) -> Builder:
    """The member of a family whose number of hosts is nearest, the smaller of two that are equally near.

    >>> nearest("fat-tree", 100).expression
    'fat-tree:10,5'
    """
    return min(_sizes_near(family, hosts, 1), key=lambda found: (abs(found.hosts - hosts), found.hosts))


def _sized(name: str, hosts: int) -> Builder:
    if hosts < 2:
        raise FabricError(f"{name} with {hosts} hosts is no network: give 2 hosts or more")
    if hosts > MOST_HOSTS:
        raise FabricError(f"{name} with {hosts} hosts is too large: the most a fabric can have is {MOST_HOSTS}")
    found = FAMILIES[name].sized(hosts)
    if found is not None:
        return found
    near = sorted(_sizes_near(name, hosts, 3), key=lambda other: other.hosts)
    sizes, expressions = (", ".join(str(getattr(one, key)) for one in near) for key in ("hosts", "expression"))
    raise FabricError(
        f"{name} with {hosts} hosts does not exist: sizes near it are {sizes} ({expressions}); "
        f"the rule is {FAMILIES[name].where}"
    )


def _sizes_near(name: str, hosts: int, count: int) -> list[Builder]:
    """The `count` nearest members of a family, nearest first; every family has sizes without end above."""
    sized = _family(name).sized
    hosts = min(hosts, MOST_HOSTS)
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
    if re.fullmatch(r"\d{1,9}(?:[x,]\d{1,9})*", rest, re.ASCII) is None:
        raise FabricError(f"{expression!r} is not whole numbers behind the colon: {remedy}")
    numbers = [int(number) for number in re.split("[x,]", rest)]
    fewest, most = family.numbers
    if not fewest <= len(numbers) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} or more" if most == MANY else f"{fewest} to {most}"
        raise FabricError(f"{expression!r} has {len(numbers)} numbers, {name} takes {wanted}: {remedy}")
    return numbers
