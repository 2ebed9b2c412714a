"""Logs of clusters that say when a job was submitted and how long it ran: Helios, Acme (Seren and Kalos), ITP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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

ITP = ("job_id", "submission_time", "duration", "num_gpu")

GEN_PARALLEL = (
    *("u_id", "user", "gpu_num", "cpu_num", "node_num"),
    *("interval", "run_time", "wall_time", "new_status"),
)


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


def itp(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of a cluster of Microsoft's ITP as released with ElasticFlow (Gu et al., ASPLOS'23): seconds, no dates."""
    mistakes = Mistakes(path)
    for row in rows(path, mistakes, ITP):
        yield from told(row, skip, row.number("submission_time"), ("job_id", "num_gpu", "submission_time", "duration"))
    mistakes.raise_if_any()


def gen_parallel(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """The latest 15,000 jobs of Helios or Philly as cut for Gen-Parallel-Workloads (Soundar Raj et al., JSSPP'24).

    `interval` is the time since the job before was submitted, so it counts for jobs that are left out, too.
    """
    mistakes, clock = Mistakes(path), 0.0
    for row in rows(path, mistakes, GEN_PARALLEL):
        clock += row.number("interval") or 0.0
        for job in told(row, skip, clock, ("u_id", "gpu_num", "interval", "run_time")):
            yield replace(job, user=row.text("user"), state=row.text("new_status"))
    mistakes.raise_if_any()


def told(row: SheetRow, skip: Skip, submitted: float | None, columns: tuple[str, str, str, str]) -> Iterator[TraceJob]:
    """The job of a row with columns for its name, GPUs, submission and duration; none where it never had a GPU."""
    name_in, gpus_in, _, duration_in = columns
    for column in columns:
        row.required(column)
    name, gpus, duration = row.text(name_in), row.whole(gpus_in), row.number(duration_in)
    if gpus == 0:
        skip("requested no GPU")
    elif duration == 0:
        skip("never ran")
    elif name is not None and gpus is not None and submitted is not None and duration is not None:
        yield TraceJob(name, gpus, submitted, duration)
