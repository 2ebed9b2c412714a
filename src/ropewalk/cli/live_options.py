"""Whom live commands speak to: a service, or a state file that stands for one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ropewalk.cli.cluster_plant import PlantOptions, plant_of
from ropewalk.documents.numbers import is_count
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.serve.client import Client, Reply
    from ropewalk.serve.state_file import StateFile

WHOM = "The service"
QUEUED, NEVER = 3, 4
"""Exit codes: the job waits; it can never start here."""

SERVICE = typer.Option(
    None, metavar="URL", envvar="ROPEWALK_SERVICE", show_envvar=False, rich_help_panel=WHOM,
    help="http://127.0.0.1:8787, https://… or unix:/path/of.sock.  [default: $ROPEWALK_SERVICE]",
)  # fmt: skip
STATE = typer.Option(
    None, metavar="FILE", rich_help_panel=WHOM,
    help="A state file instead of a service: it holds the cluster, its jobs, the queue and the history.",
)  # fmt: skip
TOKEN_FILE = typer.Option(
    None, metavar="FILE", rich_help_panel=WHOM,
    help="File with the token, readable by its owner only (chmod 600).  [default: the token in $ROPEWALK_TOKEN]",
)  # fmt: skip


@dataclass(frozen=True)
class LiveOptions:
    """What was typed about whom to ask."""

    service: str | None
    state: Path | None
    token_file: Path | None

    def answers(self) -> bool:
        """Is there a service, or a state file that stands for one?"""
        if self.state is None:
            return self.service is not None
        from ropewalk.serve.state_file import is_controllers

        return is_controllers(self.state)

    def open(
        self, cluster: PlantOptions | None = None, settings: Mapping[str, str] | None = None
    ) -> Client | StateFile:
        """Who answers; a state file that does not exist yet is of the cluster in `cluster`."""
        described = cluster is not None and cluster != PlantOptions()
        if self.state is not None:
            from ropewalk.serve.state_file import StateFile

            if self.service not in (None, os.environ.get("ROPEWALK_SERVICE")):
                raise InputError("--service and --state both say whom to ask: give one of them")
            plant = (lambda: plant_of(cluster)) if cluster is not None and described else None
            return StateFile(self.state, plant, settings or {})
        from ropewalk.serve.client import client_of

        whom = client_of(self.service, token_file=self.token_file)
        if described or settings:
            raise InputError(
                f"options of the cluster, --policy and --queue are for a new --state FILE, and {whom.where} has a "
                "cluster: leave them out (`ropewalk cluster policy` changes its policy)"
            )
        return whom


def asked(whom: Client | StateFile, method: str, path: str, body: dict[str, Any] | None = None, **more: Any) -> Reply:
    """The answer; a refusal is an error, but for a job that can never start, which has an exit code of its own."""
    from ropewalk.serve.client import raise_refused

    reply = whom.ask(method, path, body, **more)
    error = reply.error
    if error is not None and error.get("code") == "impossible":
        typer.echo(f"ropewalk: {error['message']}" + (f": {error['remedy']}" if error.get("remedy") else ""), err=True)
        raise typer.Exit(NEVER)
    if reply.status >= 400:
        raise_refused(reply, whom.where)
    return reply


def job_named(whom: Client | StateFile, text: str) -> str:
    """The id of a job that is meant by id or by name; of jobs that share a name one must be picked by id."""
    if text[:1] == "j" and is_count(text[1:]):
        return text
    found = asked(whom, "GET", "/v1/jobs", query={"name": text, "state": "live"}).document["jobs"]
    if len(found) == 1:
        return str(found[0]["id"])
    if found:
        ids = ", ".join(one["id"] for one in found[:8])
        raise InputError(f"{len(found)} jobs are called {text!r}: give one of the ids {ids}")
    raise InputError(f"there is no waiting or running job {text!r}: `ropewalk cluster status` lists them")
