"""The jobs that a command replays: a trace, what is done to it before, and how the queue is run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.lists import split
from ropewalk.errors import ClusterError, InputError

if TYPE_CHECKING:
    from ropewalk.tenancy.failure import Failure
    from ropewalk.tenancy.job import Job
    from ropewalk.tenancy.plant import Plant
    from ropewalk.tenancy.question import Conditions
    from ropewalk.tenancy.traces import TraceJob

TRACE, LINE = "The jobs", "The queue"
JOBS = typer.Argument(
    metavar="JOBS", help="jobs.csv, or a trace of Helios, Philly (raw, Muri, Gavel), PAI, Acme, ITP or Tiresias."
)
TRACE_FORMAT = typer.Option(
    None, help="Format: jobs, helios, acme, philly, philly-muri, philly-gavel, pai, tiresias, itp, elasticflow or "
        "gen-parallel.  [default: detected]",
    rich_help_panel=TRACE,
)  # fmt: skip
FIRST = typer.Option(None, min=1, help="Only the first N jobs, in order of arrival.", rich_help_panel=TRACE)
LARGEST = typer.Option(None, min=1, help="Drop jobs with more GPUs than this.", rich_help_panel=TRACE)
PREPARE = typer.Option(
    False, "--prepare", help="Preprocess as the vClos study does: clip durations, round sizes up, map them to TPU v4 "
        "slices.",
    rich_help_panel=TRACE,
)  # fmt: skip
LOAD = typer.Option(
    None, help="Poisson arrivals at this offered load (fraction of all GPU time), instead of the trace's own times.",
    rich_help_panel=TRACE,
)  # fmt: skip
ITERATION_TIME = typer.Option(
    None,
    help="Time of an uncontended iteration, for traces with iterations but no durations (Gavel's).",
    rich_help_panel=TRACE,
)
MIX = typer.Option(
    None,
    help="Model mix for jobs that do not name one: {mixes}; without it such jobs are refused.",
    rich_help_panel=TRACE,
)
MODEL_AS = typer.Option(
    [], metavar="NAME=MODEL", help="Substitute a model of the trace: LM=bert. Separate several with commas, or repeat.",
    rich_help_panel=TRACE,
)  # fmt: skip
SEED = typer.Option(0, min=0, help="Seed of hashes, arrivals and phases.", rich_help_panel=TRACE)
QUEUE = typer.Option("fifo", help="fifo, smallest, edf (deadlines) or shortest (expected run).", rich_help_panel=LINE)
BACKFILL = typer.Option(
    False, help="Let other jobs overtake a head that cannot start; without it the head blocks the queue, as in the "
        "published numbers.",
    rich_help_panel=LINE,
)  # fmt: skip
BACKFILL_RULE = typer.Option(
    "easy", help="easy (does not delay the head) or conservative (delays no job).", rich_help_panel=LINE
)
FAIL = typer.Option(
    [], metavar="PART@TIME[-TIME]", help="leaf:NAME, spine:NAME, server:NAME or link:LEAF-SPINE fails, and may "
        "recover: "
    "spine:spine3@2000s-9000s. May be repeated.", rich_help_panel=LINE,
)  # fmt: skip
WHEN_A_LINK_DIES = typer.Option(
    "ecmp", help="What an isolated job does then: ecmp (fail over to shared links) or re-place.",
    rich_help_panel=LINE,
)  # fmt: skip
RULE_DELAY = typer.Option(
    "0s", help="Time to install the rules of an isolated job, once at its start.", rich_help_panel=LINE
)
CIRCUIT_DELAY = typer.Option(
    "50ms", help="Time to set up the optical circuits of a job, once at its start.", rich_help_panel=LINE
)
PATCH_DELAY = typer.Option(
    "180s", help="Time to patch the cables of a job's shard (topoopt), ahead on a second panel or at its start.",
    rich_help_panel=LINE,
)  # fmt: skip


@dataclass(frozen=True)
class ReplayOptions:
    """What was typed about the jobs and about how they are run."""

    queue: str
    backfill: bool
    backfill_rule: str
    seed: int
    trace_format: str | None
    first: int | None
    largest: int | None
    prepare: bool
    load: float | None
    iteration_time: str | None
    mix: str | None
    model_as: list[str]
    fail: list[str]
    when_a_link_dies: str
    rule_delay: str
    circuit_delay: str
    patch_delay: str


@dataclass(frozen=True)
class ListedJobs:
    """The jobs of a trace as a plant would run them."""

    jobs: list[Job]
    said: list[str]
    """What they train and how that was found: the first thing to know."""
    warnings: list[str]
    """What makes the numbers differ from what was meant, probably: said before them."""
    notes: list[str]
    """What a reader should know about them."""


def read_jobs(path: Path, asked: ReplayOptions, plant: Plant, *, reorder: bool = False) -> ListedJobs:
    """Read a trace, prepare it as asked, and fill in what it leaves open; `reorder`: as it might have come as well."""
    from ropewalk.device.held import device_in_words
    from ropewalk.tenancy.of_trace import gpu_of_job, jobs_of
    from ropewalk.tenancy.traces import (
        VCLOS_STUDY,
        Selection,
        mean_gap_for,
        mix_named,
        poisson,
        prepare,
        read_trace,
        reordered,
    )
    from ropewalk.tenancy.trained_said import trained_said

    mix = None if asked.mix is None else mix_named(asked.mix)
    selection = Selection(most_gpus=asked.largest, first=asked.first)
    trace = read_trace(path, asked.trace_format, selection=selection)
    notes = [
        f"{count} {'job' if count == 1 else 'jobs'} of {path.name} {'was' if count == 1 else 'were'} left out: {why}"
        for why, count in trace.skipped
    ]
    jobs = reordered(trace.jobs, asked.seed) if reorder else trace.jobs
    if asked.prepare:
        jobs = prepare(jobs, VCLOS_STUDY, asked.seed)
        notes.append("durations clipped to 1,000 to 100,000 s, sizes mapped to TPU v4 slices up to 512 GPUs")
    if asked.load is not None:
        jobs = poisson(jobs, mean_gap_for(jobs, asked.load, plant.gpus), asked.seed)
        notes.append(f"Poisson arrivals at a load of {asked.load:g} instead of the trace's own times")
    for job in jobs:
        if job.gpus > plant.gpus:
            raise ClusterError(
                f"trace {path}{_line_of(path, job.name)}: job {job.name!r} asks for {job.gpus} GPUs, but "
                f"{plant.name} has {plant.gpus}: give a larger cluster, or leave such jobs out (--largest {plant.gpus})"
            )
    warnings = _about_deadlines(path, jobs, asked.queue)
    found = jobs_of(
        jobs,
        plant,
        seed=asked.seed,
        iteration_s=None if asked.iteration_time is None else units.seconds(asked.iteration_time),
        mix=mix,
        model_as=_pairs(asked.model_as),
        folder=path.parent,
        subject=f"trace {path}",
    )
    stepped = {gpu_of_job(job) for job, made in zip(jobs, found, strict=True) if made.split}
    said = trained_said(found, asked.mix, sorted(device_in_words(gpu) for gpu in stepped))
    return ListedJobs(found, said, warnings, notes)


def with_seed(asked: ReplayOptions, seed: int) -> ReplayOptions:
    """The same with another seed."""
    return replace(asked, seed=seed)


def about_seeds(seeds: int, *, reorder: bool) -> list[str]:
    """What seeds vary."""
    if seeds == 1:
        return []
    if reorder:
        return ["seeds vary hashes, phases and random draws, and shuffle blocks of the trace"]
    return ["seeds vary hashes, phases and random draws only; the trace keeps its order (see --reorder)"]


def _pairs(texts: list[str]) -> dict[str, str]:
    """Models that are taken for others: NAME=MODEL, several with commas."""
    found: dict[str, str] = {}
    for pair in (pair for text in texts for pair in split(text)):
        name, sign, model = pair.partition("=")
        if not (sign and name and model):
            raise InputError(f"--model-as {pair!r} does not name two models: write it as LM=bert")
        found[name] = model
    return found


def _about_deadlines(path: Path, jobs: Sequence[TraceJob], queue: str) -> list[str]:
    """A queue by deadlines needs some."""
    from ropewalk.tenancy.queue import earliest_deadline, order_named

    if order_named(queue) is not earliest_deadline:
        return []
    without = sum(job.deadline_s is None for job in jobs)
    if without == len(jobs):
        raise ClusterError(
            f"--queue {queue} orders jobs by deadline, and no job of {path} has one: fill in deadline_s, or use "
            "--queue fifo"
        )
    return [f"{without} of {len(jobs)} jobs have no deadline and come last (--queue {queue})"] if without else []


def _line_of(path: Path, name: str) -> str:
    """Where a job stands in a table, in words; nothing for traces that are no tables."""
    from ropewalk.documents.from_csv import table_rows
    from ropewalk.tenancy.traces.sheet import text_lines

    try:
        rows = table_rows(text_lines(path), f"trace {path}", ClusterError)
        return next((f": line {line}" for line, cells in rows if name in cells), "")
    except ClusterError:
        return ""


def failures_of(plant: Plant, texts: list[str]) -> tuple[Failure, ...]:
    """Failures as people type them: a part, when it dies, and when it comes back if it does."""
    from ropewalk.tenancy.failure import Failure
    from ropewalk.tenancy.parts import drained_of

    found = []
    for text in texts:
        part, sign, when = text.rpartition("@")
        if not sign:
            raise InputError(f"--fail {text!r} has no time: write a part and a time, such as spine:spine3@2000s")
        start, _, end = when.partition("-")
        until_s = units.seconds(end) if end else math.inf
        found.append(Failure(units.seconds(start), drained_of(plant, [part]), until_s))
    return tuple(found)


def conditions_of(asked: ReplayOptions, plant: Plant) -> Conditions:
    """How the queue is run and what breaks; what is not known is refused before anything is read."""
    from ropewalk.tenancy.backfill import backfill_named
    from ropewalk.tenancy.failure import check_failures, check_policy
    from ropewalk.tenancy.question import Conditions
    from ropewalk.tenancy.queue import order_named

    order_named(asked.queue)
    backfill_named(asked.backfill_rule)
    check_policy(asked.when_a_link_dies)
    delay, rules_s = units.seconds(asked.circuit_delay), units.seconds(asked.rule_delay)
    if delay < 0:
        raise InputError(f"--circuit-delay must be 0 s or more, got {asked.circuit_delay}: give a time such as 50ms")
    if rules_s < 0:
        raise InputError(f"--rule-delay must be 0 s or more, got {asked.rule_delay}: give a time such as 2s")
    patch_s = units.seconds(asked.patch_delay)
    failures = failures_of(plant, asked.fail)
    check_failures(failures, plant)
    return Conditions(
        asked.queue,
        asked.backfill_rule if asked.backfill else None,
        asked.seed,
        delay,
        patch_s,
        rules_s,
        failures,
        asked.when_a_link_dies,
    )
