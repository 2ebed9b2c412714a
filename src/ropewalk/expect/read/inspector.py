"""What NCCL Inspector writes: a JSON object for every collective of every rank.

Ranks that come early wait in the kernel for those that come late, so a collective takes what it takes its last rank:
the shortest time among the ranks that report it. Of many equal collectives of a communicator the median counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from ropewalk.documents.json_array import json_objects
from ropewalk.errors import Findings, InputError
from ropewalk.expect.benchmarks import benchmark_named
from ropewalk.expect.read.record import Place, Record, SourceFile

_GATHERS = ("all_gather", "reduce_scatter")
"""Whose size is that of one rank's part, where nccl-tests prints that of all."""


def is_inspector(text: str) -> bool:
    return '"coll_perf"' in text or '"p2p_perf"' in text


@dataclass(frozen=True)
class InspectorReport:
    """One collective as one rank reports it."""

    communicator: str
    rank: int
    ranks: int
    process: tuple[str, int]
    benchmark: str
    number: int
    size_bytes: int
    seconds: float
    source: str


def seen_by_inspector(source: SourceFile, findings: Findings) -> list[InspectorReport]:
    """All collectives that one file reports."""
    found: list[InspectorReport] = []
    header: dict[str, Any] = {}
    for where, entry in _objects(source, findings):
        header = {**header, **_part(entry, "header"), **_part(entry, "metadata")}
        perf = _part(entry, "coll_perf")
        if not perf:
            continue
        try:
            one = _seen(header, perf, where)
        except (KeyError, TypeError, ValueError, OverflowError):
            findings.add(f"{where}: a record of a collective lacks its header, name, size or time: dump it again")
            return found
        if one is not None:
            found.append(one)
    return found


def _part(entry: dict[str, Any], name: str) -> dict[str, Any]:
    value = entry.get(name)
    return value if isinstance(value, dict) else {}


def _objects(source: SourceFile, findings: Findings) -> Iterator[tuple[str, dict[str, Any]]]:
    """JSON objects one after the other, on one line each or on several, or as one list."""
    try:
        for line, value in json_objects(source.text, source.name, InputError):
            yield f"{source.name}, line {line}", value
    except InputError as problem:
        findings.add(f"{problem}; at the end of the file: wait for the job to end, or remove the last line")


def _seen(header: dict[str, Any], perf: dict[str, Any], where: str) -> InspectorReport | None:
    benchmark = benchmark_named(str(perf["coll"]))
    seconds, size, ranks = float(perf["coll_exec_time_us"]) * 1e-6, int(perf["coll_msg_size_bytes"]), header["n_ranks"]
    if benchmark is None or seconds <= 0 or size <= 0 or int(ranks) < 2:
        return None
    if benchmark.name in _GATHERS:
        size *= int(ranks)
    process = str(header.get("hostname", "")), int(header.get("pid", header["rank"]))
    return InspectorReport(
        str(header["id"]), int(header["rank"]), int(ranks), process, benchmark.name, int(perf.get("coll_sn", 0)), size,
        seconds, where,
    )  # fmt: skip


def records_of_inspector(seen: list[InspectorReport], findings: Findings) -> list[Record]:
    """Collectives of all files together: who is in which communicator is only known from all of its ranks."""
    place = _places(seen)
    members: defaultdict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
    ranks: dict[str, int] = {}
    for one in seen:
        members[one.communicator][one.rank] = one.process
        ranks[one.communicator] = one.ranks
    whole = max(ranks.values(), default=0)
    for name, found in members.items():
        if len(found) < ranks[name] < whole:
            findings.add(
                f"communicator {name}: {ranks[name] - len(found)} of its {ranks[name]} ranks are in no file, so its "
                "GPUs "
                "are unknown: read the files of all ranks"
            )
    records = []
    for (name, benchmark, size), several in _alike(seen).items():
        who: tuple[Place, ...] = tuple(place[process] for _, process in sorted(members[name].items()))
        # Ranks of the widest communicator that are in no file are the other GPUs of the cluster.
        known = (who,) if len(who) == ranks[name] else ()
        seconds = median(one.seconds for one in several)
        records.append(Record(benchmark, size, seconds, known, several[0].source, ranks[name]))
    return records


def _alike(seen: list[InspectorReport]) -> dict[tuple[str, str, int], list[InspectorReport]]:
    """Of every collective what its last rank reports, by communicator, benchmark and size."""
    shortest: dict[tuple[str, str, int, int], InspectorReport] = {}
    for one in seen:
        key = one.communicator, one.benchmark, one.size_bytes, one.number
        if key not in shortest or one.seconds < shortest[key].seconds:
            shortest[key] = one
    found: defaultdict[tuple[str, str, int], list[InspectorReport]] = defaultdict(list)
    for (communicator, benchmark, size, _), one in shortest.items():
        found[communicator, benchmark, size].append(one)
    return found


def _places(seen: list[InspectorReport]) -> dict[tuple[str, int], tuple[str, int]]:
    """The GPU of every process: processes of a server stand in the order of their ranks in the widest communicator."""
    best: dict[tuple[str, int], tuple[int, int]] = {}
    for one in seen:
        best[one.process] = min(best.get(one.process, (0, 0)), (-one.ranks, one.rank))
    on: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for process in sorted(best, key=lambda process: (best[process], process)):
        on[process[0]].append(process)
    return {process: (server, number) for server, some in on.items() for number, process in enumerate(some)}
