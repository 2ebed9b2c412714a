"""Servers of GPUs as people write them: `4x8`, `2x8,1x4`, or the GPUs of each server one by one, `8,8,4`."""

from __future__ import annotations

import re
from itertools import groupby

from ropewalk.errors import ClusterError
from ropewalk.hardware.cluster import MOST_GPUS

_PART = re.compile(r"(?:([0-9]{1,18})x)?([0-9]{1,18})")


def is_shape(text: str) -> bool:
    """Is this meant as numbers of servers and GPUs?"""
    return bool(re.fullmatch(r"[0-9x,\s]+", text))


def shape(text: str) -> tuple[tuple[int, int], ...]:
    """(servers, GPUs of each), group by group.

    >>> shape("4x8"), shape("2x8,1x4"), shape("8,8,4")
    (((4, 8),), ((2, 8), (1, 4)), ((2, 8), (1, 4)))
    """
    parts = [_PART.fullmatch(part) for part in text.replace(" ", "").split(",")]
    if not all(parts):
        raise ClusterError(
            f"cluster {text!r} cannot be read: write servers x GPUs such as 4x8 or 2x8,1x4, or GPUs of each as 8,8,4"
        )
    if len(parts) == 1 and "x" not in text:
        gpus = text.strip()
        raise ClusterError(
            f"cluster {text!r} may mean one server or several: write 1x{gpus} for one server with {gpus} GPUs, or "
            "servers x GPUs such as 2x8"
        )
    groups = [(int(part[1] or 1), int(part[2])) for part in parts if part]
    if min(min(group) for group in groups) < 1:
        raise ClusterError(f"cluster {text!r} has a server without GPUs: give 1 or more of both")
    if sum(count * gpus for count, gpus in groups) > MOST_GPUS:
        raise ClusterError(f"cluster {text!r} has more than {MOST_GPUS} GPUs: ask for fewer")
    together = groupby(groups, key=lambda group: group[1])
    return tuple((sum(count for count, _ in same), gpus) for gpus, same in together)
