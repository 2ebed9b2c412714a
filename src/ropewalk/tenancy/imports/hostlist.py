"""Host lists as Slurm writes them: `gpu[000-003,007]` for five names, unfolded and folded again in the order given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import product

from ropewalk.errors import FabricError

MOST_NAMES = 1 << 20
"""A longer list is a slip of the keyboard."""
_NUMBERED = re.compile("(.*?)([0-9]{1,18})([^0-9]*)", re.DOTALL)


def expand(text: str) -> list[str]:
    """The names that a host list stands for, in its order.

    >>> expand("login,gpu[000-002,007]")
    ['login', 'gpu000', 'gpu001', 'gpu002', 'gpu007']
    >>> expand("rack[0-1]n[1-2]")
    ['rack0n1', 'rack0n2', 'rack1n1', 'rack1n2']
    """
    names: list[str] = []
    for part in _parts(text):
        pieces = [list(_piece(piece, text)) for piece in re.split(r"(\[[^\]]*\])", part) if piece]
        _not_too_many(len(names) + math.prod(map(len, pieces)), text)
        names.extend("".join(chosen) for chosen in product(*pieces))
    return names


def compress(names: Iterable[str]) -> str:
    """Names as a short host list that unfolds to the same names in the same order.

    >>> compress(["gpu009", "gpu010", "gpu011", "gpu003", "login"])
    'gpu[009-011,003],login'
    """
    groups: list[tuple[tuple[str, str], list[list[str]]]] = []
    for name in names:
        if not name or re.search(r"[\[\],\s]", name):
            raise FabricError(f"the host name {name!r} is not allowed in a host list: rename the host")
        told = _NUMBERED.fullmatch(name)
        around = (told[1], told[3]) if told else (name, "")
        number = told[2] if told else ""
        if not groups or not number or groups[-1][0] != around or not groups[-1][1][0][0]:
            groups.append((around, [[number]]))
        elif _follows(groups[-1][1][-1], number):
            groups[-1][1][-1][1:] = [number]
        else:
            groups[-1][1].append([number])
    return ",".join(_group(around, runs) for around, runs in groups)


def _group(around: tuple[str, str], runs: list[list[str]]) -> str:
    before, after = around
    if len(runs) == 1 and len(runs[0]) == 1:
        return f"{before}{runs[0][0]}{after}"
    return f"{before}[{','.join('-'.join(run) for run in runs)}]{after}"


def _follows(run: list[str], number: str) -> bool:
    """Is this the number after the run, written as the run's first number pads it?"""
    return f"{int(run[-1]) + 1:0{len(run[0])}d}" == number


def _parts(text: str) -> Iterator[str]:
    """Split at commas outside brackets."""
    depth, begin = 0, 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise FabricError(f"the brackets of the host list {text!r} do not match: write it like gpu[000-003,007]")
        if character == "," and depth == 0:
            yield _part(text[begin:at], text)
            begin = at + 1
    if depth:
        raise FabricError(f"the brackets of the host list {text!r} do not match: write it like gpu[000-003,007]")
    yield _part(text[begin:], text)


def _part(part: str, text: str) -> str:
    if not part.strip() or re.search(r"\s", part.strip()):
        raise FabricError(f"the host list {text!r} has an empty name or a space: separate names by single commas")
    return part.strip()


def _piece(piece: str, text: str) -> Iterator[str]:
    """What one pair of brackets stands for, or the text between two of them."""
    if not piece.startswith("["):
        yield piece
        return
    for span in piece[1:-1].split(","):
        told = re.fullmatch("([0-9]{1,18})(?:-([0-9]{1,18}))?", span.strip())
        if told is None:
            raise FabricError(f"{span!r} in the host list {text!r} is not a range: write numbers like 000-003 or 007")
        low, high = told[1], told[2] or told[1]
        if int(high) < int(low):
            raise FabricError(f"the range {span!r} in the host list {text!r} goes down: write the smaller number first")
        _not_too_many(int(high) - int(low), text)
        yield from (f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1))


def _not_too_many(count: int, text: str) -> None:
    if count > MOST_NAMES:
        raise FabricError(f"the host list {text[:60]!r} expands to more than {MOST_NAMES} names: fix its ranges")
