"""Reading and writing: one transaction per batch, which checks that this process is still the one writer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Engine, Select, delete, insert, select

from ropewalk.errors import ClusterError
from ropewalk.serve import failpoints
from ropewalk.serve.encoding import decode, encode
from ropewalk.serve.job import ServedJob
from ropewalk.serve.job_document import read_job
from ropewalk.serve.outcome import Event
from ropewalk.serve.settings import Settings
from ropewalk.serve.state import KEPT_ENDED, Counters
from ropewalk.serve.store.checkpoints import Checkpoints
from ropewalk.serve.store.lock import FileLock, lock_database
from ropewalk.serve.store.retention import Retention, forget
from ropewalk.serve.store.statements import Statements
from ropewalk.serve.store.tables import DRAIN, EVENT, JOB, META, PLANT
from ropewalk.serve.store.unusable import reading
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.plant_document import plant_document, plant_from_document


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer that was given under an idempotency key."""

    key: str
    request_hash: str
    body: bytes
    at: float


@dataclass(eq=False)
class Changes:
    """What one batch has changed; a job that changed several times is written once."""

    counters: Counters
    jobs: dict[str, ServedJob] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    answers: list[GivenAnswer] = field(default_factory=list)
    settings: Settings | None = None
    parts: dict[str, Sequence[str]] | None = None
    """Names of all parts that are drained or failed now, by kind."""
    at: float = 0.0


@dataclass(frozen=True, eq=False)
class Saved:
    """What a store has kept."""

    plant: Plant
    settings: Settings
    counters: Counters
    jobs: tuple[ServedJob, ...]
    """Those that are live."""
    ended: tuple[ServedJob, ...]
    """The latest that are over, as many as a controller remembers."""
    parts: dict[str, tuple[str, ...]]
    at: float
    """The time of the latest event."""


class EpochLost(ClusterError):
    """Another process has taken the store over: this one must stop."""


