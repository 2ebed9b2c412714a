"""Collectives in traces of PyTorch's profiler (Kineto): kernels of NCCL with their sizes and groups.

A kernel also waits for ranks that come late, so of all kernels of the same collective, size and group, in the traces of
all ranks, the shortest counts.
"""

from __future__ import annotations

import re
from typing import Any

from ropewalk.documents import parse_foreign_json
from ropewalk.errors import Findings, InputError
from ropewalk.expect.benchmarks import benchmark_named
from ropewalk.expect.read.record import Record, SourceFile, Who

_BYTES = {
    "float": 4, "float32": 4, "half": 2, "float16": 2, "bfloat16": 2, "double": 8, "float64": 8, "int": 4, "int32": 4,
    "long": 8, "int64": 8, "short": 2, "char": 1, "int8": 1, "byte": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
_OUTPUT = ("all_gather",)
"""Whose size is what a rank ends with."""


def is_kineto(text: str) -> bool:
    """By its events, or by its first key where a trace ends before them."""
    return '"traceEvents"' in text or text.lstrip("\ufeff \r\n\t{").startswith('"schemaVersion"')


def read_kineto(source: SourceFile, findings: Findings) -> list[Record]:
    """All collectives of one trace."""
    try:
        trace = parse_foreign_json(source.text, source.name, InputError)
    except InputError as problem:
        findings.add(f"{problem}; or export the trace again and wait until it is written")
        return []
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        findings.add(f"{source.name}: traceEvents is not a list: give a trace of PyTorch's profiler")
        return []
    groups = _groups_by_name(trace)
    records = [found for event in events if (found := _record(event, groups, source.name)) is not None]
    if not records:
        findings.add(
            f"{source.name}: no NCCL kernel in it has a collective and size: record it with PyTorch 2.4 or "
            "later, with the activities CPU and CUDA"
        )
    return records


def shortest_of(records: list[Record]) -> list[Record]:
    """Of equal collectives of all traces the shortest."""
    found: dict[tuple[str, int, Who], Record] = {}
    for one in records:
        key = one.benchmark, one.size_bytes, one.who
        if key not in found or one.seconds < found[key].seconds:
            found[key] = one
    return list(found.values())


def _groups_by_name(trace: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Ranks of the process groups that the trace lists."""
    info = trace.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    found = {}
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and isinstance(one.get("ranks"), list):
            found[str(one.get("pg_name"))] = tuple(rank for rank in one["ranks"] if isinstance(rank, int))
    return found


def _record(event: Any, groups: dict[str, tuple[int, ...]], source: str) -> Record | None:
    if not isinstance(event, dict) or event.get("cat") != "kernel" or not isinstance(event.get("args"), dict):
        return None
    args, name = event["args"], str(event.get("name", ""))
    benchmark = benchmark_named(str(args.get("Collective name", "")))
    if benchmark is None or not name.startswith("nccl"):
        return None
    counts = args.get("Out msg nelems" if benchmark.name in _OUTPUT else "In msg nelems")
    width = _width(str(args.get("dtype", "")))
    ranks, micros = args.get("Group size"), event.get("dur")
    if not (isinstance(counts, int) and isinstance(ranks, int) and isinstance(micros, int | float)) or width is None:
        return None
    if counts < 1 or ranks < 2 or not 0 < micros < 1e12:
        return None
    return Record(benchmark.name, counts * width, micros * 1e-6, _who(args, groups, ranks), source, ranks)


def _width(dtype: str) -> int | None:
    name = dtype.lower()
    return 1 if name.startswith("float8") else _BYTES.get(name)


def _who(args: dict[str, Any], groups: dict[str, tuple[int, ...]], ranks: int) -> Who:
    """The ranks of the group; none where the trace does not list all of them."""
    listed = tuple(int(number) for number in re.findall("[0-9]{1,9}", str(args.get("Process Group Ranks", ""))))
    if len(listed) != ranks:  # long lists are shortened in the trace
        listed = groups.get(str(args.get("Process Group Name", "")), ())
    return (listed,) if len(listed) == ranks else ()
