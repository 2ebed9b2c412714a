"""What live commands print: the cluster, jobs, the queue, reasons."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ropewalk import units
from ropewalk.cli.cluster_screen import some
from ropewalk.cli.cluster_speed import speed_said
from ropewalk.cli.screen import console, print_whole

Document = Mapping[str, Any]
MOST_JOBS = 50


def print_job(job: Document) -> None:
    """One job: its state in bold, then where it is or why it waits."""
    say = console().print
    head = f"{plain(job['name'])} ({job['id']}, {job['gpus']} GPU{'s' * (job['gpus'] != 1)})"
    if job["state"] == "running":
        held = job["allocation"]
        say(f"{head} runs: {_network(held)}", style="bold", soft_wrap=True)
        say(f"servers: {some([plain(one['name']) for one in held['servers']])}", soft_wrap=True)
        say(f"leafs: {some(held['leafs'])}", soft_wrap=True)
        if held["spines"]:
            say(f"spines: {some(held['spines'])}; {held['links']} dedicated links", soft_wrap=True)
        _print_degraded(job)
        _print_speed(job)
    elif job["state"] == "pending":
        say(f"{head} waits", style="bold", soft_wrap=True)
        print_reason(job["reason"])
    else:
        note = f" ({plain(job['note'])})" if job.get("note") else ""
        say(f"{head} is over: {job['outcome']}{note}", style="bold", soft_wrap=True)


def print_reason(reason: Document) -> None:
    """Why a job waits, and what could be done."""
    say = console().print
    say(f"{reason['code']}: {plain(reason['message'])}", soft_wrap=True)
    details = reason.get("details") or {}
    if details.get("ahead"):
        say(f"ahead in the queue: {some(details['ahead'])}", soft_wrap=True)
    if details.get("also"):
        say(f"and alone: {plain(details['also']['message'])}", soft_wrap=True)
    if details.get("out_of_service"):
        say(f"out of service: {some(details['out_of_service'])}", soft_wrap=True)
    if details.get("blocking_spines"):
        say(f"blocking spines: {some(details['blocking_spines'])}", soft_wrap=True)
    if reason.get("earliest_start_s") is not None:
        say(f"earliest start, by expected ends: in {_duration(reason['earliest_start_s'])}")
    if reason.get("remedy"):
        say(f"remedy: {plain(reason['remedy'])}", soft_wrap=True)


def print_what_if(answer: Document) -> None:
    """Would it start, where; else why not, when, and who is in the way."""
    say = console().print
    if answer["would_start"]:
        now = answer["now"]
        say(f"it would start now: {_network(now)}", style="bold")
        say(f"leafs: {some(now['leafs'])}", soft_wrap=True)
        return
    say("it would wait", style="bold")
    print_reason(answer["reason"])
    if answer["in_the_way"]:
        say(f"blocked by: {some(answer['in_the_way'])}", soft_wrap=True)


def print_explained(answer: Document) -> None:
    """Why a job waits."""
    head = f"{plain(answer['name'])} ({answer['id']}, {answer['gpus']} GPU{'s' * (answer['gpus'] != 1)})"
    say = console().print
    if answer["state"] == "pending":
        say(f"{head} waits", style="bold", soft_wrap=True)
        print_reason(answer["reason"])
        if answer.get("in_the_way"):
            say(f"blocked by: {some(answer['in_the_way'])}", soft_wrap=True)
    elif answer["state"] == "running":
        held = answer["allocation"]
        say(f"{head} runs on {some(held['leafs'])}: {_network(held)}", style="bold", soft_wrap=True)
        _print_degraded(answer)
        _print_speed(answer)
    else:
        say(f"{head} is over: {answer['outcome']}", style="bold", soft_wrap=True)


def print_status(status: Document) -> None:
    """The cluster in three lines, and a table of its jobs."""
    say = console().print
    gpus, links, jobs, settings = status["gpus"], status["links"], status["jobs"], status["settings"]
    say(f"{status['plant']}: {gpus['used']} of {gpus['total']} GPUs used, {gpus['free']} free", style="bold")
    say(f"policy {settings['policy']}, queue {settings['queue']}, backfill {settings['backfill']}; "
        f"{links['free']} of {links['total']} links free", soft_wrap=True)  # fmt: skip
    say(jobs_said(jobs))
    for word in ("drained", "failed"):
        if status[word]:
            say(f"{word}: {some(status[word])}", soft_wrap=True)
    if status["live"]:
        _print_jobs(status["live"])
    if status["more"]:
        say(f"and more; --json or GET /v1/jobs lists them (the first {MOST_JOBS} are shown)", style="dim")


def print_queue(queue: Document) -> None:
    say = console().print
    waits = "1 job waits" if queue["length"] == 1 else f"{queue['length']} jobs wait"
    say(f"{waits} ({queue['order']}, backfill {queue['backfill']})", style="bold")
    for place, job in enumerate(queue["waiting"][:MOST_JOBS], 1):
        reason = job["reason"]
        say(f"{place:3}. {plain(job['name'])} ({job['id']}, {job['gpus']} GPUs): {reason['code']}: "
            f"{plain(reason['message'])}", soft_wrap=True)  # fmt: skip
    if queue["length"] > MOST_JOBS:
        say(f"and {queue['length'] - MOST_JOBS} more; --json lists all", style="dim")
    for job in queue["held"][:MOST_JOBS]:
        say(f"held: {plain(job['name'])} ({job['id']}, {job['gpus']} GPUs)", soft_wrap=True)


def print_parts(answer: Document, word: str, concerned: str) -> None:
    """What was done to parts, and which jobs that concerns."""
    say = console().print
    say(f"{word}: {some(answer['parts'])}", style="bold", soft_wrap=True)
    became = answer.get("became", {})
    for job, what in became.items():
        say(f"{job}: {plain(what)}", soft_wrap=True)
    if "failed" in became.values():
        say("failed jobs lost GPUs, or circuits without replacement: submitted with --requeue they wait again instead",
            soft_wrap=True)  # fmt: skip
    others = [job for job in answer["affected"] if job not in became]
    if others:
        say(f"{concerned}: {some(others)}", soft_wrap=True)


def print_policy(settings: Document) -> None:
    chosen = settings.get("settings", settings)
    words = [f"{name} {chosen[name]}" for name in ("policy", "queue", "backfill")]
    words += ["links are kept until their rules are gone"] if chosen["keep_links"] else []
    console().print(", ".join(words), style="bold", soft_wrap=True)
    if settings.get("guarantee"):
        console().print(plain(settings["guarantee"]), soft_wrap=True)
    if settings.get("put_aside"):
        held = settings["put_aside"]
        console().print(f"held, because {'it' if len(held) == 1 else 'they'} can never start under {chosen['policy']}: "
                        f"{some(held)}", soft_wrap=True)  # fmt: skip


def print_event(event: Document) -> None:
    """An event in one line."""
    at = datetime.fromtimestamp(event["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    about = {name: value for name, value in event.items() if name not in ("seq", "at", "kind", "job")}
    who = about.pop("actor", None)
    about |= _changes(about.pop("before", None), about.pop("after", None)) | {"actor": who}
    facts = [f"{name}={_in_line(value)}" for name, value in about.items() if value not in ("", None)]
    console().print(*filter(None, [str(event["seq"]), at, event["kind"], event["job"], *facts]), soft_wrap=True)


def _changes(before: Any, after: Any) -> dict[str, Any]:
    """What has changed, of values or of whole documents.

    >>> _changes({"queue": "fifo", "backfill": "none"}, {"queue": "fifo", "backfill": "easy"})
    {'backfill': 'none->easy'}
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return {name: f"{before.get(name)}->{new}" for name, new in after.items() if before.get(name) != new}
    return {name: value for name, value in (("before", before), ("after", after)) if value is not None}


