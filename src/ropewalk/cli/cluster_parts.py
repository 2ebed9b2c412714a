"""`ropewalk cluster drain|restore|fail|repair|policy|events`: the cluster itself, for people who operate it."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from ropewalk.cli import live_screen
from ropewalk.cli.live_options import LiveOptions, asked
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, print_json
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.serve.client import Client
    from ropewalk.serve.state_file import StateFile

PARTS = typer.Argument(metavar="PART…", help="leaf:NAME, spine:NAME, server:NAME or link:LEAF-SPINE.")
NOTE = typer.Option("", help="Reason, for the history.")
HEALED = "dedicated links again"
"""What jobs have that were degraded while parts were out of service."""


def _of_parts(path: str, word: str, about: str, concerned: str = "jobs on them") -> Callable[..., None]:
    """A command that says something about parts."""

    def command(parts: list[str] = PARTS, note: str = NOTE, json: bool = JSON, *, live: LiveOptions) -> None:
        found = asked(live.open(), "POST", path, {"parts": parts, "note": note}).document
        if json:
            print_json(found)
        else:
            live_screen.print_parts(found, word, concerned)

    command.__doc__ = about
    command.__name__ = path.rpartition("/")[2]
    return with_options(command)


drain_command = _of_parts(
    "/v1/drain", "drained",
    "Drain parts: they take no new jobs; running jobs continue.\n\n"
    "Example: `ropewalk cluster drain server:server7 link:leaf3-spine2 --note fan`",
)  # fmt: skip
restore_command = _of_parts("/v1/restore", "back in service", "Return drained parts to service.", HEALED)
fail_command = _of_parts(
    "/v1/failures", "failed",
    "Mark parts as failed: jobs that lost links get others where possible; jobs that lost GPUs, or circuits without "
    "replacement, end or are requeued.",
)  # fmt: skip
repair_command = _of_parts("/v1/repairs", "repaired", "Mark failed parts as working again.", HEALED)


@with_options
def policy_command(
    policy: str | None = typer.Argument(None, metavar="[POLICY]", help="One of {policies}."),
    queue: str | None = typer.Option(None, help="fifo, smallest, edf or shortest."),
    backfill: str | None = typer.Option(None, help="none, easy or conservative."),
    json: bool = JSON,
    *,
    live: LiveOptions,
) -> None:
    """Change how jobs share the cluster; without an argument, show it.

    Example: `ropewalk cluster policy vclos --backfill easy`
    """
    whom = live.open()
    given = {"policy": policy, "queue": queue, "backfill": backfill}
    body = {name: value for name, value in given.items() if value is not None}
    if body:
        found = asked(whom, "PUT", "/v1/policy", body).document
    else:
        found = asked(whom, "GET", "/v1/status").document["settings"]
    if json:
        print_json(found)
    else:
        live_screen.print_policy(found)


@with_options
def events_command(
    after: int | None = typer.Option(None, min=0, help="Start after this event; 0 starts at the first."),
    follow: bool = typer.Option(False, "--follow", "-f", help="Follow new events as they happen."),
    limit: int = typer.Option(100, min=1, help="Number of past events; the latest, or those following --after."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object per line."),
    *,
    live: LiveOptions,
) -> None:
    """Show past events, and new ones with --follow.

    Example: `ropewalk cluster events --follow`
    """
    if follow and live.state is not None:
        raise InputError("a state file changes only by commands: --follow is for a service")
    whom = live.open()
    show = (lambda event: typer.echo(json_module.dumps(event))) if json else live_screen.print_event
    last = after
    for event in _latest(whom, limit) if after is None else _past(whom, after, limit):
        show(event)
        last = event["seq"]
    if not follow:
        return
    try:
        for event in whom.events(last or 0):
            show(event)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _latest(whom: Client | StateFile, limit: int) -> list[dict[str, Any]]:
    """The last events; their numbers have no gaps."""
    last = asked(whom, "GET", "/v1/history", query={"latest": "true", "limit": 1}).document["events"]
    return _past(whom, max(0, last[0]["seq"] - limit), limit) if last else []


def _past(whom: Client | StateFile, after: int, limit: int) -> list[dict[str, Any]]:
    """Events of the past, page by page."""
    found: list[dict[str, Any]] = []
    at: int | None = after
    while at is not None and len(found) < limit:
        query = {"after": at, "limit": min(1000, limit - len(found))}
        page = asked(whom, "GET", "/v1/history", query=query).document
        found += page["events"]
        at = page["next"]
    return found
