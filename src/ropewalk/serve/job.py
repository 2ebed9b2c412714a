"""A job as the controller keeps it: what was asked, where it stands, what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ropewalk.serve.speed import MeasuredSpeed, measured_of
from ropewalk.tenancy.allocation import Allocation

JobState = Literal["pending", "running", "ended"]


@dataclass(frozen=True)
class ServedJob:
    """One version of a job; every change makes a new one."""

    number: int
    name: str
    gpus: int
    submitted_at: float
    user: str = ""
    """Whose it is, by what was said when it was submitted: for people, not for rights."""
    owner: str = ""
    """Who has submitted or adopted it (the name of a token and its id): a role that is bound to its own jobs may change
    it. Empty where nobody was asked, as in a state file."""
    state: JobState = "pending"
    version: int = 1
    """Goes up by one with every operation that changes the job."""
    outcome: str | None = None
    """Of an ended job: done, cancelled, failed or lost."""
    note: str = ""
    """Why it ended or is held, in words."""
    expected_s: float | None = None
    deadline_s: float | None = None
    """Unix time by which it should be done."""
    priority: float = 0.0
    requeue: bool = False
    servers: tuple[str, ...] = ()
    """The servers it insists on; empty where the controller chooses."""
    labels: dict[str, str] = field(default_factory=dict)
    external: str | None = None
    held: bool = False
    managed: bool = True
    """False where it runs outside of what the controller has given: its links may be shared with anybody."""
    degraded: bool = False
    """It has lost links that were its own and runs on without all of them."""
    again: bool = False
    """It was stopped by a failure and stands before everybody else."""
    expires_at: float | None = None
    """Unless it is bound by then it ends as lost."""
    started_at: float | None = None
    ended_at: float | None = None
    restarts: int = 0
    generation: int = 0
    """Counts its allocations: rules carry it, so that those of an earlier one are told apart."""
    ran_on: dict[str, Any] | None = None
    """Where an ended job ran last, by the names of the plant."""
    promised_step_s: float | None = None
    """Seconds per step that its plan predicts for its GPUs."""
    measured: tuple[MeasuredSpeed, ...] = ()
    """The latest of what it has reported about its speed."""
    reports: int = 0
    """How often it has."""
    slow: bool = False
    """Are its steps clearly longer than promised?"""
    allocation: Allocation | None = None
    """What it holds while it runs."""
    releasing: tuple[tuple[int, Allocation], ...] = ()
    """(generation, allocation) whose links stay taken until their rules are gone."""

    @property
    def id(self) -> str:
        return f"j{self.number}"

    @property
    def seq(self) -> int:
        """Its place in the queue among equals."""
        return self.number

    @property
    def arrival_s(self) -> float:
        """What orders of a queue call the time of submission."""
        return self.submitted_at

    @property
    def live(self) -> bool:
        """Does it wait, run, or keep links that are being released?"""
        return self.state != "ended" or bool(self.releasing)

    @property
    def waits_in_line(self) -> bool:
        return self.state == "pending" and not self.held

    @property
    def expected_end(self) -> float | None:
        """When a running job should be done; None where nobody has said."""
        if self.expected_s is None or self.started_at is None:
            return None
        return self.started_at + self.expected_s

    def as_document(self) -> dict[str, Any]:
        """Everything, as the store keeps it; what has its usual value is left out."""
        document: dict[str, Any] = {}
        for name, usual in _USUAL:
            value = getattr(self, name)
            if value != usual:
                document[name] = value
        if self.allocation is not None:
            document["allocation"] = _columns(self.allocation)
        if self.releasing:
            document["releasing"] = [(number, _columns(held)) for number, held in self.releasing]
        return document

    def changed(self, changes: dict[str, Any]) -> ServedJob:
        """The same job with other values of some fields; what `dataclasses.replace` does, in a fifth of its time."""
        new = object.__new__(ServedJob)
        new.__dict__.update(self.__dict__)
        new.__dict__.update(changes)
        return new

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> ServedJob:
        given = dict(document)
        if "servers" in given:
            given["servers"] = tuple(given["servers"])
        if "measured" in given:
            given["measured"] = measured_of(given["measured"])
        if "allocation" in given:
            given["allocation"] = Allocation.from_document(given["allocation"])
        if "releasing" in given:
            given["releasing"] = tuple((number, Allocation.from_document(held)) for number, held in given["releasing"])
        return cls(**given)


def _columns(held: Allocation) -> dict[str, Any]:
    """An allocation as it is: tuples become lists when they are encoded, and copying them first would take longer."""
    return {name: getattr(held, name) for name in _COLUMNS}


_COLUMNS = tuple(one.name for one in fields(Allocation))
_REQUIRED = object()
_USUAL = tuple(
    (one.name, {} if one.name == "labels" else one.default if one.name not in ("number", "name") else _REQUIRED)
    for one in fields(ServedJob)
    if one.name not in ("allocation", "releasing")
)
"""Fields of a document with their usual values, in their order."""
