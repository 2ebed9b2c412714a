"""A table of pairs and groups with their bandwidths, for whoever measures with something else.

    ranks,collective,size,busbw
    gpu0.0 gpu1.0,sendrecv,1GiB,46.1
    gpu0.0 gpu2.0,sendrecv,1GiB,11.6

Ranks are numbers, names of GPUs, or server:number. Without a collective, two ranks send to each other (`send`: the
first to the second) and more all-reduce; without a size, it is 1 GiB. `busbw` is in GB/s, or `time` with its unit.
"""

from __future__ import annotations

import math

from ropewalk import units
from ropewalk.documents.from_csv import table_rows
from ropewalk.documents.numbers import finite, is_count
from ropewalk.errors import Findings, InputError
from ropewalk.expect.benchmarks import BENCHMARKS, benchmark_named
from ropewalk.expect.read.record import Place, Record, SourceFile

COLUMNS = ("ranks", "collective", "size", "busbw", "time")
USUAL_SIZE = 1 << 30


def is_pairs(text: str) -> bool:
    return "ranks" in [word.strip().lower() for word in text.lstrip("\ufeff").partition("\n")[0].split(",")]


def read_pairs(source: SourceFile, findings: Findings) -> list[Record]:
    """Every row of the table."""
    rows = table_rows(source.text.lstrip("\ufeff").splitlines(keepends=True), source.name, InputError)
    found: list[Record] = []
    try:
        head = [word.strip().lower() for word in next(rows, (1, []))[1]]
        for name in set(head) - set(COLUMNS):
            findings.add(f"{source.name}: there is no column {name!r}: use {', '.join(COLUMNS)}")
        if not {"busbw", "time"} & set(head):
            findings.add(f"{source.name}: there is neither busbw nor time: add one of the two columns")
        if findings:
            return []
        for line, row in rows:
            if any(row):
                where = f"{source.name}, line {line}"
                found += _row(dict(zip(head, (cell.strip() for cell in row), strict=False)), where, findings)
    except InputError as problem:
        findings.add(str(problem))
    return found


def _row(cells: dict[str, str], where: str, findings: Findings) -> list[Record]:
    ranks = cells.get("ranks", "").split()
    if len(ranks) < 2:
        findings.add(f"{where}: {cells.get('ranks', '')!r} are not two ranks or more: write them like gpu0.0 gpu1.0")
        return []
    name = cells.get("collective") or ("sendrecv" if len(ranks) == 2 else "all_reduce")
    benchmark = benchmark_named(name)
    if benchmark is None:
        findings.add(f"{where}: {BENCHMARKS.unknown(name)}")
        return []
    try:
        size = units.size(cells["size"]) if cells.get("size") else USUAL_SIZE
        if cells.get("time"):
            seconds = units.seconds(cells["time"])
        else:
            seconds = size * benchmark.factor(len(ranks)) / _bandwidth(cells.get("busbw", ""))
    except InputError as problem:
        findings.add(f"{where}: {problem}")
        return []
    if not (math.isfinite(seconds) and seconds > 0 and size > 0):
        findings.add(f"{where}: size and bandwidth or time must be above 0: remove rows that were not measured")
        return []
    return [Record(benchmark.name, size, seconds, (tuple(map(_place, ranks)),), where, len(ranks))]


def _bandwidth(text: str) -> float:
    """Bytes/s of a number of GB/s, or of a bandwidth with its unit."""
    try:
        found = finite(text) * 1e9
    except ValueError:
        return units.bandwidth(text)
    if not (math.isfinite(found) and found > 0):
        raise InputError(f"a bandwidth of {text} is not above 0: give GB/s")
    return found


def _place(word: str) -> Place:
    server, colon, number = word.rpartition(":")
    if colon and is_count(number) and len(number) < 7:
        return server, int(number)
    return int(word) if is_count(word) and len(word) < 10 else word
