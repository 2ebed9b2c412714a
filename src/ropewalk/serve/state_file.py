"""A whole controller in one file, for who runs no service: the same questions, the same answers, one at a time.

The file is a snapshot as `cluster allocate --save` writes it, with one entry more, `controller`: plant, settings, jobs,
history. Other commands read it as before; nothing about the cluster needs to be typed again.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any

from ropewalk.errors import ClusterError, InputError, PhysicsError
from ropewalk.files import is_there, require_writable
from ropewalk.serve.asked import ReceivedRequest
from ropewalk.serve.client import Reply
from ropewalk.serve.controller import Controller
from ropewalk.serve.endpoints import Endpoint, endpoint_at, status_of_answer
from ropewalk.serve.job import ServedJob
from ropewalk.serve.job_document import read_job
from ropewalk.serve.outcome import Event, Refused
from ropewalk.serve.problems import problem_document, status_of
from ropewalk.serve.settings import Settings
from ropewalk.serve.state import Counters, State
from ropewalk.tenancy.parts import drained_of, part_names
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.plant_differences import differences
from ropewalk.tenancy.plant_document import plant_document, plant_from_document
from ropewalk.tenancy.saved_state import CONTROLLER, SavedState, read_state_document, saved_state, write_state

ENTRY = CONTROLLER
MOST_EVENTS = 10_000
"""Of the history; older events are dropped."""


class StateFile:
    """A state file as a service: `ask` as `Client.ask` does."""

    def __init__(
        self,
        path: Path,
        plant: Callable[[], Plant] | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path, self._plant, self._settings, self._clock = path, plant, settings, clock

    @property
    def where(self) -> str:
        return f"state {self.path}"

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        key: str | None = None,
    ) -> Reply:
        """One question; a change is in the file, whole, before it is answered."""
        given = {name: str(value) for name, value in (query or {}).items() if value is not None}
        try:
            if path == "/v1/history":
                return Reply(200, self._history(ReceivedRequest(query=given)))
            endpoint, job = endpoint_at(method, path)
            asked = ReceivedRequest(job, given, dict(body or {}))
            if endpoint.operation is None:
                return Reply(200, self._read(endpoint, asked))
            document = self._change(endpoint, asked, if_match)
            return Reply(status_of_answer(endpoint, document), document)
        except Refused as refusal:
            document = problem_document(refusal.code, refusal.message, refusal.remedy, refusal.details)
            return Reply(status_of(refusal.code), document)

    def events(self, after: int | None = None) -> Iterator[dict[str, Any]]:
        """What has happened; a file does not go on by itself."""
        yield from self._history(ReceivedRequest(query={"after": str(after or 0), "limit": "1000"}))["events"]

    def close(self) -> None:
        """Nothing is open between two questions."""

    def _read(self, endpoint: Endpoint, asked: ReceivedRequest) -> dict[str, Any]:
        answer = endpoint.answer
        assert answer is not None
        controller, _ = self._load()
        return answer(controller.state, asked)

    def _change(self, endpoint: Endpoint, asked: ReceivedRequest, if_match: int | None) -> dict[str, Any]:
        operation = endpoint.operation_of(asked)
        require_writable(self.path)
        with _alone(self.path):
            controller, events = self._load()
            if if_match is not None and asked.job is not None:
                version = controller.state.job(asked.job).version
                if version != if_match:
                    raise Refused("version-conflict", f"job {asked.job} has version {version}, not {if_match}")
            outcome = controller.apply(operation, self._clock())
            first = events[-1]["seq"] + 1 if events else 1
            told = [_numbered(event, first + at) for at, event in enumerate(outcome.events)]
            self._save(controller, [*events, *told][-MOST_EVENTS:])
        return outcome.answer

    def _history(self, asked: ReceivedRequest) -> dict[str, Any]:
        asked.check_query(("after", "limit", "latest"))
        after, limit = asked.number("after") or 0, asked.limit()
        _, events = self._load()
        found = [event for event in events if event["seq"] > after]
        if asked.flag("latest"):
            return {"events": found[-limit:], "next": None}
        return {"events": found[:limit], "next": found[limit - 1]["seq"] if len(found) > limit else None}

    def _load(self) -> tuple[Controller, list[dict[str, Any]]]:
        if not is_there(self.path):
            if self._plant is None:
                raise ClusterError(
                    f"{self.where} does not exist: create it with `ropewalk cluster submit --state`, which describes "
                    "its cluster with --cluster FILE or --fabric leaf-spine:64x32x32"
                )
            return Controller.empty(self._plant(), Settings(**self._settings)), []
        document = state_document(self.path)
        if ENTRY in document:
            controller, events = _restored(document, self.where)
            self._check_same(controller.state)
            return controller, events
        if self._plant is None:
            raise ClusterError(
                f"{self.where} does not contain its cluster: convert it with a first `ropewalk cluster submit` "
                "with --fabric or --cluster"
            )
        return _taken_over(self._plant(), Settings(**self._settings), document, self._clock()), []

    def _check_same(self, kept: State) -> None:
        """Whoever describes a cluster or a policy where there is one already means the same."""
        found = [] if self._plant is None else differences(kept.plant, self._plant())
        if found:
            raise ClusterError(
                f"{self.where} holds another cluster than the one described: {'; '.join(found)}: leave the "
                "description out to continue with it, or name another file"
            )
        if any(getattr(kept.settings, name) != said for name, said in self._settings.items()):
            raise ClusterError(
                f"{self.where} has a policy and a queue already ({kept.settings.policy}, {kept.settings.queue}): "
                "change them with `ropewalk cluster policy`"
            )

    def _save(self, controller: Controller, events: list[dict[str, Any]]) -> None:
        state = controller.state
        state.occupancy.check()
        plant = state.occupancy.plant
        kept = {
            "plant": plant_document(state.plant),
            "settings": state.settings.as_document(),
            "next_job": state.next_job,
            "now": state.now,
            "jobs": [job.as_document() for job in (*state.jobs.values(), *state.ended.values())],
            "drained": list(part_names(plant, state.drained)),
            "failed": list(part_names(plant, state.failed)),
            "events": events,
        }
        write_state(self.path, state.occupancy.as_document() | {ENTRY: kept})


def state_document(path: Path) -> dict[str, Any]:
    """A state file as an object; what is in it is checked by who reads it."""
    return read_state_document(path)


def is_controllers(path: Path) -> bool:
    """Does a file hold a whole controller?"""
    return is_there(path) and ENTRY in state_document(path)


def plant_of_state(path: Path) -> tuple[Plant, Settings] | None:
    """The cluster that a state file is about; None where it does not say."""
    document = state_document(path)
    if ENTRY not in document:
        return None
    controller, _ = _restored(document, f"state {path}")
    return controller.state.plant, controller.state.settings


def _restored(document: dict[str, Any], subject: str) -> tuple[Controller, list[dict[str, Any]]]:
    """The controller of a file; every job is placed anew, and what contradicts itself is refused."""
    kept = document[ENTRY]
    try:
        plant = plant_from_document(kept["plant"])
        settings = Settings.from_document(kept["settings"])
        shaped = settings.rule.plant(plant)
        controller = Controller.from_documents(
            plant,
            settings,
            [read_job(one) for one in kept["jobs"]],
            drained=drained_of(shaped, kept["drained"]),
            failed=drained_of(shaped, kept["failed"]),
            counters=Counters(int(kept["next_job"]), 1),
            now=float(kept["now"]),
        )
        controller.state.occupancy.check()
        events = [_event(one) for one in kept["events"]]
        if [event["seq"] for event in events] != sorted({event["seq"] for event in events}):
            raise ValueError("events are not in order")
    except (InputError, PhysicsError) as problem:
        raise ClusterError(f"{subject}: {problem}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ClusterError(f"{subject} cannot be read ({problem!r}): give one written by ropewalk") from None
    _check_snapshot(saved_state(document, subject), saved_state(controller.state.occupancy.as_document()), subject)
    return controller, events


def _check_snapshot(beside: SavedState, own: SavedState, subject: str) -> None:
    """The snapshot beside the controller says the same: other commands read that one."""
    for name in ("plant", "gpus", "drained"):
        if getattr(beside, name) != getattr(own, name):
            raise ClusterError(f"{subject}: its {name} is not that of its controller: give one written by ropewalk")
    if {one.job: one for one in beside.jobs} != {one.job: one for one in own.jobs}:
        raise ClusterError(f"{subject}: its jobs are not those of its controller: give one written by ropewalk")


def _event(document: Any) -> dict[str, Any]:
    """Something of the history; what else it says depends on its kind."""
    found: dict[str, Any] = dict(document)
    kinds: dict[str, Any] = {"seq": int, "at": (int, float), "kind": str, "job": (str, NoneType)}
    for name, kind in kinds.items():
        if not isinstance(found[name], kind) or isinstance(found[name], bool):
            raise ValueError(f"{name} of an event is {found[name]!r}")
    return found


def _taken_over(plant: Plant, settings: Settings, document: dict[str, Any], at: float) -> Controller:
    """Jobs of a snapshot that knows no controller become running jobs of one; when they began is not in it."""
    from ropewalk.tenancy.occupancy import Occupancy

    now = Occupancy.from_document(settings.rule.plant(plant), document)
    jobs = []
    for number, held in enumerate(now.jobs.values(), 1):
        name, mine = held.job, replace(held, job=f"j{number}")
        jobs.append(
            ServedJob(number, name, held.size, at, state="running", started_at=at, generation=1, allocation=mine)
        )
    return Controller.from_documents(plant, settings, jobs, drained=now.drained)


def _numbered(event: Event, seq: int) -> dict[str, Any]:
    return event.as_document() | {"seq": seq}


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else changes the file meanwhile; the lock goes with the process, however it ends."""
    beside = path.resolve().with_name(f".{path.name}.lock")
    handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
