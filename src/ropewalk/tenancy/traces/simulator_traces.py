"""Traces that schedulers' authors prepared for their simulators: Muri, Tiresias, ElasticFlow, Gavel (with tabs)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.logs import told
from ropewalk.tenancy.traces.sheet import Mistakes, SheetRow, rows, text_lines
from ropewalk.tenancy.traces.trace import Skip

TIRESIAS = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "interval")
MURI = (
    *("job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "duration", "interval"),
    *("iteration_time", "resource_time_0", "resource_time_1", "resource_time_2", "priority"),
)
ELASTICFLOW = (
    *("job_id", "submission_time", "num_iteration", "model_name"),
    *("deadline", "batch_size", "num_gpu", "duration"),
)
GAVEL_FIELDS = ("job type", "command", "steps flag", "needs data dir", "steps", "arrival", "GPUs")
GAVEL_PLACES = {name: place for place, name in enumerate(GAVEL_FIELDS)}
_JOB_TYPE = re.compile(r"(?P<model>.+?)(?: \(batch size (?P<batch>[0-9]{1,9})\))?")


def tiresias(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs as Tiresias' simulator takes them, times in seconds; `interval`, the gap to the next, says nothing new."""
    mistakes = Mistakes(path)
    for row in rows(path, mistakes, TIRESIAS):
        yield from _simulated(row, skip, 1)
    mistakes.raise_if_any()


def muri(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of Philly as Muri's authors prepared them: times in milliseconds.

    The unit is inferred: duration is iterations times iteration_time, and iterations of 200 to 800 units are
    milliseconds. `resource_time_2` is the network's: of three resources the one that a single GPU never uses, so its
    part of an iteration is the share of communication that Muri's authors measured. What Muri shares within a GPU
    (`resource_time_0`, `resource_time_1`, `priority`) has no counterpart here.
    """
    mistakes = Mistakes(path)
    for row in rows(path, mistakes, MURI):
        share = _network_share(row)
        for job in _simulated(row, skip, 1000):
            yield replace(job, communication_share=share)
    mistakes.raise_if_any()


def elasticflow(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of ITP as ElasticFlow's authors prepared them: sizes and durations logged, models and deadlines drawn."""
    mistakes = Mistakes(path)
    for row in rows(path, mistakes, ELASTICFLOW):
        columns = ("job_id", "num_gpu", "submission_time", "duration")
        for job in told(row, skip, row.number("submission_time"), columns):
            yield replace(
                job, iterations=row.whole("num_iteration", least=1), model=row.text("model_name"),
                batch=row.whole("batch_size", least=1), deadline_s=row.number("deadline"),
            )  # fmt: skip
    mistakes.raise_if_any()


def _network_share(row: SheetRow) -> float | None:
    """Part of an iteration that is spent on the network; None where the trace does not say."""
    took, network = row.number("iteration_time"), row.number("resource_time_2")
    if not took or network is None:
        return None
    if network >= took:
        row.mistake(
            f"resource_time_2 is {network:g} of an iteration_time of {took:g}: give less for the network than for all"
        )
        return None
    return network / took


def gavel(path: Path, skip: Skip) -> Iterator[TraceJob]:
    """Jobs of Philly as Gavel's authors prepared them: seven fields between tabs, no header, no duration.

    The name of a job is the number of its line, because the file has none.
    """
    mistakes = Mistakes(path)
    for line, text in enumerate(text_lines(path), 1):
        if text.strip():
            yield from _gavel_line(line, text, mistakes, skip)
    mistakes.raise_if_any()


def _simulated(row: SheetRow, skip: Skip, units_a_second: int) -> Iterator[TraceJob]:
    name, gpus, iterations = row.required("job_id"), row.whole("num_gpu"), row.whole("iterations", least=1)
    arrival, duration = row.number("submit_time"), row.number("duration")
    batch = row.whole("batch_size", least=1)
    for column in ("num_gpu", "submit_time", "duration"):
        row.required(column)
    if gpus == 0:
        skip("requested no GPU")
    elif duration == 0:
        skip("never ran")
    elif name is not None and gpus is not None and arrival is not None and duration is not None:
        model = row.text("model_name")
        yield TraceJob(
            name, gpus, arrival / units_a_second, duration / units_a_second, iterations, model=model, batch=batch
        )


def _gavel_line(line: int, text: str, mistakes: Mistakes, skip: Skip) -> Iterator[TraceJob]:
    fields = text.rstrip("\r\n").split("\t")
    if len(fields) != len(GAVEL_FIELDS):
        expected = ", ".join(GAVEL_FIELDS)
        mistakes.add(line, f"there are {len(fields)} fields between tabs, not 7: write {expected}")
        return
    row = SheetRow(line, GAVEL_PLACES, fields, mistakes)
    steps, arrival, gpus = row.whole("steps", least=1), row.number("arrival"), row.whole("GPUs")
    for field in ("job type", "steps", "arrival", "GPUs"):
        row.required(field)
    told = _JOB_TYPE.fullmatch(row.text("job type") or "")
    if gpus == 0:
        skip("requested no GPU")
    elif told is not None and steps is not None and arrival is not None and gpus is not None:
        batch = told["batch"]
        yield TraceJob(
            str(line), gpus, arrival, iterations=steps, model=told["model"], batch=int(batch) if batch else None
        )
