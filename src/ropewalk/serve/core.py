"""Operations carried out in memory, one batch at a time; what they change is written down for the store."""

from __future__ import annotations

import sys
import traceback
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from ropewalk.serve import failpoints
from ropewalk.serve.controller import Controller
from ropewalk.serve.encoding import decode, encode
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Operation
from ropewalk.serve.outcome import Event, Outcome, Refused
from ropewalk.serve.restored import restored
from ropewalk.serve.state import Counters
from ropewalk.serve.store.store import Changes, GivenAnswer, Store
from ropewalk.tenancy.parts import part_names


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation was answered with, after it was committed."""

    document: dict[str, Any]
    body: bytes
    """The document as JSON."""
    replayed: bool = False
    """True where the same request was answered before."""


@dataclass(eq=False, slots=True)
class PendingOperation:
    """An operation, and who waits for its answer."""

    operation: Operation
    key: str | None
    request_hash: str
    if_match: int | None
    actor: str
    future: Future[Answer]
    own_only: bool = False
    """May the actor change its own jobs alone?"""


class Core:
    """The controller and what numbers its events."""

    def __init__(self, store: Store, controller: Controller, counters: Counters) -> None:
        self.controller = controller
        self._store = store
        self._next_event = counters.next_event

    def carry_out(
        self, batch: list[PendingOperation], known: dict[str, GivenAnswer], now: float
    ) -> tuple[Changes, list[Answer | Refused]]:
        """What a batch changes, and what each of its operations is to be answered once that is committed."""
        changes = Changes(Counters(), at=now)
        results: list[Answer | Refused] = []
        for number, one in enumerate(batch):
            try:
                results.append(self._answer(one, known, changes))
            except Exception as problem:
                results.append(_defect(problem))
                self._start_over(batch[:number], results, now)
            failpoints.reach("mid-batch")
        changes.counters = Counters(self.controller.state.next_job, self._next_event)
        return changes, results

    def _answer(self, one: PendingOperation, known: dict[str, GivenAnswer], changes: Changes) -> Answer | Refused:
        given = known.get(one.key) if one.key is not None else None
        if given is not None:
            return _again(one, given)
        try:
            self._check_job(one)
            outcome = self.controller.apply(one.operation, changes.at, one.actor)
        except Refused as refusal:
            return refusal
        body = encode(outcome.answer)
        self._note(outcome, one.actor, changes)
        if one.key is not None:
            known[one.key] = GivenAnswer(one.key, one.request_hash, body, changes.at)
            changes.answers.append(known[one.key])
        return Answer(outcome.answer, body)

    def _start_over(self, done: list[PendingOperation], results: list[Answer | Refused], now: float) -> None:
        """A defect may have left the state half changed: take it from the store, and do the batch so far again."""
        saved = self._store.load()
        assert saved is not None
        self.controller = restored(saved)
        for one, result in zip(done, results, strict=False):
            if isinstance(result, Answer) and not result.replayed:
                self._recall(one.operation)
                self.controller.apply(one.operation, now, one.actor)

    def _recall(self, operation: Operation) -> None:
        """A job that ended long ago is only in the store: have the controller know it again."""
        state, job_id = self.controller.state, getattr(operation, "job", None)
        if job_id is None or job_id in state.jobs or job_id in state.ended:
            return
        found = self._store.job(job_id)
        if found is not None:
            state.keep(found)

    def _check_job(self, one: PendingOperation) -> None:
        """Refuse who may not change the job that an operation names, and who has not seen its latest version."""
        self._recall(one.operation)
        if one.if_match is None and not (one.own_only and hasattr(one.operation, "job")):
            return
        job = self.controller.state.job(getattr(one.operation, "job", ""))
        if one.own_only and job.owner != one.actor:
            raise _not_yours(job)
        if one.if_match is not None and job.version != one.if_match:
            raise Refused(
                "version-conflict",
                f"job {job.id} has version {job.version}, not {one.if_match}",
                "read the job again, then repeat the request with its version",
                {"version": job.version},
            )

    def _note(self, outcome: Outcome, actor: str, changes: Changes) -> None:
        state = self.controller.state
        for job in outcome.changed:
            changes.jobs[job.id] = job
        for event in outcome.events:
            changes.events.append(_numbered(event, self._next_event, actor))
            self._next_event += 1
        if outcome.settings:
            changes.settings = state.settings
        if outcome.parts:
            plant = state.occupancy.plant
            changes.parts = {
                "drained": part_names(plant, state.drained),
                "failed": part_names(plant, state.failed),
            }


def _numbered(event: Event, seq: int, actor: str) -> Event:
    return replace(event, seq=seq, document=event.document | ({"actor": actor} if actor else {}))


def _not_yours(job: ServedJob) -> Refused:
    whose = f"belongs to {job.owner}" if job.owner else "belongs to nobody who holds a token"
    return Refused(
        "forbidden", f"job {job.id} {whose}, and your role changes its own jobs only",
        "ask its owner, or somebody with the role operate", {"owner": job.owner, "needed": "operate"},
    )  # fmt: skip


def _again(one: PendingOperation, given: GivenAnswer) -> Answer | Refused:
    if given.request_hash != one.request_hash:
        return Refused(
            "idempotency-conflict", "this idempotency key was used for another request",
            "use a new key for every new request",
        )  # fmt: skip
    return Answer(decode(given.body), given.body, replayed=True)


def _defect(problem: Exception) -> Refused:
    """What the asker is told of a defect; the log has it all."""
    traceback.print_exception(problem, file=sys.stderr)
    sys.stderr.flush()
    return Refused(
        "internal", f"internal error of the service: {problem!r}", "nothing has changed; report it with the log"
    )