class Store:
    """A database with our tables. `commit` is called by one thread only; everything else by any."""

    def __init__(self, engine: Engine, lock: FileLock | None = None) -> None:
        self.engine = engine
        self.epoch = 0
        self._lock = lock
        self._writer: Connection | None = None
        self._checkpoints: Checkpoints | None = None
        self._statements = Statements(engine.dialect)

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self.engine.url.render_as_string(hide_password=True)

    def begin_epoch(self) -> None:
        """Become the one writer: earlier processes that still run can commit nothing from now on."""
        self._writer = self.engine.connect().execution_options(writes=True)
        if self.engine.dialect.name == "postgresql":
            with self._writer.begin():
                lock_database(self._writer, self.name)
        with self._writer.begin():
            found = self._statements.epoch_to_change.all(self._writer)
            self.epoch = 1 + (int(found[0][0]) if found else 0)
            self._statements.put_meta.many(self._writer, [{"key": "epoch", "value": str(self.epoch)}])
        if self.engine.dialect.name == "sqlite":
            self._checkpoints = Checkpoints(self.engine).start(self._writer.connection.dbapi_connection)

    def initialise(self, plant: Plant, settings: Settings) -> None:
        """Write down the cluster that this store is about; done once."""
        with self.transaction() as transaction:
            transaction.put_plant(plant)
            transaction.put_meta("settings", settings.as_document())
            transaction.put_meta("counters", asdict(Counters()))

    def replace_plant(self, plant: Plant, settings: Settings) -> None:
        """The cluster is another one from now on; whoever asks has seen to it that no job holds anything of it."""
        with self.transaction() as transaction:
            transaction.put_plant(plant)
            transaction.put_meta("settings", settings.as_document())
            transaction.connection.execute(delete(DRAIN))

    def load(self) -> Saved | None:
        """What was kept; None where nothing was ever written."""
        with reading(self.engine), self.engine.connect() as connection, connection.begin():
            plant = connection.execute(select(PLANT.c.doc)).scalar()
            if plant is None:
                return None
            meta: dict[str, str] = dict(connection.execute(select(META.c.key, META.c.value)).all())
            live = connection.execute(select(JOB.c.doc).where(JOB.c.live).order_by(JOB.c.seq)).scalars().all()
            latest = select(JOB.c.doc).where(JOB.c.live.is_(False)).order_by(JOB.c.ended_at.desc(), JOB.c.seq.desc())
            ended = connection.execute(latest.limit(KEPT_ENDED)).scalars().all()
            parts: dict[str, list[str]] = {"drained": [], "failed": []}
            for part, kind in connection.execute(select(DRAIN.c.part, DRAIN.c.kind).order_by(DRAIN.c.part)):
                parts[kind].append(part)
            return Saved(
                plant=plant_from_document(decode(plant)),
                settings=Settings.from_document(decode(meta["settings"])),
                counters=Counters(**decode(meta["counters"])),
                jobs=tuple(read_job(decode(document)) for document in live),
                ended=tuple(read_job(decode(document)) for document in ended),
                parts={kind: tuple(names) for kind, names in parts.items()},
                at=float(connection.execute(select(EVENT.c.at).order_by(EVENT.c.seq.desc()).limit(1)).scalar() or 0.0),
            )

    def forget(self, retention: Retention, now: float) -> bool:
        """Delete some history that is too old; True where there is more of it."""
        with self.transaction() as transaction:
            return forget(transaction.connection, retention, now)

    def job(self, job_id: str) -> ServedJob | None:
        """One job in its latest version, ended ones too."""
        with self.engine.connect() as connection:
            document = connection.execute(select(JOB.c.doc).where(JOB.c.id == job_id)).scalar()
        return None if document is None else ServedJob.from_document(decode(document))

    def events_of(self, kinds: Collection[str]) -> list[Event]:
        """All events of some kinds that are kept, in order: for kinds of which there are few."""
        return self._events(select(EVENT).where(EVENT.c.kind.in_(kinds)).order_by(EVENT.c.seq))

    def events(self, after: int, limit: int) -> list[Event]:
        """Events in order, from the one after `after` on."""
        return self._events(select(EVENT).where(EVENT.c.seq > after).order_by(EVENT.c.seq).limit(limit))

    def events_of_job(self, job: str, since: float, most: int) -> list[Event]:
        """The latest events of one job, in order; before `since`, when it was submitted, there are none."""
        own = select(EVENT).where(EVENT.c.at >= since, EVENT.c.job == job)
        latest = own.order_by(EVENT.c.seq.desc()).limit(most)
        return self._events(latest)[::-1]

    def _events(self, asked: Select[Any]) -> list[Event]:
        with self.engine.connect() as connection:
            rows = connection.execute(asked).all()
        return [Event(at, kind, job, decode(doc), seq) for seq, at, kind, job, doc in rows]

    def close(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.close()
            self._checkpoints = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.engine.dispose()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Everything in this block is on disk when it ends, or nothing of it; for the thread that writes."""
        if self._writer is None:
            raise ClusterError(f"the store {self.name} was opened read-only: open it as its writer")
        with self._writer.begin():
            found = self._statements.epoch.all(self._writer)
            if not found or found[0][0] != str(self.epoch):
                there = found[0][0] if found else "none"
                raise EpochLost(f"another process has taken over the store (epoch {there}): stop this one")
            yield Transaction(self._writer, self._statements)
        if self._checkpoints is not None:
            self._checkpoints.committed(self._writer.connection.dbapi_connection)


class Transaction:
    """A transaction of the one writer."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self.connection, self._statements = connection, statements

    def write(self, changes: Changes) -> None:
        """What one batch has changed."""
        connection, statements = self.connection, self._statements
        if changes.jobs:
            statements.put_job.many(connection, map(_job_row, changes.jobs.values()))
        failpoints.reach("mid-commit")
        if changes.events:
            statements.put_event.many(connection, map(_event_row, changes.events))
        if changes.answers:
            statements.put_answer.many(connection, map(_answer_row, changes.answers))
        if changes.settings is not None:
            self.put_meta("settings", changes.settings.as_document())
        if changes.parts is not None:
            _put_parts(connection, changes.parts, changes.at)
        if changes.events:
            self.put_meta("counters", asdict(changes.counters))
        failpoints.reach("before-commit")

    def answers(self, keys: Iterable[str]) -> dict[str, GivenAnswer]:
        """Answers that were given under these idempotency keys."""
        wanted = list(keys)
        if not wanted:
            return {}
        rows = self._statements.answers(self.connection, wanted)
        return {key: GivenAnswer(key, request_hash, bytes(body), at) for key, request_hash, body, at in rows}

    def put_meta(self, key: str, document: object) -> None:
        self._statements.put_meta.many(self.connection, [{"key": key, "value": encode(document).decode()}])

    def put_plant(self, plant: Plant) -> None:
        document = encode(plant_document(plant)).decode()
        self.connection.execute(delete(PLANT))
        self.connection.execute(insert(PLANT), {"digest": sha256(document.encode()).hexdigest(), "doc": document})


def _put_parts(connection: Connection, parts: dict[str, Sequence[str]], at: float) -> None:
    """Parts that stay out of service keep the time since when they are."""
    now = {(part, kind) for kind, names in parts.items() for part in names}
    before = set(connection.execute(select(DRAIN.c.part, DRAIN.c.kind)))
    for part, kind in sorted(before - now):
        connection.execute(delete(DRAIN).where(DRAIN.c.part == part, DRAIN.c.kind == kind))
    rows = [{"part": part, "kind": kind, "since": at} for part, kind in sorted(now - before)]
    if rows:
        connection.execute(insert(DRAIN), rows)


def _job_row(job: ServedJob) -> dict[str, Any]:
    return {
        "id": job.id, "seq": job.seq, "state": job.state, "live": job.live, "version": job.version,
        "owner": job.owner, "ended_at": job.ended_at, "doc": encode(job.as_document()).decode(),
    }  # fmt: skip


def _event_row(event: Event) -> dict[str, Any]:
    document = encode(event.document).decode()
    return {"seq": event.seq, "at": event.at, "kind": event.kind, "job": event.job, "doc": document}


def _answer_row(answer: GivenAnswer) -> dict[str, Any]:
    return {"key": answer.key, "request_hash": answer.request_hash, "answer": answer.body, "at": answer.at}
