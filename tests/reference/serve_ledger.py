"""What clients of a killed service know: what was acknowledged is certain, what was not is one of two things."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from serve_invariants import check
from sqlalchemy import select

from ropewalk.serve.encoding import decode
from ropewalk.serve.job import ServedJob
from ropewalk.serve.restored import restored
from ropewalk.serve.store import open_store
from ropewalk.serve.store.tables import DRAIN, EVENT, IDEM, JOB


@dataclass
class Known:
    """What may be true of a job; an acknowledgement leaves one value of each, a lost answer leaves two."""

    name: str
    gpus: set[int]
    outcome: set[str | None] = field(default_factory=lambda: {None})
    external: set[str | None] = field(default_factory=lambda: {None})
    id: str | None = None
    acknowledged: bool = False
    """False while nobody knows whether it was ever submitted."""
    version: int = 0
    """At least."""


@dataclass
class Ledger:
    """All jobs and parts, and what has been found wrong."""

    database: str
    jobs: dict[str, Known] = field(default_factory=dict)
    """By name: every job has one of its own."""
    settled: dict[str, str] = field(default_factory=dict)
    """id -> outcome of jobs that ended and were seen to have."""
    drained: dict[str, set[bool]] = field(default_factory=dict)
    """Drained parts; after a lost answer both may be true."""
    violations: list[str] = field(default_factory=list)
    last_event: int = 0
    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(job, kind) -> how often."""
    answers: dict[str, bytes] = field(default_factory=dict)
    """Some answers by their key."""

    def wrong(self, what: str) -> None:
        self.violations.append(what)

    def verify(self, *, everything: bool = False) -> None:
        """Compare what is known with what a dead service has left; what was uncertain is certain afterwards."""
        store = open_store(self.database, writer=False)
        try:
            self._verify_state(store.load())
            with store.engine.connect() as connection:
                rows = connection.execute(select(JOB.c.id, JOB.c.doc).order_by(JOB.c.seq)).all()
                jobs = [
                    ServedJob.from_document(decode(doc)) for id_, doc in rows if everything or id_ not in self.settled
                ]
                events = connection.execute(
                    select(EVENT.c.seq, EVENT.c.kind, EVENT.c.job)
                    .where(EVENT.c.seq > self.last_event)
                    .order_by(EVENT.c.seq)
                ).all()
                parts = {part for (part,) in connection.execute(select(DRAIN.c.part).where(DRAIN.c.kind == "drained"))}
                self._verify_answers(connection)
        finally:
            store.close()
        self._verify_events([tuple(row) for row in events])
        self._verify_jobs(jobs, everything=everything)
        self._verify_parts(parts)

    def _verify_state(self, saved: Any) -> None:
        """No GPU and no link in two jobs, none leaked, all counts right, the queue in order."""
        if saved is None:
            return
        try:
            check(restored(saved).state)
        except Exception as problem:
            self.wrong(f"the state that was left is broken: {problem}")

    def _verify_answers(self, connection: Any) -> None:
        asked = select(IDEM.c.key, IDEM.c.answer).where(IDEM.c.key.in_([f"anonymous:{key}" for key in self.answers]))
        kept = {key.removeprefix("anonymous:"): bytes(answer) for key, answer in connection.execute(asked)}
        for key, answer in self.answers.items():
            if kept.get(key) != answer:
                self.wrong(f"the answer under key {key} was acknowledged and is {'another' if key in kept else 'gone'}")

    def _verify_events(self, rows: list[tuple[Any, ...]]) -> None:
        for seq, kind, job in rows:
            if seq != self.last_event + 1:
                self.wrong(f"event {seq} follows {self.last_event}")
            self.last_event = seq
            if job is not None:
                self.events[job, kind] += 1

    def _verify_jobs(self, jobs: list[ServedJob], *, everything: bool) -> None:
        seen: Counter[str] = Counter()
        for job in jobs:
            seen[job.name] += 1
            self._verify_events_of(job)
            if job.id in self.settled:
                if job.outcome != self.settled[job.id]:
                    self.wrong(f"{job.id} had ended as {self.settled[job.id]} and is {job.state} {job.outcome}")
            elif job.name not in self.jobs:
                self.wrong(f"{job.id} is there, and nobody submitted {job.name}")
            else:
                self._verify_job(job, self.jobs[job.name])
        for name in [name for name, count in seen.items() if count > 1]:
            self.wrong(f"{name} was submitted once and is there {seen[name]} times")
        for name, known in list(self.jobs.items()):
            if seen[name]:
                continue
            if known.acknowledged:
                self.wrong(f"{known.id} ({name}) was acknowledged and is gone")
            del self.jobs[name]
        if everything:
            for id_ in set(self.settled) - {job.id for job in jobs}:
                self.wrong(f"{id_} had ended and is gone")

    def _verify_events_of(self, job: ServedJob) -> None:
        submitted, ended = self.events[job.id, "job-submitted"], self.events[job.id, "job-ended"]
        if submitted != 1 or ended != (job.state == "ended"):
            self.wrong(f"{job.id} is {job.state} after {submitted} submissions and {ended} ends in the history")

    def _verify_job(self, job: ServedJob, known: Known) -> None:
        for what, value, possible in (
            ("gpus", job.gpus, known.gpus),
            ("outcome", job.outcome, known.outcome),
            ("external", job.external, known.external),
        ):
            if value not in possible:  # type: ignore[operator]
                self.wrong(f"{job.id}: {what} is {value!r}, acknowledged was {possible!r}")
        if known.id not in (None, job.id):
            self.wrong(f"{known.name} was acknowledged as {known.id} and is {job.id}")
        if job.version < known.version:
            self.wrong(f"{job.id} had version {known.version} and has {job.version}")
        known.id, known.acknowledged, known.version = job.id, True, job.version
        known.gpus, known.outcome, known.external = {job.gpus}, {job.outcome}, {job.external}
        if job.state == "ended":
            self.settled[job.id] = str(job.outcome)
            del self.jobs[known.name]

    def _verify_parts(self, parts: set[str]) -> None:
        for part, possible in self.drained.items():
            if (part in parts) not in possible:
                self.wrong(f"{part} is {'drained' if part in parts else 'in service'}, acknowledged was otherwise")
            self.drained[part] = {part in parts}
        for part in parts - set(self.drained):
            self.wrong(f"{part} is drained, and nobody asked for it")
