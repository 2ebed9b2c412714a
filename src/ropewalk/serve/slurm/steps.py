"""What the bridge does to make the controller and Slurm agree: each step is safe to repeat and to lose half-way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ropewalk.serve.slurm.mark import Mark
from ropewalk.serve.slurm.queue import SlurmJob
from ropewalk.serve.slurm.request import JobRequest

Outcome = Literal["done", "cancelled", "failed", "lost"]


@dataclass(frozen=True)
class Finish:
    """End a job of the controller: Slurm no longer runs it."""

    job: str
    outcome: Outcome
    why: str


@dataclass(frozen=True)
class Attach:
    """Write down which Slurm job a job of the controller is."""

    job: str
    slurm: SlurmJob


@dataclass(frozen=True)
class Remark:
    """Change the comment of a Slurm job and nothing else."""

    slurm: SlurmJob
    mark: Mark


@dataclass(frozen=True)
class HoldInSlurm:
    """Keep a pending Slurm job from starting, without nodes of its own."""

    slurm: SlurmJob
    mark: Mark


@dataclass(frozen=True)
class PutBack:
    """Give the servers of a job back and queue it again: Slurm does not start it there."""

    job: str
    why: str


@dataclass(frozen=True)
class Take:
    """Adopt a job that Slurm runs on servers which the controller thinks free, or given to jobs that do not run."""

    slurm: SlurmJob
    servers: tuple[str, ...]
    displaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Start:
    """Tell Slurm the servers of a held job and release it."""

    job: str
    slurm: SlurmJob
    mark: Mark


@dataclass(frozen=True)
class Enrol:
    """Ask the controller for servers for a job that waits in Slurm."""

    slurm: SlurmJob
    request: JobRequest
    task: int | None = None
    """Of a job array: the task that is split off."""


@dataclass(frozen=True)
class LetGo:
    """Leave a job to Slurm and say why in its comment; a hold of ours ends."""

    slurm: SlurmJob
    why: str


@dataclass(frozen=True)
class CancelInSlurm:
    """Cancel a Slurm job, because somebody cancelled it in the controller."""

    slurm: SlurmJob


Step = Finish | Attach | Remark | HoldInSlurm | PutBack | Take | Start | Enrol | LetGo | CancelInSlurm

WORDS: dict[type[Step], str] = {
    Finish: "finish",
    Attach: "attach",
    Remark: "remark",
    HoldInSlurm: "hold",
    PutBack: "putback",
    Take: "take",
    Start: "start",
    Enrol: "enrol",
    LetGo: "letgo",
    CancelInSlurm: "cancel",
}
"""What metrics and logs call them."""


def told(step: Step) -> dict[str, str]:
    """Which jobs a step is about, for a line of the log."""
    found = {}
    if isinstance(step, Finish | Attach | PutBack | Start):
        found["job"] = step.job
    if not isinstance(step, Finish | PutBack):
        found["external"] = step.slurm.external
    if isinstance(step, Finish | PutBack | LetGo):
        found["note"] = step.why
    return found
