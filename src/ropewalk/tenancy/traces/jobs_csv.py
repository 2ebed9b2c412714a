"""Our own table of jobs: jobs.csv, written and read back to the last bit.

| column | means | needed |
|---|---|---|
| name | what to call the job; no two alike | yes |
| gpus | how many GPUs it takes, all at once | yes |
| arrival_s | when it is submitted, seconds | yes |
| duration_s | how long it runs on a quiet network | this or iterations |
| iterations | training steps | this or duration_s |
| model, batch | what it trains, with how many samples a step and GPU | |
| tensor, pipeline, expert, device | how the model is split, and on which device it is priced | |
| collective | ring, hierarchical-ring, halving-doubling, all-to-all, … | |
| communication_share | part of a quiet step spent in the exchange, 0 to 1 | |
| volume_bytes, compute_s | bytes a GPU exchanges in a step, seconds it computes | |
| deadline_s, expected_s | when it should be done (same clock); how long its user expects it to run | |
| user, state | for people | |

Cells may be empty; columns may come in any order and those that are not needed may be left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from ropewalk.errors import ClusterError
from ropewalk.files import write_whole
from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.sheet import Mistakes, SheetRow, rows
from ropewalk.tenancy.traces.trace import Skip

NEEDED = ("name", "gpus", "arrival_s")
COLUMNS = tuple(field.name for field in fields(TraceJob))
OPTIONAL = tuple(name for name in COLUMNS if name not in NEEDED)


def own(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of a jobs.csv; nothing is ever skipped, because whoever wrote it meant it."""
    mistakes = Mistakes(path)
    line_of: dict[str, int] = {}
    for row in rows(path, mistakes, NEEDED, OPTIONAL):
        job = _job(row)
        if job is None:
            continue
        for flaw in job.flaws():
            row.mistake(flaw)
        if job.name in line_of:
            row.mistake(f"the job {job.name!r} is also on line {line_of[job.name]}: give each job its own name")
        line_of.setdefault(job.name, row.line)
        yield job
    mistakes.raise_if_any()


def to_csv(jobs: Iterable[TraceJob]) -> str:
    """Jobs as text, only with the columns that any of them fills; floats exact to the last bit.

    >>> print(to_csv([TraceJob("a", gpus=8, arrival_s=0.5, duration_s=60.0)]), end="")
    name,gpus,arrival_s,duration_s
    a,8,0.5,60.0
    """
    listed = tuple(jobs)
    used = [name for name in COLUMNS if name in NEEDED or any(getattr(job, name) is not None for job in listed)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(used)
    for job in listed:
        writer.writerow(["" if (value := getattr(job, name)) is None else value for name in used])
    return text.getvalue()


def write_jobs(jobs: Iterable[TraceJob], path: str | Path) -> None:
    """jobs.csv, the whole file or none; jobs that could not be read back are refused."""
    listed = tuple(jobs)
    if not listed:
        raise ClusterError(f"there is no job to write to {path}: give at least one")
    for job in listed:
        for flaw in job.flaws():
            raise ClusterError(f"job {job.name!r} cannot be written to {path}: {flaw}")
    write_whole(path, to_csv(listed))


def _job(row: SheetRow) -> TraceJob | None:
    name, gpus, arrival = row.required("name"), row.whole("gpus", least=1), row.number("arrival_s")
    for column in ("gpus", "arrival_s"):
        row.required(column)
    duration, iterations = row.number("duration_s"), row.whole("iterations", least=1)
    if row.text("duration_s") is None and row.text("iterations") is None:
        row.mistake("there is neither duration_s nor iterations: give one")
    if name is None or gpus is None or arrival is None:
        return None
    return TraceJob(
        name,
        gpus,
        arrival,
        duration,
        iterations,
        row.text("model"),
        row.whole("batch", least=1),
        row.text("collective"),
        row.number("communication_share"),
        row.whole("volume_bytes"),
        row.number("compute_s"),
        row.number("deadline_s"),
        row.number("expected_s"),
        row.text("user"),
        row.text("state"),
        row.whole("tensor", least=1),
        row.whole("pipeline", least=1),
        row.whole("expert", least=1),
        row.text("device"),
    )
