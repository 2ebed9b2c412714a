"""Lists as people type them: `ring,mesh`, `16,64,256`, `fat-tree,bcube:5,2,torus`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ropewalk.documents.numbers import is_count
from ropewalk.errors import InputError

Value = TypeVar("Value")

_PARAMETER = re.compile(r"[0-9][0-9x.]*")


def split(text: str) -> tuple[str, ...]:
    """Items between commas.

    >>> split("ring, mesh")
    ('ring', 'mesh')
    """
    return tuple(item.strip() for item in text.split(",") if item.strip())


def split_fabrics(text: str) -> tuple[str, ...]:
    """Items between commas, where numbers belong to the builder expression before them.

    >>> split_fabrics("fat-tree,bcube:5,2,torus:8x8")
    ('fat-tree', 'bcube:5,2', 'torus:8x8')
    """
    found: list[str] = []
    for item in split(text):
        if found and ":" in found[-1] and _PARAMETER.fullmatch(item):
            found[-1] += f",{item}"
        else:
            found.append(item)
    return tuple(found)


def each(text: str, read: Callable[[str], Value]) -> tuple[Value, ...]:
    """Every item read by a function such as `units.size`."""
    return tuple(read(item) for item in split(text))


def whole_number(text: str) -> int:
    """A count of hosts and the like."""
    if not is_count(text) or int(text) < 1:
        raise InputError(f"{text!r} is not a whole number above 0: write one such as 64")
    return int(text)


def not_empty(items: tuple[Value, ...], option: str) -> tuple[Value, ...]:
    if not items:
        raise InputError(f"{option} is empty: name at least one")
    return items
