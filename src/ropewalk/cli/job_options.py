"""What can be said about a job of a live cluster, typed once for `submit` and `what-if`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ropewalk import units
from ropewalk.cli.cluster_speed import promised_step_s
from ropewalk.errors import InputError

GPUS = typer.Option(..., min=1, help="Number of GPUs.")
USER = typer.Option("", help="Owner of the job.")
EXPECTED = typer.Option(None, help="Expected run time, such as 2h or 90min.")
PRIORITY = typer.Option(0.0, help="Priority; higher runs first.")
SERVERS = typer.Option(None, help="Run on exactly these servers (comma-separated).")
POLICY = typer.Option(
    None, help="For a new state file: isolation policy ({policies}).  [default: vclos]", rich_help_panel="The service"
)
QUEUE = typer.Option(
    None, help="For a new state file: fifo, smallest, edf or shortest.  [default: fifo]", rich_help_panel="The service"
)
DEADLINE = typer.Option(None, help="Deadline, from now.")
REQUEUE = typer.Option(False, "--requeue", help="Requeue at the head of the queue after a failure, instead of ending.")
LABEL = typer.Option([], metavar="KEY=VALUE", help="May be repeated.")
PLAN = typer.Option(
    None, metavar="FILE", help="The plan of the job: its speed reports are compared with the predicted step time."
)
HOLD = typer.Option(False, "--hold", help="Submit the job held, until it is released.")


@dataclass(frozen=True)
class WantedOptions:
    """What a job would need, and the settings of a cluster that begins with it."""

    gpus: int
    user: str
    expected: str | None
    priority: float
    servers: str | None
    policy: str | None
    queue: str | None

    def settings(self) -> dict[str, str]:
        """What was said about the cluster, by names of its settings."""
        said = {"policy": self.policy, "queue": self.queue}
        return {name: value for name, value in said.items() if value is not None}

    def body(self, name: str) -> dict[str, Any]:
        """The job as the service is told about it; what has its usual value is left out."""
        body: dict[str, Any] = {"name": name, "gpus": self.gpus}
        if self.user:
            body["user"] = self.user
        if self.expected is not None:
            body["expected_s"] = units.seconds(self.expected)
        if self.priority:
            body["priority"] = self.priority
        if self.servers is not None:
            body["servers"] = [one.strip() for one in self.servers.split(",") if one.strip()]
        return body


@dataclass(frozen=True)
class JobOptions(WantedOptions):
    """All about a job that is submitted."""

    deadline: str | None
    requeue: bool
    label: list[str]
    plan: Path | None
    hold: bool

    def body(self, name: str) -> dict[str, Any]:
        body = super().body(name)
        if self.deadline is not None:
            body["deadline_s"] = units.seconds(self.deadline)
        if self.requeue:
            body["requeue"] = True
        if self.label:
            body["labels"] = dict(map(_label, self.label))
        if self.plan is not None:
            body["promised_step_s"] = promised_step_s(self.plan, self.gpus)
        if self.hold:
            body["hold"] = True
        return body


def _label(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise InputError(f"--label {text!r} has no value: write KEY=VALUE")
    return key, value