def _network(held: Document) -> str:
    """How ranks reach each other, and what that promises.

    >>> _network({"stage": "clos", "guarantee": "contention-free"}), _network({"stage": "shared", "guarantee": "none"})
    ('clos, contention-free', 'shared, no guarantee')
    """
    return f"{held['stage']}, {'no guarantee' if held['guarantee'] == 'none' else held['guarantee']}"


def _print_degraded(job: Document) -> None:
    if job.get("degraded"):
        console().print(
            "degraded: it has lost links, and no others were free; it gets dedicated links when parts are repaired or "
            "other jobs end",
            soft_wrap=True,
        )


def _print_speed(job: Document) -> None:
    speed = job.get("speed")
    if speed is None:
        return
    ago = "" if speed["recent_step_s"] is None else f" (reported {_ago(speed['reported_at'])} ago)"
    console().print(f"{speed_said(speed)}{ago}", soft_wrap=True)


def _step_told(speed: Document | None) -> str:
    """A step as it is measured, and how far it is from what was promised."""
    if speed is None or speed["recent_step_s"] is None:
        return ""
    away = "" if speed["slowdown"] is None else f" ({units.show_percent(speed['slowdown'] - 1, 0, signed=True)})"
    return units.show_seconds(speed["recent_step_s"]) + away


def _in_line(value: Any) -> str:
    """
    >>> _in_line(["leaf:a", "leaf:b"]), _in_line("optics failed")
    ('leaf:a,leaf:b', '"optics failed"')
    """
    text = plain(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return f'"{text}"' if " " in text else text


def jobs_said(jobs: Document) -> str:
    """
    >>> jobs_said({"running": 1, "pending": 0})
    '1 job runs, 0 wait'
    >>> jobs_said({"running": 2, "pending": 3, "held": 2})
    '2 jobs run, 1 waits, 2 are held'
    """
    runs = "1 job runs" if jobs["running"] == 1 else f"{jobs['running']} jobs run"
    held = jobs.get("held", 0)
    waiting = jobs["pending"] - held
    kept = f", {held} {'is' if held == 1 else 'are'} held" * bool(held)
    return f"{runs}, {waiting} wait{'s' * (waiting == 1)}{kept}"


def plain(text: str) -> str:
    """Text of other people, without what a terminal would obey.

    >>> plain("a\\x1b[31mb")
    'a?[31mb'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _print_jobs(jobs: list[Document]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    told = any(job.get("speed") for job in jobs)
    for name in ("id", "name", "user", "gpus", "state", "since", *(["step"] if told else []), "where"):
        table.add_column(name, justify="right" if name == "gpus" else "left", no_wrap=True)
    for job in jobs:
        held = job["allocation"]
        where = "" if held is None or job["state"] != "running" else f"{some(held['leafs'])}: {_network(held)}"
        where += ", degraded" if job["degraded"] else ""
        since = job["started_at"] if job["state"] == "running" else job["submitted_at"]
        state = "held" if job["held"] and job["state"] == "pending" else job["state"]
        step = [_step_told(job.get("speed"))] if told else []
        table.add_row(
            job["id"], plain(job["name"]), plain(job["user"]), str(job["gpus"]), state, _ago(since), *step, where
        )
    print_whole(table)


def _ago(at: float | None) -> str:
    """How long ago something was, in whole seconds: jobs are watched by people."""
    return "" if at is None else _duration(round(max(0.0, time.time() - at)))


def _duration(seconds: float) -> str:
    from ropewalk.report.cluster_words import duration

    return duration(seconds)
