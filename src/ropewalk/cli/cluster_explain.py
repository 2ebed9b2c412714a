"""`ropewalk cluster explain`: why does this job wait?"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ropewalk.cli.cluster_options import about_a_cluster
from ropewalk.cli.cluster_plant import ISOLATE_ONE, STATE, PlantOptions, plant_of, read_state
from ropewalk.cli.cluster_state import describe, request, way_named
from ropewalk.cli.cluster_trace import (
    BACKFILL,
    BACKFILL_RULE,
    CIRCUIT_DELAY,
    FIRST,
    ITERATION_TIME,
    LARGEST,
    LOAD,
    PREPARE,
    QUEUE,
    SEED,
    TRACE_FORMAT,
    TraceOptions,
    conditions_of,
    read_jobs,
)  # fmt: skip
from ropewalk.cli.screen import JSON, console, print_json, progress_bar
from ropewalk.errors import ClusterError, InputError

if TYPE_CHECKING:
    from ropewalk.cluster.occupancy import Occupancy
    from ropewalk.cluster.plant import Plant
    from ropewalk.cluster.study import Way
    from ropewalk.cluster.timeline import JobRecord, Timeline


@about_a_cluster
def explain_command(
    jobs: Path | None = typer.Argument(None, metavar="[JOBS]", help="A trace, to ask about one of its jobs."),
    job: str | None = typer.Option(None, help="The job of the trace; without a trace, a name for the new one."),
    gpus: int | None = typer.Option(None, min=1, help="Without a trace: GPUs that it wants."),
    state: Path | None = STATE,
    isolate: str = ISOLATE_ONE,
    at: str | None = typer.Option(None, help="When to look, such as 5000s; when it arrived unless given."),
    queue: str = QUEUE,
    backfill: bool = BACKFILL,
    backfill_rule: str = BACKFILL_RULE,
    seed: int = SEED,
    trace_format: str | None = TRACE_FORMAT,
    first: int | None = FIRST,
    largest: int | None = LARGEST,
    prepare: bool = PREPARE,
    load: float | None = LOAD,
    iteration_time: str | None = ITERATION_TIME,
    circuit_delay: str = CIRCUIT_DELAY,
    json: bool = JSON,
    *,
    cluster: PlantOptions,
) -> None:
    """Why one job waits: too few GPUs, too few whole servers, or no common spines, and which spines block it.

    Example: `ropewalk cluster explain jobs.csv --job job17 --fabric leaf-spine:64x32x32 --isolate vclos`
    Example: `ropewalk cluster explain --state now.json --gpus 128 --fabric leaf-spine:64x32x32`
    """
    way, plant = way_named(isolate), plant_of(cluster)
    if jobs is None:
        if gpus is None:
            raise InputError("explain needs a job: give a trace and --job, or --gpus with --state")
        now = read_state(way, plant, state)
        name = job or _new_name(now)
        document = describe(now.plant, request(way, now, name, gpus), name, gpus)
    else:
        if job is None:
            raise InputError(f"explain needs a job of {jobs}: give --job NAME")
        if state is not None or gpus is not None:
            raise InputError("--state and --gpus are for questions without a trace: leave them or the trace out")
        conditions = conditions_of(queue, backfill_rule if backfill else None, seed, circuit_delay)
        asked = TraceOptions(jobs, trace_format, first, largest, prepare, load, seed, iteration_time)
        with progress_bar() as bar:
            task = bar.add_task("replaying", total=None)
            listed, _ = read_jobs(asked, plant)
            if job not in {one.name for one in listed}:
                some = ", ".join(one.name for one in listed[:5])
                raise ClusterError(f"{jobs} has no job {job!r}: name one of its jobs, such as {some}")
            bar.update(task, total=len(listed))
            from ropewalk.cluster.study import study

            found = study(
                plant, listed, [way], conditions,
                tell=lambda name, done, total, now_s: bar.update(task, completed=done),
            )  # fmt: skip
        document = _of_trace(way, plant, found.timelines[0], job, at)
    if json:
        print_json(document)
    else:
        _print(document)


def _new_name(now: Occupancy) -> str:
    """A name that nobody has."""
    return next(name for number in count() if (name := f"new{number or ''}") not in now.jobs)


def _of_trace(way: Way, plant: Plant, timeline: Timeline, name: str, at: str | None) -> dict[str, Any]:
    """What became of a job of a replay, and what stood in its way at a moment."""
    from ropewalk import units
    from ropewalk.cluster.study import state_at

    refused = next((one for one in timeline.refused if one.name == name), None)
    if refused is not None:
        return {
            "job": name, "gpus": refused.gpus, "plant": plant.name, "placed": False, "never": True,
            "reason": "network-fragmentation", "explanation": refused.explanation, "blocking_spines": [],
        }  # fmt: skip
    record = next(one for one in timeline.jobs if one.name == name)
    when = record.arrival_s if at is None else units.seconds(at)
    if not record.arrival_s <= when <= record.finish_s:
        raise InputError(
            f"job {name!r} is there from {record.arrival_s:g} s to {record.finish_s:g} s: give --at between the two"
        )
    # Jobs that started at this very moment after looking at the same state may have come before it in the queue.
    now = state_at(way, plant, timeline, when, without=name)
    document = describe(now.plant, way.allocate(now, name, record.gpus), name, record.gpus)
    ahead = _ahead(timeline, record, when)
    return document | {
        "at_s": when,
        "ahead_in_queue": ahead,
        "arrival_s": record.arrival_s,
        "start_s": record.start_s,
        "finish_s": record.finish_s,
        "waited_s": dict(record.waited_s),
        "main_reason": record.main_reason,
    }


def _ahead(timeline: Timeline, record: JobRecord, when: float) -> list[str]:
    """Jobs that wait at that moment and start before this one."""
    waiting = [one for one in timeline.jobs if one.arrival_s <= when < one.start_s and one.start_s <= record.start_s]
    return [
        one.name for one in sorted(waiting, key=lambda one: (one.start_s, one.arrival_s)) if one.name != record.name
    ]


def _print(document: dict[str, Any]) -> None:
    from ropewalk.report.cluster_words import duration, reason

    say = console().print
    name = document["job"]
    if document["placed"]:
        ahead = document.get("ahead_in_queue") or []
        verdict = f"could start, but waits behind {len(ahead)} others" if ahead else "can start"
        say(f"{name} ({document['gpus']} GPUs) {verdict}", style="bold", soft_wrap=True)
        if ahead:
            say(f"ahead in the queue: {', '.join(ahead[:8])}{' …' if len(ahead) > 8 else ''}", soft_wrap=True)
    else:
        never = ", and it can never start here" if document["never"] else ""
        say(
            f"{name} ({document['gpus']} GPUs) waits: {reason(document['reason'])}{never}", style="bold", soft_wrap=True
        )
        say(document["explanation"], soft_wrap=True)
        if document["blocking_spines"]:
            say(f"blocking spines: {', '.join(document['blocking_spines'])}", soft_wrap=True)
    if "waited_s" in document:
        waits = sorted(document["waited_s"].items(), key=lambda pair: -pair[1])
        parts = ", ".join(f"{reason(why)} {duration(seconds)}" for why, seconds in waits if seconds) or "nothing"
        say(
            f"arrived at {duration(document['arrival_s'])}, started at {duration(document['start_s'])}, done at "
            f"{duration(document['finish_s'])}; waited for: {parts}",
            soft_wrap=True,
        )
