"""Tables of comma-separated values, row by row with the line each begins on."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

from ropewalk.documents.bounds import shortened
from ropewalk.documents.opening import Problem

MOST_EMPTY_LINES = 10**6
"""In a row; a file of nothing but line ends is no table."""


def table_rows(
    lines: Iterable[str], subject: str, error: Problem, delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every row that is not empty.

    >>> from ropewalk.errors import InputError
    >>> list(table_rows(["a,b", "", '1,"2,3"'], "table", InputError))
    [(1, ['a', 'b']), (3, ['1', '2,3'])]
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    full = 0
    try:
        for cells in reader:
            if cells:
                full = reader.line_num
                yield full, cells
            elif reader.line_num - full > MOST_EMPTY_LINES:
                raise error(f"{subject}: {MOST_EMPTY_LINES} lines in a row are empty: give a table")
    except csv.Error as problem:
        raise error(f"{subject}: line {reader.line_num}: {problem}: fix the CSV there") from None


def table_records(
    lines: Iterable[str], columns: Sequence[str], subject: str, error: Problem
) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, column -> cell) of every row of a table with exactly these columns."""
    rows = table_rows(lines, subject, error)
    line, header = next(rows, (1, []))
    names = [name.strip().removeprefix("\ufeff") for name in header]
    if names != list(columns):
        raise error(f"{subject}: line {line}: the columns are {shortened(','.join(names))}: write {','.join(columns)}")
    for line, cells in rows:
        if len(cells) != len(names):
            raise error(f"{subject}: line {line}: it has {len(cells)} fields for {len(names)} columns: fix the line")
        yield line, dict(zip(names, cells, strict=True))
