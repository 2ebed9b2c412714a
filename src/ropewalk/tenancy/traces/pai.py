"""The log of Alibaba's PAI of 2020: a table of jobs, and beside it a table of the tasks they consist of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ropewalk.errors import ClusterError
from ropewalk.files import is_there
from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.sheet import Mistakes, rows
from ropewalk.tenancy.traces.trace import Skip

JOBS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASKS = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)
PERCENT = 100


@dataclass
class _Tasks:
    """What the tasks of one job add up to."""

    gpu_percent: float = 0.0
    start_s: float = math.inf
    end_s: float = -math.inf
    unfinished: bool = False


def pai(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of PAI (Weng et al., NSDI'22): submitted when the job table says, run while their tasks ran.

    A job has the sum of instances times `plan_gpu` of its tasks, rounded up to whole GPUs: shares of one GPU have no
    meaning for the network. The published tables have no header; with or without, columns are the published ones.
    """
    tasks = _tasks(task_table_of(path))
    mistakes = Mistakes(path)
    for row in rows(path, mistakes, JOBS, headless=True):
        name, submitted = row.required("job_name"), row.number("start_time")
        made_of = tasks.get(name or "")
        if submitted is None:
            skip("has no submission time")
        elif made_of is None or made_of.gpu_percent == 0:
            skip("requested no GPU")
        elif made_of.unfinished:
            skip("was still running")
        elif name is not None and made_of.end_s <= made_of.start_s:
            skip("never ran")
        elif name is not None:
            gpus = math.ceil(made_of.gpu_percent / PERCENT - 1e-9)
            duration = made_of.end_s - made_of.start_s
            yield TraceJob(name, gpus, submitted, duration, user=row.text("user"), state=row.text("status"))
    mistakes.raise_if_any()


def task_table_of(path: Path) -> Path:
    """The table of tasks beside a table of jobs: the same name with `task` for `job`."""
    head, found, tail = path.name.rpartition("job")
    beside = path.with_name(f"{head}task{tail}")
    if not found or not is_there(beside):
        where = beside.name if found else path.name.replace(".", "_task.", 1)
        raise ClusterError(
            f"trace {path}: the table of tasks {where} is not beside it, and without it the GPUs of a job are unknown: "
            "put both tables (pai_job_table.csv, pai_task_table.csv) in one folder"
        )
    return beside


def _tasks(path: Path) -> dict[str, _Tasks]:
    mistakes = Mistakes(path)
    found: dict[str, _Tasks] = {}
    for row in rows(path, mistakes, TASKS, headless=True):
        name = row.required("job_name")
        instances, percent = row.whole("inst_num"), row.number("plan_gpu")
        start, end = row.number("start_time"), row.number("end_time")
        if name is None:
            continue
        job = found.setdefault(name, _Tasks())
        job.gpu_percent += (instances or 0) * (percent or 0.0)
        if start is None or end is None:
            job.unfinished = True
        elif end < start:
            row.mistake(f"end_time {end:g} is before start_time {start:g}, a negative time: fix the line")
        else:
            job.start_s, job.end_s = min(job.start_s, start), max(job.end_s, end)
    mistakes.raise_if_any()
    return found
