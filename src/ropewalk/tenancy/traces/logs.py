"""Logs of clusters that say when a job was submitted and how long it ran: Helios and Acme (Seren and Kalos)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.sheet import Mistakes, SheetRow, rows
from ropewalk.tenancy.traces.trace import Skip

HELIOS = (
    *("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state"),
    *("submit_time", "start_time", "end_time", "duration", "queue"),
)
HELIOS_STATES = frozenset({"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL"})

SEREN = (
    *("job_id", "user", "node_num", "gpu_num", "cpu_num", "type", "state"),
    *("submit_time", "start_time", "end_time", "duration", "queue", "gpu_time"),
)
KALOS_MORE = ("mem_per_pod_GB", "shared_mem_per_pod", "fail_time", "stop_time")


def helios(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of `cluster_log.csv` of Helios (Hu et al., SC'21): dates without an offset, durations in seconds."""
    mistakes = Mistakes(path)
    for row in rows(path, mistakes, HELIOS):
        state = row.required("state")
        if state is not None and state not in HELIOS_STATES:
            row.mistake(f"the state {state!r} is unknown: use one of {', '.join(sorted(HELIOS_STATES))}")
        yield from _logged(row, skip, state)
    mistakes.raise_if_any()


def acme(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of the Seren and Kalos logs of Acme (Hu et al., NSDI'24): the same, times with an offset."""
    mistakes = Mistakes(path)
    for row in rows(path, mistakes, SEREN, KALOS_MORE):
        yield from _logged(row, skip, row.text("state"))
    mistakes.raise_if_any()


def _logged(row: SheetRow, skip: Skip, state: str | None) -> Iterator[TraceJob]:
    name, gpus = row.required("job_id"), row.whole("gpu_num")
    submitted, duration = row.moment("submit_time"), row.number("duration")
    if row.text("submit_time") is None:
        row.mistake("submit_time is empty: fill it in")
    if gpus == 0 or row.text("gpu_num") is None:
        skip("requested no GPU")
    elif duration == 0 or row.text("duration") is None:
        skip("never ran")
    elif name is not None and gpus is not None and submitted is not None and duration is not None:
        yield TraceJob(name, gpus, submitted, duration, user=row.text("user"), state=state)
