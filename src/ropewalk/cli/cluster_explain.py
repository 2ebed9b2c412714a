"""`ropewalk cluster explain`: why does this job wait?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ropewalk.cli.cluster_plant import ISOLATE_OF_STATE, PlantOptions, plant_for, read_state
from ropewalk.cli.cluster_screen import print_warnings, some
from ropewalk.cli.cluster_state import describe, explained, policy_for, request
from ropewalk.cli.cluster_trace import ReplayOptions, conditions_of, read_jobs
from ropewalk.cli.idle_options import given, refuse
from ropewalk.cli.live_options import LiveOptions, asked, job_named
from ropewalk.cli.live_screen import print_explained
from ropewalk.cli.option_groups import names_of, with_options
from ropewalk.cli.screen import JSON, console, print_json, shown_progress
from ropewalk.errors import ClusterError, InputError
from ropewalk.files import is_there

if TYPE_CHECKING:
    from ropewalk.tenancy.occupancy import Occupancy
    from ropewalk.tenancy.plant import Plant
    from ropewalk.tenancy.policies import Policy
    from ropewalk.tenancy.question import Conditions
    from ropewalk.tenancy.record import JobRecord
    from ropewalk.tenancy.timeline import Timeline


OF_TRACES = (*names_of(ReplayOptions), "at")
"""Options that only a replay of a trace knows."""
OF_QUESTIONS = ("job", "gpus", "isolate", *names_of(PlantOptions))
"""Options of a new job: a job that a service or a state file knows has a cluster and a policy."""


@with_options
def explain_command(
    context: typer.Context,
    jobs: Path | None = typer.Argument(
        None, metavar="[JOB|TRACE]", help="A job of the service or state file, or a trace (with --job)."
    ),
    job: str | None = typer.Option(None, help="The job of the trace; without a trace, a name for the new job."),
    gpus: int | None = typer.Option(None, min=1, help="Without a job or a trace: GPUs requested by a new job."),
    isolate: str | None = ISOLATE_OF_STATE,
    at: str | None = typer.Option(None, help="Point in time, such as 5000s.  [default: the job's arrival]"),
    json: bool = JSON,
    *,
    live: LiveOptions,
    replay: ReplayOptions,
    cluster: PlantOptions,
) -> None:
    """Explain why a job waits: too few GPUs, too few whole servers, or no common spines, and what blocks them.

    Example: `ropewalk cluster explain train --service http://127.0.0.1:8787`

    Example: `ropewalk cluster explain jobs.csv --job job17 --fabric leaf-spine:64x32x32 --isolate vclos`

    Example: `ropewalk cluster explain --state now.json --gpus 128 --fabric leaf-spine:64x32x32`
    """
    if jobs is not None and not is_there(jobs) and live.answers():
        refuse(given(context, (*OF_TRACES, *OF_QUESTIONS)), f"{jobs} is a job that is known already: leave it out")
        whom = live.open()
        why = asked(whom, "GET", f"/v1/jobs/{job_named(whom, str(jobs))}/explain").document
        print_json(why) if json else print_explained(why)
        return
    state = live.state
    policy, plant = policy_for(isolate, state), plant_for(cluster, state)
    if jobs is None:
        if gpus is None:
            raise InputError("explain needs a job: give a trace and --job, or --gpus with --state")
        refuse(given(context, OF_TRACES), "it belongs to a replay: leave it out, or give a trace")
        now = read_state(policy, plant, state)
        name = job or _new_name(now)
        document = describe(now.plant, request(policy, now, name, gpus), name, gpus, policy)
    else:
        if job is None:
            raise InputError(f"explain needs a job of {jobs}: give --job NAME")
        if state is not None or gpus is not None:
            raise InputError("--state and --gpus apply without a trace only: remove them, or the trace")
        conditions = conditions_of(replay, plant)
        with shown_progress("reading jobs") as progress:
            read = read_jobs(jobs, replay, plant)
            listed = read.jobs
            if job not in {one.name for one in listed}:
                some = ", ".join(one.name for one in listed[:5])
                raise ClusterError(f"{jobs} has no job {job!r}: name one of its jobs, such as {some}")
            from ropewalk.tenancy.question import ClusterQuestion
            from ropewalk.tenancy.study import answer

            found = answer(ClusterQuestion(plant, listed, [policy], conditions), progress)
        document = _Story(policy, plant, found.timelines[0], conditions).of(job, at) | {"warnings": read.warnings}
    if json:
        print_json(document)
    else:
        print_warnings(document.get("warnings", ()))
        _print(document)


def _new_name(now: Occupancy) -> str:
    """A name that nobody has."""
    return next(name for number in count() if (name := f"new{number or ''}") not in now.jobs)


@dataclass(frozen=True)
class _Story:
    """A replay, to ask what became of its jobs and what stood in their way."""

    policy: Policy
    plant: Plant
    timeline: Timeline
    conditions: Conditions

    def of(self, name: str, at: str | None) -> dict[str, Any]:
        """One job at a moment: where it runs, or what it and the head of the queue lack; and all that it waited for."""
        from ropewalk import units
        from ropewalk.tenancy.other_sizes import sizes_that_start

        refused = next((one for one in self.timeline.refused if one.name == name), None)
        if refused is not None:
            return {
                "job": name, "gpus": refused.gpus, "plant": self.plant.name, "placed": False, "never": True,
                "reason": refused.reason, "explanation": refused.explanation, "blocking_spines": [],
                "sizes_that_start": list(sizes_that_start(self.policy.make, self._plant(), refused.gpus)),
            }  # fmt: skip
        record = self.timeline.job(name)
        assert record is not None  # the caller has looked it up
        when = record.arrival_s if at is None else units.seconds(at)
        if not record.arrival_s <= when <= record.finish_s:
            raise InputError(
                f"job {name!r} is in the system from {record.arrival_s:g} s to {record.finish_s:g} s: give --at "
                "between the two"
            )
        held = record.place_at(when)
        head = self.timeline.head_at(when)
        return (
            (
                self._asked(record, when)
                if held is None
                else describe(self._plant(), held, name, record.gpus, self.policy)
            )
            | {"at_s": when, "running": held is not None, "ahead_in_queue": self._ahead(record, when)}
            | {"head_of_queue": None if head is None else self._asked(head, when)}
            | {"when_it_was_head": self._as_head(record)}
            | {
                "arrival_s": record.arrival_s,
                "start_s": record.start_s,
                "finish_s": record.finish_s,
                "restarts": record.restarts,
                "waited_s": dict(record.waited_s),
                "main_reason": record.main_reason,
            }
        )

    def _plant(self) -> Plant:
        return self.policy.plant(self.plant)

    def _asked(self, record: JobRecord, when: float) -> dict[str, Any]:
        """What the allocator says of a job at a moment, with everybody else where they are then."""
        from ropewalk.tenancy.study import state_at

        now = state_at(
            self.policy, self.plant, self.timeline, when, without=record.name, failures=self.conditions.failures
        )
        got = self.policy.make(now, record.name, record.gpus)
        return describe(now.plant, got, record.name, record.gpus, self.policy)

    def _as_head(self, record: JobRecord) -> list[dict[str, Any]]:
        """What it lacked when it was tried and could not start: the first moment of every reason, in order."""
        first = {one.reason: one for one in reversed(self.timeline.blocked) if one.job == record.name}
        tries = sorted(first.values(), key=lambda one: one.at_s)
        return [{"at_s": one.at_s} | self._asked(record, one.at_s) for one in tries]

    def _ahead(self, record: JobRecord, when: float) -> list[str]:
        """Jobs that wait at that moment and start before this one."""
        mine = record.next_start_s(when)
        if mine is None:
            return []
        starts = [(one.next_start_s(when), one.arrival_s, one.name) for one in self.timeline.jobs]
        waiting = sorted((start, came, name) for start, came, name in starts if start is not None and start <= mine)
        return [name for _, _, name in waiting if name != record.name]


def _print(document: dict[str, Any]) -> None:
    from ropewalk.report.cluster_words import duration, reason

    say = console().print
    name, ahead, head = _sized(document), document.get("ahead_in_queue") or [], document.get("head_of_queue")
    if document.get("running"):
        _bold(f"{name} runs on {some(document['leafs'])} at {duration(document['at_s'])}")
    elif document["placed"]:
        jobs = f"{len(ahead)} job{'s' * (len(ahead) != 1)} ahead of it"
        verdict = f"could start, but waits behind {jobs}" if ahead else "can start"
        _bold(f"{name} {verdict}")
    else:
        verdict = "can never start here" if document["never"] else "waits"
        _bold(f"{name} {verdict}: {reason(document['reason'])}")
        _lack(document)
    if ahead:
        say(f"ahead in the queue: {some(ahead)}", soft_wrap=True)
    if head is not None and head["job"] != document["job"] and not head["placed"] and not document.get("running"):
        say(f"the head of the queue is {_sized(head)}: {reason(head['reason'])}", soft_wrap=True)
        _lack(head)
    for one in document.get("when_it_was_head", ()):
        if not one["placed"] and one["at_s"] != document["at_s"]:
            say(f"as head of the queue, from {duration(one['at_s'])}: {reason(one['reason'])}", soft_wrap=True)
            _lack(one)
    if "waited_s" in document:
        waits = sorted(document["waited_s"].items(), key=lambda pair: -pair[1])
        parts = ", ".join(f"{reason(why)} {duration(seconds)}" for why, seconds in waits if seconds) or "nothing"
        again = (
            f" after {document['restarts']} restart{'s' * (document['restarts'] != 1)}" if document["restarts"] else ""
        )
        say(
            f"arrived at {duration(document['arrival_s'])}, started at {duration(document['start_s'])}{again}, done at "
            f"{duration(document['finish_s'])}; waited for: {parts}",
            soft_wrap=True,
        )


def _sized(document: dict[str, Any]) -> str:
    return f"{document['job']} ({document['gpus']} GPU{'s' * (document['gpus'] != 1)})"


def _bold(text: str) -> None:
    console().print(text, style="bold", soft_wrap=True)


def _lack(document: dict[str, Any]) -> None:
    """What prevents a job from starting."""
    say = console().print
    say(f"  {explained(document)}", soft_wrap=True)
    if document["blocking_spines"]:
        say(f"  blocking spines: {some(document['blocking_spines'])}", soft_wrap=True)
