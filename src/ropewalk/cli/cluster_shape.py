"""Servers of GPUs as people write them: `2x8`, or the GPUs of each server one by one, `8,8,4`."""

from __future__ import annotations

import re

from ropewalk.errors import InputError

MOST_GPUS = 1 << 16

_EQUAL = re.compile(r"([0-9]{1,6})x([0-9]{1,6})")


def servers(text: str) -> tuple[int, ...]:
    """GPUs of every server.

    >>> servers("2x8"), servers("4,4,2")
    ((8, 8), (4, 4, 2))
    """
    equal = _EQUAL.fullmatch(text.strip())
    parts = text.replace(" ", "").split(",")
    if equal:
        sizes = (int(equal[2]),) * min(int(equal[1]), MOST_GPUS + 1)
    elif all(part.isdecimal() and len(part) <= 6 for part in parts):
        sizes = tuple(int(part) for part in parts)
    else:
        raise InputError(f"cluster {text!r} cannot be read: write servers x GPUs such as 2x8, or GPUs of each as 8,8,4")
    if not sizes or min(sizes) < 1:
        raise InputError(f"cluster {text!r} has a server without GPUs: give 1 or more of both")
    if sum(sizes) > MOST_GPUS:
        raise InputError(f"cluster {text!r} has more than {MOST_GPUS} GPUs: ask for fewer")
    return sizes


def equal_servers(text: str) -> tuple[int, int]:
    """(servers, GPUs of each), where all must be alike.

    >>> equal_servers("4x8")
    (4, 8)
    """
    sizes = servers(text)
    if len(set(sizes)) > 1:
        raise InputError(f"cluster {text!r} has servers of different sizes: give equal ones, such as 4x8")
    return len(sizes), sizes[0]
