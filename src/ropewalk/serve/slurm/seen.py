"""The controller and Slurm as the bridge sees both at one moment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from ropewalk.serve.slurm.queue import SlurmJob


@dataclass(frozen=True)
class Ours:
    """An active job as the controller has it; one without a token is no job of Slurm's."""

    id: str
    state: Literal["pending", "running"]
    user: str = ""
    since: float = 0.0
    """When it was submitted, or started."""
    servers: tuple[str, ...] = ()
    """In rank order; empty while it is pending."""
    token: str = ""
    external: str = ""
    array: int = 0
    """The job array that it is a task of."""

    @property
    def slurms(self) -> bool:
        return bool(self.token)


@dataclass(frozen=True)
class Seen:
    """Both sides; Slurm was read first, so a job that the controller took since then may be missing in it."""

    slurm: Sequence[SlurmJob]
    ours: Sequence[Ours]
    servers: Collection[str]
    """Of the plant."""
    now: float
    cancelled: Collection[str] = frozenset()
    """Tokens of jobs that somebody cancelled in the controller."""
    missing_before: Collection[str] = frozenset()
    """Jobs of the controller that Slurm did not know in the round before."""


@dataclass(frozen=True)
class Patience:
    """How long each side may take."""

    unbound_s: float = 30.0
    """A submission that never became a Slurm job gives its servers back after this time."""
    start_s: float = 30.0
    """A job that Slurm does not start on its servers is queued again after this time."""
