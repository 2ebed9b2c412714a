"""Slurm's own list of jobs, as `squeue --json` prints it: the truth about what runs where.

Fields are read as Slurm 22.05 writes them and as newer releases do (states as lists, numbers as objects). Names and
comments come from users: they are text and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ropewalk.documents import parse_foreign_json
from ropewalk.errors import ClusterError, FabricError
from ropewalk.serve.slurm.mark import NOTHING, Mark, printable, read_mark
from ropewalk.tenancy.imports.hostlist import expand

Phase = Literal["pending", "active", "finished"]
Ending = Literal["done", "cancelled", "failed"]

LONGEST_NAME = 128
PENDING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
ENDINGS: Mapping[str, Ending] = {
    "COMPLETED": "done",
    "CANCELLED": "cancelled",
    "DEADLINE": "cancelled",
    "PREEMPTED": "cancelled",
    "REVOKED": "cancelled",
    "BOOT_FAIL": "failed",
    "FAILED": "failed",
    "LAUNCH_FAILED": "failed",
    "NODE_FAIL": "failed",
    "OUT_OF_MEMORY": "failed",
    "TIMEOUT": "failed",
}
STILL_THERE = frozenset({"COMPLETING", "STAGE_OUT", "SIGNALING"})
"""A job in one of these still has its nodes, whatever else its state says."""


@dataclass(frozen=True)
class SlurmJob:
    """A job as Slurm has it."""

    id: int
    name: str
    user: str
    partition: str
    phase: Phase
    ending: Ending | None = None
    """How it finished; None while it has not."""
    completing: bool = False
    """It has ended, and Slurm cleans up; of its nodes only those are listed that are not clean yet."""
    nodes: tuple[str, ...] = ()
    """Where it runs or ran, in Slurm's order."""
    asked_nodes: int = 1
    most_nodes: int = 0
    """0 where the user did not say how many nodes."""
    tasks: int = 1
    required: tuple[str, ...] = ()
    restricted: str = ""
    """What else limits where it may run, in words; the controller leaves such a job to Slurm."""
    held: bool = False
    waits_for: str = ""
    """Other jobs it depends on, in Slurm's words."""
    eligible_at: float = 0.0
    """Not before this time; 0 where Slurm did not say."""
    limit_s: float | None = None
    array: int = 0
    """The job array that it belongs to."""
    task: int | None = None
    """Which task of the array it is; None for tasks that are not split off yet, and for any other job."""
    array_tasks: tuple[int, ...] = ()
    """Tasks of a job array that Slurm has not split off yet."""
    mark: Mark = NOTHING

    @property
    def external(self) -> str:
        return f"slurm:{self.id}"

    @property
    def target(self) -> str:
        """How commands name it: the number of an array alone would mean all of its tasks."""
        if self.task is not None:
            return f"{self.array}_{self.task}"
        return self.target_of(self.array_tasks) if self.array_tasks else str(self.id)

    def target_of(self, tasks: tuple[int, ...]) -> str:
        """Some tasks of an array."""
        return f"{self.array or self.id}_[{','.join(map(str, tasks))}]"


def read_queue(text: str, subject: str = "squeue --json") -> tuple[SlurmJob, ...]:
    """All jobs of a listing, in its order."""
    try:
        document = parse_foreign_json(text, subject, ClusterError)
    except ClusterError as problem:
        fact = str(problem).rpartition(": ")[0]  # nobody repairs what a command has printed
        raise ClusterError(f"{fact}: give the output of squeue --json") from None
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise ClusterError(f"{subject}: it has no list of jobs: give the output of squeue --json")
    found = []
    for place, job in enumerate(jobs):
        try:
            found.append(_job(job))
        except (KeyError, TypeError, ValueError, AttributeError, FabricError) as problem:
            raise ClusterError(
                f"{subject}: job {place + 1} of {len(jobs)} cannot be read ({problem!r}): "
                "give the output of squeue --json of Slurm 22.05 or newer"
            ) from None
    return tuple(found)


def _job(raw: dict[str, Any]) -> SlurmJob:
    states = _states(raw["job_state"])
    phase, ending = _phase(states)
    limit = _number(raw.get("time_limit"))
    return SlurmJob(
        id=_whole(raw["job_id"]),
        name=printable(_text(raw["name"]), LONGEST_NAME),
        user=printable(_text(raw["user_name"]), LONGEST_NAME),
        partition=_text(raw["partition"]),
        phase=phase,
        ending=ending,
        completing="COMPLETING" in states,
        nodes=_hosts(raw["nodes"]),
        asked_nodes=_whole(raw["node_count"]),
        most_nodes=_whole(raw["max_nodes"]),
        tasks=_whole(raw["tasks"]),
        required=_hosts(raw["required_nodes"]),
        restricted=_restricted(raw),
        held=_number(raw["priority"]) == 0,
        waits_for=_text(raw["dependency"]),
        eligible_at=_number(raw["eligible_time"]) or 0.0,
        limit_s=None if not limit else 60 * limit,
        array=_whole(raw.get("array_job_id")),
        task=_task(raw.get("array_task_id")),
        array_tasks=_tasks(_text(raw.get("array_task_string") or "")),
        mark=read_mark(_text(raw["admin_comment"])),
    )


def _states(value: object) -> frozenset[str]:
    """One state, or a state and its flags as newer releases list them."""
    return frozenset(_text(one) for one in (value if isinstance(value, list) else [value]))


def _phase(states: frozenset[str]) -> tuple[Phase, Ending | None]:
    if states & STILL_THERE:
        return "active", None
    if states & PENDING:
        return "pending", None
    for one in sorted(states & ENDINGS.keys()):
        return "finished", ENDINGS[one]
    return "active", None


def _restricted(raw: dict[str, Any]) -> str:
    """The first thing, besides a number of nodes, that says where it may run."""
    if _number(raw.get("het_job_id")):
        return "is part of a heterogeneous job"
    for field, words in RESTRICTIONS.items():
        if _text(raw.get(field) or ""):
            return words
    return ""


RESTRICTIONS: Mapping[str, str] = {
    "resv_name": "uses a reservation",
    "features": "requests nodes with certain features",
    "excluded_nodes": "excludes nodes",
}


def _task(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _tasks(text: str) -> tuple[int, ...]:
    """`0-3,7%2` as numbers; the part behind % is how many may run at once, which Slurm sees to."""
    numbers = text.partition("%")[0]
    return tuple(map(int, expand(f"[{numbers}]"))) if numbers else ()


def _hosts(value: object) -> tuple[str, ...]:
    text = _text(value)
    return tuple(expand(text)) if text else ()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} instead of text")
    return value


def _number(value: object) -> float | None:
    """A number, or one as newer releases wrap it; None where it is not set or infinite."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} instead of a number")
    return float(value)


def _whole(value: object) -> int:
    number = _number(value)
    return 0 if number is None else int(number)
