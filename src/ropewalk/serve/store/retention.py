"""How long history is kept, and how it is deleted: a little at a time, so that nobody waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Table, delete, select
from sqlalchemy.sql.elements import ColumnElement

from ropewalk.errors import ClusterError, Findings
from ropewalk.serve.store.tables import EVENT, IDEM, JOB

DAY_S = 86_400.0
MOST_ROWS = 200
"""Rows of a table that go in one transaction: it takes a few milliseconds, in which every change waits."""


@dataclass(frozen=True)
class Retention:
    """Seconds after which something that is over may be forgotten."""

    events_s: float = 90 * DAY_S
    ended_jobs_s: float = 90 * DAY_S
    answers_s: float = DAY_S / 4
    """Of idempotency keys: a client that repeats a request later than this asks anew."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, "retention")
        for name, seconds in vars(self).items():
            if not seconds > 0:
                findings.add(f"{name} is {seconds}: give more than 0 seconds")
        findings.raise_if_any()


def forget(connection: Connection, retention: Retention, now: float) -> bool:
    """Delete some of what is too old; True where there is more of it."""
    ended = JOB.c.live.is_(False) & (JOB.c.ended_at < now - retention.ended_jobs_s)
    too_old: tuple[tuple[Table, str, ColumnElement[bool]], ...] = (
        (EVENT, "seq", EVENT.c.at < now - retention.events_s),
        (IDEM, "key", IDEM.c.at < now - retention.answers_s),
        (JOB, "id", ended),
    )
    more = False
    for table, key, old in too_old:
        some = select(table.c[key]).where(old).limit(MOST_ROWS)
        gone = connection.execute(delete(table).where(table.c[key].in_(some))).rowcount
        more = more or gone >= MOST_ROWS
    return more
