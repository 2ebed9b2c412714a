"""The jobs that a command replays: a trace, what is done to it before, and how the queue is run."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_plant import drained_of
from ropewalk.cli.cluster_screen import some
from ropewalk.errors import ClusterError, InputError

if TYPE_CHECKING:
    from ropewalk.tenancy.failure import Failure
    from ropewalk.tenancy.job import Job
    from ropewalk.tenancy.plant import Plant
    from ropewalk.tenancy.question import Conditions
    from ropewalk.tenancy.traces import TraceJob

TRACE, LINE = "The jobs", "The queue"
JOBS = typer.Argument(
    metavar="JOBS", help="jobs.csv, or a trace of Helios, Philly (raw, Muri, Gavel), PAI, Acme or Tiresias."
)
TRACE_FORMAT = typer.Option(
    None, help="jobs, helios, acme, philly, philly-muri, philly-gavel, pai or tiresias; recognised unless given.",
    rich_help_panel=TRACE,
)  # fmt: skip
FIRST = typer.Option(None, min=1, help="Only the first jobs, in order of arrival.", rich_help_panel=TRACE)
LARGEST = typer.Option(None, min=1, help="Leave out jobs with more GPUs.", rich_help_panel=TRACE)
PREPARE = typer.Option(
    False, "--prepare", help="As the vClos study does: clip durations, round sizes up, map them to TPU v4 slices.",
    rich_help_panel=TRACE,
)  # fmt: skip
LOAD = typer.Option(
    None, help="Poisson arrivals that ask for this fraction of all GPU time, instead of the trace's own times.",
    rich_help_panel=TRACE,
)  # fmt: skip
ITERATION_TIME = typer.Option(
    None, help="A quiet iteration, for traces with iterations and no durations (Gavel's).", rich_help_panel=TRACE
)
SEED = typer.Option(0, min=0, help="Of hashes, arrivals and moments.", rich_help_panel=TRACE)
QUEUE = typer.Option("fifo", help="fifo, smallest, edf (deadlines) or shortest (expected run).", rich_help_panel=LINE)
BACKFILL = typer.Option(
    False, help="Let others past a head that cannot start; without it the head blocks, as in the published numbers.",
    rich_help_panel=LINE,
)  # fmt: skip
BACKFILL_RULE = typer.Option(
    "easy", help="easy (the head is not delayed) or conservative (nobody is).", rich_help_panel=LINE
)
FAIL = typer.Option(
    [], metavar="PART@TIME[-TIME]", help="leaf:NAME, spine:NAME, server:NAME or link:LEAF-SPINE fails, may recover: "
    "spine:spine3@2000s-9000s. May be repeated.", rich_help_panel=LINE,
)  # fmt: skip
WHEN_A_LINK_DIES = typer.Option(
    "ecmp", help="What a job with links of its own does then: ecmp (fail over through links of others) or re-place.",
    rich_help_panel=LINE,
)  # fmt: skip
CIRCUIT_DELAY = typer.Option(
    "50ms", help="Setting up the optical circuits of a job, once at its start.", rich_help_panel=LINE
)


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
    fail: list[str]
    when_a_link_dies: str
    circuit_delay: str


@dataclass(frozen=True)
class ListedJobs:
    """The jobs of a trace as a plant would run them."""

    jobs: list[Job]
    warnings: list[str]
    """What makes the numbers differ from what was meant, probably: said before them."""
    notes: list[str]
    """What a reader should know about them."""


def read_jobs(path: Path, asked: ReplayOptions, plant: Plant) -> ListedJobs:
    """Read a trace, prepare it as asked, and fill in what it leaves open."""
    from ropewalk.tenancy.of_trace import is_drawn, jobs_of
    from ropewalk.tenancy.traces import VCLOS_STUDY, Selection, mean_gap_for, poisson, prepare, read_trace

    selection = Selection(most_gpus=asked.largest, first=asked.first)
    trace = read_trace(path, asked.trace_format, selection=selection)
    notes = [f"{count} jobs of {path.name} were left out: {why}" for why, count in trace.skipped]
    jobs = trace.jobs
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
    warnings = [*_about_models(jobs), *_about_deadlines(path, jobs, asked.queue)]
    drawn = sum(job.model is None and is_drawn(job) for job in jobs)
    if drawn:
        notes.append(f"{drawn} of {len(jobs)} jobs name no model and get one of the published mix")
    iteration_s = None if asked.iteration_time is None else units.seconds(asked.iteration_time)
    notes += _about_steps(jobs, iteration_s)
    found = jobs_of(jobs, plant, seed=asked.seed, iteration_s=iteration_s, subject=f"trace {path}")
    return ListedJobs(found, warnings, notes)


def _about_steps(jobs: Sequence[TraceJob], iteration_s: float | None) -> list[str]:
    """On which GPUs and by which stack the steps of jobs are priced that say what they train."""
    from ropewalk.device.held import device_in_words
    from ropewalk.tenancy.of_trace import gpu_of_job, is_lowered

    lowered = [job for job in jobs if is_lowered(job, iteration_s)]
    if not lowered:
        return []
    gpus = ", ".join(dict.fromkeys(device_in_words(gpu_of_job(job)) for job in lowered))
    return [
        f"{len(lowered)} of {len(jobs)} jobs take as long as steps of their models on {gpus}, eager stack unless a "
        "model names another"
    ]


def _about_models(jobs: Sequence[TraceJob]) -> list[str]:
    """Models that are not known, perhaps by a slip: what their jobs send is made up."""
    from ropewalk.tenancy.of_trace import unknown_models

    unknown = unknown_models(jobs)
    if not unknown:
        return []
    count = sum(of_model for of_model, _ in unknown.values())
    shown = [name + (f" (did you mean {' or '.join(near)}?)" if near else "") for name, (_, near) in unknown.items()]
    return [
        f"{count} of {len(jobs)} jobs name a model whose communication is not published, and get one of the published "
        f"mix instead: {some(shown)}; correct the names, or give communication_share"
    ]


def _about_deadlines(path: Path, jobs: Sequence[TraceJob], queue: str) -> list[str]:
    """A queue by deadlines needs some."""
    from ropewalk.tenancy.queue import earliest_deadline, order_named

    if order_named(queue) is not earliest_deadline:
        return []
    without = sum(job.deadline_s is None for job in jobs)
    if without == len(jobs):
        raise ClusterError(
            f"--queue {queue} orders jobs by deadline, and no job of {path} has one: fill in deadline_s, or take "
            "--queue fifo, which is what is left without deadlines"
        )
    return [f"{without} of {len(jobs)} jobs have no deadline and come last (--queue {queue})"] if without else []


def _line_of(path: Path, name: str) -> str:
    """Where a job stands in a table, in words; nothing for traces that are no tables."""
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            reader = csv.reader(stream)
            return next((f": line {reader.line_num}" for cells in reader if name in cells), "")
    except (OSError, UnicodeDecodeError, csv.Error):
        return ""


def failures_of(plant: Plant, texts: list[str]) -> tuple[Failure, ...]:
    """Failures as people type them: a part, when it dies, and when it comes back if it does."""
    from ropewalk.tenancy.failure import Failure

    found = []
    for text in texts:
        part, sign, when = text.rpartition("@")
        if not sign:
            raise InputError(f"--fail {text!r} does not say when: write a part and a time, such as spine:spine3@2000s")
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
    delay = units.seconds(asked.circuit_delay)
    if delay < 0:
        raise InputError(f"--circuit-delay must be 0 s or more, got {asked.circuit_delay}: give a time such as 50ms")
    failures = failures_of(plant, asked.fail)
    check_failures(failures, plant)
    return Conditions(
        asked.queue,
        asked.backfill_rule if asked.backfill else None,
        asked.seed,
        delay,
        failures,
        asked.when_a_link_dies,
    )
