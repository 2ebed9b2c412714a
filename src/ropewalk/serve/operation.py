"""What can be asked of the controller: one frozen record per operation, checked when it is made.

>>> from_document({"operation": "submit", "name": "train", "gpus": 64})
Submit(name='train', gpus=64, user='', expected_s=None, deadline_s=None, priority=0.0, requeue=False, servers=(), \
labels={}, external=None, hold=False, expires_s=None, promised_step_s=None)
>>> as_document(End("j4", outcome="failed"))
{'operation': 'end', 'job': 'j4', 'outcome': 'failed', 'note': ''}
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ropewalk.errors import ClusterError, Findings
from ropewalk.records import plain, record
from ropewalk.serve.operation_checks import (
    MOST_STEPS,
    check_parts,
    check_texts,
    find_gpus,
    find_labels,
    find_names,
    find_seconds,
    find_texts,
)

RULE_EVENTS = ("rules-ready", "rule-repaired", "device-failed", "device-answers")
"""What the reconciler tells."""
OUTCOMES = ("done", "cancelled", "failed", "lost")


@dataclass(frozen=True)
class Submit:
    """A job asks for GPUs; it starts at once or waits."""

    name: str
    gpus: int
    user: str = ""
    expected_s: float | None = None
    """How long its user says it runs."""
    deadline_s: float | None = None
    """Seconds from now by which it should be done."""
    priority: float = 0.0
    """Priority; higher runs first."""
    requeue: bool = False
    """After a failure it goes first in line instead of ending."""
    servers: tuple[str, ...] = ()
    """Exactly these servers, by name; the controller's choice where empty."""
    labels: dict[str, str] = field(default_factory=dict)
    external: str | None = None
    """What another scheduler calls it, such as pbs:123."""
    hold: bool = False
    """Submit the job held, until it is released."""
    expires_s: float | None = None
    """Unless it is bound to another scheduler's job within so many seconds, it ends as lost."""
    promised_step_s: float | None = None
    """Seconds per step that its plan predicts on dedicated links; what it reports is compared with it."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, "job")
        find_texts(findings, name=self.name, user=self.user, external=self.external or "")
        find_gpus(findings, self.gpus)
        if not self.name:
            findings.add("it has no name: give one")
        find_seconds(
            findings,
            expected_s=self.expected_s,
            deadline_s=self.deadline_s,
            expires_s=self.expires_s,
            promised_step_s=self.promised_step_s,
        )
        if not math.isfinite(self.priority):
            findings.add(f"priority is {self.priority}: give a number")
        find_names(findings, "servers", self.servers)
        find_labels(findings, self.labels)
        findings.raise_if_any()


@dataclass(frozen=True)
class Adopt:
    """A job that already runs on these servers: its GPUs are taken, and links are reserved where there are any."""

    name: str
    servers: tuple[str, ...]
    gpus: int | None = None
    """All GPUs of its servers unless given."""
    user: str = ""
    expected_s: float | None = None
    """From now on."""
    started_at: float | None = None
    labels: dict[str, str] = field(default_factory=dict)
    external: str | None = None
    requeue: bool = False
    displaces: tuple[str, ...] = ()
    """Jobs that were given its servers and do not run there: they wait again, in the same operation."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, "job")
        find_texts(findings, name=self.name, user=self.user, external=self.external or "")
        find_names(findings, "displaces", self.displaces)
        if not self.name:
            findings.add("it has no name: give one")
        if self.gpus is not None:
            find_gpus(findings, self.gpus)
        if not self.servers:
            findings.add("it names no servers: list those of the job")
        find_names(findings, "servers", self.servers)
        find_seconds(findings, expected_s=self.expected_s)
        if self.started_at is not None and not math.isfinite(self.started_at):
            findings.add(f"started_at is {self.started_at}: give a time or leave it out")
        find_labels(findings, self.labels)
        findings.raise_if_any()


@dataclass(frozen=True)
class End:
    """A job is over; one that is over already stays as it is."""

    job: str
    outcome: str = "done"
    note: str = ""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, f"end of {self.job}")
        find_texts(findings, job=self.job, note=self.note)
        if self.outcome not in OUTCOMES:
            findings.add(f"there is no outcome {self.outcome!r}: use one of {', '.join(OUTCOMES)}")
        findings.raise_if_any()


@dataclass(frozen=True)
class Cancel:
    """Cancel a waiting or running job."""

    job: str
    note: str = ""

    def __post_init__(self) -> None:
        check_texts("cancel", job=self.job, note=self.note)


