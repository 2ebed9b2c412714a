"""A log as a table, read line by line: columns by name, values by kind, every mistake with its file and line.

A trace may have millions of lines, so rows come one at a time and nothing is kept. Mistakes are collected until there
are `MOST_FINDINGS` of them, then raised together: a wrong column breaks every line, and a million messages help nobody.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from ropewalk.documents import read_lines
from ropewalk.documents.from_csv import table_rows
from ropewalk.documents.numbers import finite, whole
from ropewalk.errors import ClusterError, Findings

MOST_FINDINGS = 20
MOST_BYTES = 32 * 10**9
"""Of a trace, unpacked: nothing of it is kept but jobs."""
MOST_COUNT = 2**53
"""Up to which a number with a fraction may be a whole one."""
NOTHING = frozenset({"", "None", "null", "nan", "NaN", "NaT"})
"""What logs write where there is nothing."""

Value = TypeVar("Value")


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a trace, packed with gzip or plain."""
    return read_lines(path, f"trace {path}", ClusterError, MOST_BYTES)


class Mistakes:
    """Findings of one file, each with its line; raised as soon as there are enough of them to see what is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._findings = Findings(ClusterError, f"trace {path}")

    def add(self, line: int, message: str) -> None:
        self._findings.add(f"line {line}: {message}")
        if len(self._findings.messages) >= MOST_FINDINGS:
            self._findings.add("… and perhaps more: only the first are listed")
            self._findings.raise_if_any()

    def __bool__(self) -> bool:
        return bool(self._findings)

    def raise_if_any(self) -> None:
        self._findings.raise_if_any()


class SheetRow:
    """One line of a sheet; values that cannot be read become mistakes, and the caller gets None for them."""

    __slots__ = ("_at", "_cells", "_mistakes", "line")

    def __init__(self, line: int, at: Mapping[str, int], cells: Sequence[str], mistakes: Mistakes) -> None:
        self.line = line
        self._at = at
        """Column -> its place, the same mapping for all rows of a sheet."""
        self._cells = cells
        self._mistakes = mistakes

    def text(self, column: str) -> str | None:
        """What stands there; None where there is nothing."""
        value = self._given(column)
        return None if value in NOTHING else value

    def _given(self, column: str) -> str:
        at = self._at.get(column)
        return "" if at is None else self._cells[at].strip()

    def whole(self, column: str, least: int = 0) -> int | None:
        """A whole number; `4.0` is one, because some logs write counts as floats."""
        return self._read(column, _whole, "a whole number", least)

    def number(self, column: str, least: float = 0.0) -> float | None:
        return self._read(column, finite, "a number", least)

    def moment(self, column: str) -> float | None:
        """A date with time as seconds since 1970; without an offset it is taken as UTC."""
        return self._read(column, moment, "a date with time like 2020-06-03 12:00:00", None)

    def mistake(self, message: str) -> None:
        self._mistakes.add(self.line, message)

    def required(self, column: str) -> str | None:
        value = self.text(column)
        if value is None:
            given = self._given(column)
            self.mistake(f"{column} is {f'{given}, which stands for nothing' if given else 'empty'}: fill it in")
        return value

    def _read(self, column: str, read: Callable[[str], Value], kind: str, least: float | None) -> Value | None:
        text = self.text(column)
        if text is None:
            return None
        try:
            value = read(text)
        except (ValueError, OverflowError):
            self.mistake(f"{column} is {text!r}: give {kind}")
            return None
        if least is not None and isinstance(value, int | float) and value < least:
            why = "negative" if least == 0 else f"below {least:g}"
            self.mistake(f"{column} is {text}, which is {why}: give {least:g} or more")
            return None
        return value


def moment(text: str) -> float:
    """Seconds since 1970 of `2020-06-03`, `2020-06-03 12:00:00` or `2020-06-03T12:00:00+08:00`.

    >>> moment("1970-01-02"), moment("1970-01-01 08:00:01+08:00")
    (86400.0, 1.0)
    """
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def rows(
    path: Path,
    mistakes: Mistakes,
    required: Sequence[str],
    optional: Collection[str] = (),
    *,
    delimiter: str = ",",
    headless: bool = False,
) -> Iterator[SheetRow]:
    """The rows of a table whose header has all `required` columns and no others than the `optional` ones.

    A `headless` table may leave its header out; its columns are then the required ones, in order.
    """
    found = table_rows(text_lines(path), f"trace {path}", ClusterError, delimiter)
    first = next(found, None)
    if first is None:
        raise ClusterError(f"trace {path} is empty: give a file with a header and at least one job")
    header = [name.strip().removeprefix("\ufeff") for name in first[1]]
    starts_at_once = headless and not set(header) & set(required)
    if starts_at_once:
        header = list(required)
    else:
        check_header(path, header, required, optional)
    at = {name: place for place, name in enumerate(header)}
    for line, cells in itertools.chain([first] if starts_at_once else [], found):
        if len(cells) != len(header):
            mistakes.add(line, f"there are {len(cells)} fields, but {len(header)} columns: fix the line")
        else:
            yield SheetRow(line, at, cells, mistakes)


def check_header(path: Path, header: Sequence[str], required: Sequence[str], optional: Collection[str]) -> None:
    findings = Findings(ClusterError, f"trace {path}: line 1")
    known = [*required, *optional]
    for name in header:
        if name not in known:
            findings.add(f"the column {name!r} is unknown: remove it, or name one of {', '.join(known)}")
    for name in dict.fromkeys(name for name in header if list(header).count(name) > 1):
        findings.add(f"the column {name!r} occurs twice: remove one of the two")
    for name in required:
        if name not in header:
            findings.add(f"the column {name!r} is missing: add it, or give the right --trace-format")
    findings.raise_if_any()


def _whole(text: str) -> int:
    try:
        return whole(text)
    except ValueError:
        value = finite(text)
        if value != int(value) or abs(value) > MOST_COUNT:
            raise
        return int(value)
