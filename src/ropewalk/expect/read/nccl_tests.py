"""The output of nccl-tests as people copy it: its list of devices and its table, whatever stands around them.

Launchers put the rank before every line, older releases have fewer columns, scripts run several benchmarks after each
other. A line counts as a row of the table where a size, a count and a type stand together.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

from ropewalk.documents.numbers import is_count
from ropewalk.errors import Findings
from ropewalk.expect.benchmarks import BENCHMARKS, PRINTED, Benchmark, benchmark_named
from ropewalk.expect.read.record import Place, Record, SourceFile, Who

_DEVICE = re.compile(
    r"Rank\s+([0-9]{1,9})\s+(?:Group\s+([0-9]{1,9})\s+)?Pid\s+[0-9]+\s+on\s+(\S+)\s+device\s+([0-9]{1,9})"
)
_NAME = re.compile(rf"\b({'|'.join(PRINTED)})_perf")
_TYPES = frozenset(
    ("int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16",
     "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2")
)  # fmt: skip
_CHECKED = re.compile(r"Out of bounds values\s*:\s*([0-9]{1,18})\s+(OK|FAILED)")
_FAILED = re.compile(r"Test (?:NCCL |CUDA )?failure\b.*")
_MANY = re.compile(r"[0-9](?:\.[0-9]{1,5})?e\+(?:0[6-9]|1[0-8])")
_ROOT = re.compile(r"-?[0-9]{1,6}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|N/A")
_LOOKED_AT = 100_000
"""Characters in which an output without headings is recognised."""
_CLEAR_FROM = 1.0
"""GB/s from which two printed decimals tell the factor between bus and algorithm bandwidth."""


def is_nccl_tests(text: str) -> bool:
    """Its headings, its list of devices, or rows that somebody copied without them."""
    if "busbw" in text and "algbw" in text:
        return True
    return any(_DEVICE.search(line) or _start(line.split()) is not None for line in text[:_LOOKED_AT].splitlines())


@dataclass
class _Reading:
    """What has been seen so far."""

    source: SourceFile
    findings: Findings
    name: str | None = None
    devices: dict[int, tuple[int, tuple[str, int]]] = field(default_factory=dict)
    """By rank: its group, and where it is."""
    in_table: bool = False
    found: list[Record] = field(default_factory=list)
    checked: int = 0
    """Rows of tables below which nccl-tests has said whether their results were right."""

    @property
    def ranks(self) -> int | None:
        """How many ranks there are, by the list of devices, of which people may copy the end alone."""
        return max(self.devices) + 1 if self.devices else None

    def who(self) -> Who:
        """Places of all ranks by group; nothing where the list of devices is not whole."""
        if len(self.devices) != self.ranks:
            return ()
        groups: dict[int, list[Place]] = {}
        for _, (group, place) in sorted(self.devices.items()):
            groups.setdefault(group, []).append(place)
        return tuple(tuple(members) for _, members in sorted(groups.items()))


@dataclass(frozen=True)
class _Row:
    size_bytes: int
    reduces: bool
    seconds: float
    ratio: float | None
    """Bus over algorithm bandwidth, where both are large enough to tell."""
    wrong: int
    """Values that came out wrong, out of place and in place."""


def read_nccl_tests(source: SourceFile, findings: Findings) -> list[Record]:
    """All rows of all tables, out of place where nccl-tests ran both."""
    reading, failed = _Reading(source, findings), ""
    for number, line in enumerate(source.text.splitlines(), 1):
        named = _NAME.search(line)
        if named:
            reading.name = named[1]
        device = _DEVICE.search(line)
        if device:
            if reading.in_table:  # the next benchmark of a script
                reading.devices, reading.in_table = {}, False
            reading.devices[int(device[1])] = (int(device[2] or 0), (device[3], int(device[4])))
        elif found := _FAILED.search(line):
            failed = failed or f"{source.name}, line {number}: nccl-tests failed ({found[0].strip()})"
        elif found := _CHECKED.search(line):
            _take_check(reading, int(found[1]) if found[2] == "FAILED" else 0)
        elif not line.lstrip().startswith("#"):
            _take_row(reading, line.split(), f"{source.name}, line {number}")
    if failed:
        rows = ", or remove the lines that report the failure to check only the rows above" if reading.found else ""
        findings.add(f"{failed}: fix the cause and run it again{rows}")
    elif not reading.found and not findings:
        findings.add(f"{source.name}: it contains no table row: copy the whole output of nccl-tests")
    return reading.found


def _take_row(reading: _Reading, words: list[str], where: str) -> None:
    at = _start(words)
    if at is None:
        return
    reading.in_table = True
    row = _row(words, at)
    if row is None:
        numbers = words[at + 4 : at + 8][: len(words) - at - 5]  # the last word may be cut
        strange = next((one for one in numbers if not (_NUMBER.fullmatch(one) or _ROOT.fullmatch(one))), "")
        problem = f"{strange!r} is not a number" if strange else "the row is incomplete, so the output is truncated"
        reading.findings.add(f"{where}: {problem}: copy all of the output, or remove the row")
        return
    if row.seconds <= 0 or row.size_bytes == 0:
        return  # nccl-tests also runs empty buffers
    who = reading.who()
    ranks = len(who[0]) if who else reading.ranks
    benchmark = _benchmark(reading, row)
    if benchmark is None:
        reading.findings.add(
            f"{where}: the collective is unknown: name it with --measured, such as --measured all_reduce"
        )
        return
    record = Record(
        benchmark.name, row.size_bytes, row.seconds, who, where, _ranks_of(benchmark, row, ranks), row.wrong
    )
    reading.found.append(record)


def _take_check(reading: _Reading, wrong: int) -> None:
    """What stands below a table: older releases say there alone that results were wrong."""
    rows = reading.found[reading.checked :]
    if wrong and rows and not any(row.wrong for row in rows):
        reading.found[-1] = replace(reading.found[-1], wrong=wrong)
    reading.checked = len(reading.found)


def _start(words: list[str]) -> int | None:
    """Where a row begins behind what launchers put before it: size, count, type."""
    for at in range(min(len(words) - 2, 6)):
        first = words[at].rpartition(":")[2].rpartition(">")[2].rpartition("]")[2]
        if is_count(first) and is_count(words[at + 1]) and words[at + 2] in _TYPES:
            return at
    return None


def _row(words: list[str], at: int) -> _Row | None:
    size = int(words[at].rpartition(":")[2].rpartition(">")[2].rpartition("]")[2])
    rest = words[at + 3 :]
    reduces = False
    if rest and rest[0].isalpha():
        reduces = rest.pop(0) != "none"
        if len(rest) in (5, 9) and _ROOT.fullmatch(rest[0]):  # older releases print no root
            rest.pop(0)
    if len(rest) < 4 or not all(_NUMBER.fullmatch(word) for word in rest[:3]):
        return None
    wrong = sum(_wrong(word) for word in rest[3:8:4])
    if rest[0] == "N/A" and len(rest) >= 8:
        rest = rest[4:]
    time, algbw, busbw = (0.0 if word == "N/A" else float(word) for word in rest[:3])
    if not math.isfinite(time):
        return None
    ratio = busbw / algbw if algbw >= _CLEAR_FROM and busbw > 0 else None
    return _Row(size, reduces, time * 1e-6, ratio, wrong)


def _wrong(word: str) -> int:
    """Values that came out wrong: `%g` writes a million and more with an exponent.

    Older releases print the largest error there instead, which is judged by what stands below the table.

    >>> _wrong("3"), _wrong("1.04858e+06"), _wrong("2e-07"), _wrong("N/A")
    (3, 1048580, 0, 0)
    """
    if is_count(word):
        return int(word)
    return int(float(word)) if _MANY.fullmatch(word) else 0


def _benchmark(reading: _Reading, row: _Row) -> Benchmark | None:
    """By the name of the program, by what was said, by the name of the file, or by its columns where they tell."""
    stem = _NAME.search(reading.source.name)
    name = reading.name or reading.source.benchmark or (stem[1] if stem else None)
    if name is not None:
        return benchmark_named(name)
    if row.reduces and row.ratio is not None and row.ratio > 1.02:
        return BENCHMARKS["all_reduce"]
    return None


def _ranks_of(benchmark: Benchmark, row: _Row, ranks: int | None) -> int | None:
    """The number of ranks that the factor between the two bandwidths tells, where it does."""
    if row.ratio is None or benchmark.factor(2) == benchmark.factor(3):
        return ranks
    nearest = min(range(2, 65), key=lambda one: abs(benchmark.factor(one) - row.ratio))  # type: ignore[operator]
    if ranks is not None and abs(benchmark.factor(ranks) / row.ratio - 1) < 0.03:
        return ranks
    return nearest if abs(benchmark.factor(nearest) / row.ratio - 1) < 0.004 and nearest <= 32 else ranks