@dataclass(frozen=True)
class Resize:
    """A running job gets another number of GPUs and keeps those it has where that is possible."""

    job: str
    gpus: int
    keep_all: bool = False
    """Refuse rather than move to other GPUs."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, f"resize of {self.job}")
        find_texts(findings, job=self.job)
        find_gpus(findings, self.gpus)
        findings.raise_if_any()


@dataclass(frozen=True)
class Hold:
    """Hold a waiting job until it is released."""

    job: str
    note: str = ""

    def __post_init__(self) -> None:
        check_texts("hold", job=self.job, note=self.note)


@dataclass(frozen=True)
class Release:
    """Release a held job to its place in the queue."""

    job: str

    def __post_init__(self) -> None:
        check_texts("release", job=self.job)


@dataclass(frozen=True)
class Requeue:
    """A running job gives back what it holds and waits, first in line; one that waits already stays as it is."""

    job: str
    note: str = ""

    def __post_init__(self) -> None:
        check_texts("requeue", job=self.job, note=self.note)


@dataclass(frozen=True)
class Bind:
    """A job is known to another scheduler by this name; a reservation no longer expires."""

    job: str
    external: str

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, f"binding of {self.job}")
        find_texts(findings, job=self.job, external=self.external)
        if not self.external:
            findings.add("it is empty: give the job's name in the other scheduler, such as pbs:123")
        findings.raise_if_any()


@dataclass(frozen=True)
class Progress:
    """A running job says how far it is and how long its latest steps took."""

    job: str
    step: int
    """Steps of training that are done."""
    seconds: float
    """How long the latest of them took together."""
    steps: int = 1
    """How many those are."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, f"progress of {self.job}")
        find_texts(findings, job=self.job)
        find_seconds(findings, seconds=self.seconds)
        if not 1 <= self.steps <= self.step <= MOST_STEPS:
            findings.add(f"{self.steps} steps up to step {self.step}: give 1 <= steps <= step <= {MOST_STEPS}")
        findings.raise_if_any()


@dataclass(frozen=True)
class _OfParts:
    parts: tuple[str, ...]
    """Such as server:server7 or link:leaf3-spine2."""
    note: str = ""

    def __post_init__(self) -> None:
        check_parts(type(self).__name__.lower(), self.parts, self.note)


@dataclass(frozen=True)
class Drain(_OfParts):
    """Drain parts: they take no new jobs; running jobs continue."""


@dataclass(frozen=True)
class Restore(_OfParts):
    """Return drained parts to service."""


@dataclass(frozen=True)
class Fail(_OfParts):
    """Parts are down: jobs that lost GPUs end or wait again, jobs that lost links get others where there are any."""


@dataclass(frozen=True)
class Repair(_OfParts):
    """Mark failed parts as working again."""


@dataclass(frozen=True)
class ChangePolicy:
    """How jobs share the cluster from now on; what is left out stays as it is."""

    policy: str | None = None
    queue: str | None = None
    backfill: str | None = None
    keep_links: bool | None = None
    """Do links of an ended job stay taken until its rules are gone?"""

    def __post_init__(self) -> None:
        texts = {"policy": self.policy, "queue": self.queue, "backfill": self.backfill}
        check_texts("policy", **{name: text or "" for name, text in texts.items()})


@dataclass(frozen=True)
class RulesGone:
    """No rule of a job's earlier allocations is left on any device: its old links are free."""

    job: str
    generation: int | None = None
    """Up to this allocation of the job; all that are being released unless given."""

    def __post_init__(self) -> None:
        check_texts("rules", job=self.job)


@dataclass(frozen=True)
class NoteRules:
    """Something about rules on devices that people want to know; nothing but the history changes."""

    kind: str
    note: str
    job: str = ""
    generation: int = 0
    device: str = ""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, "note")
        if self.kind not in RULE_EVENTS:
            findings.add(f"there is no kind {self.kind!r}: use one of {', '.join(RULE_EVENTS)}")
        find_texts(findings, job=self.job, device=self.device)
        findings.raise_if_any()


@dataclass(frozen=True)
class Expire:
    """Reservations that nobody has bound in time end as lost."""


Operation: TypeAlias = (
    Submit | Adopt | End | Cancel | Resize | Hold | Release | Requeue | Bind | Progress
    | Drain | Restore | Fail | Repair | ChangePolicy | RulesGone | NoteRules | Expire
)  # fmt: skip

KINDS: dict[str, type[Operation]] = {
    "submit": Submit, "adopt": Adopt, "end": End, "cancel": Cancel, "resize": Resize, "hold": Hold,
    "release": Release, "requeue": Requeue, "bind": Bind, "progress": Progress, "drain": Drain,
    "restore": Restore, "fail": Fail, "repair": Repair, "change-policy": ChangePolicy, "rules-gone": RulesGone,
    "note-rules": NoteRules, "expire": Expire,
}  # fmt: skip
"""By the name that documents use."""
_NAMES = {kind: name for name, kind in KINDS.items()}


def as_document(operation: Operation) -> dict[str, Any]:
    """The operation as plain values, `operation` says which it is."""
    return {"operation": _NAMES[type(operation)], **plain(operation)}


def from_document(document: object) -> Operation:
    """The operation that a document asks for; all mistakes are reported together."""
    if not isinstance(document, dict):
        raise ClusterError("the operation is not an object: give one with an entry `operation`")
    fields = dict(document)
    name = fields.pop("operation", None)
    if not isinstance(name, str) or name not in KINDS:
        raise ClusterError(f"there is no operation {name!r}: use one of {', '.join(KINDS)}")
    return record(KINDS[name], fields, name, ClusterError)
