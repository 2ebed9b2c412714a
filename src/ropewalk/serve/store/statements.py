"""Statements of every commit, compiled once: what SQLAlchemy does for each execution costs more than SQLite itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, bindparam, insert, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite

from ropewalk.serve.store.tables import EVENT, IDEM, JOB, META

Row = Mapping[str, Any]
CHANGES = ("state", "live", "version", "owner", "ended_at", "doc")
"""Columns of a job that change after it was submitted."""


class Statement:
    """One statement in the words of a driver; rows are given by the names of their columns."""

    def __init__(self, statement: Any, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._text = str(compiled)
        self._places: Sequence[str] | None = compiled.positiontup if compiled.positional else None

    def many(self, connection: Connection, rows: Iterable[Row]) -> None:
        """Execute it for every row."""
        cursor = _cursor(connection)
        places = self._places
        given = [row if places is None else tuple(row[name] for name in places) for row in rows]
        if len(given) == 1:
            cursor.execute(self._text, given[0])
        else:
            cursor.executemany(self._text, given)
        cursor.close()

    def all(self, connection: Connection, row: Row | None = None) -> list[Any]:
        """What it finds."""
        cursor, given = _cursor(connection), row or {}
        places = self._places
        cursor.execute(self._text, given if places is None else tuple(given[name] for name in places))
        found: list[Any] = cursor.fetchall()
        cursor.close()
        return found


class Statements:
    """All of them, for SQLite or PostgreSQL."""

    def __init__(self, dialect: Dialect) -> None:
        own: Any = postgresql if dialect.name == "postgresql" else sqlite
        job, meta = own.insert(JOB), own.insert(META)
        self.put_job = Statement(
            job.on_conflict_do_update(index_elements=[JOB.c.id], set_={name: job.excluded[name] for name in CHANGES}),
            dialect,
        )
        self.put_meta = Statement(
            meta.on_conflict_do_update(index_elements=[META.c.key], set_={"value": meta.excluded["value"]}), dialect
        )
        self.put_event = Statement(insert(EVENT), dialect)
        self.put_answer = Statement(insert(IDEM), dialect)
        epoch = select(META.c.value).where(META.c.key == literal_column("'epoch'"))
        locks = dialect.name == "postgresql"
        self.epoch = Statement(epoch.with_for_update(read=True) if locks else epoch, dialect)
        """Nobody changes it before the transaction that asks has ended."""
        self.epoch_to_change = Statement(epoch.with_for_update() if locks else epoch, dialect)
        self._answers = {count: Statement(_answers(count), dialect) for count in (1, 2, 4, 8, 16, 32, 64)}

    def answers(self, connection: Connection, keys: Sequence[str]) -> list[Any]:
        """Rows of answers under these keys, 64 keys at a time; some may be asked for twice, so that there are few
        different statements."""
        found = []
        for first in range(0, len(keys), 64):
            some = keys[first : first + 64]
            count = 1 << (len(some) - 1).bit_length()
            row = {f"key{at}": some[min(at, len(some) - 1)] for at in range(count)}
            found += self._answers[count].all(connection, row)
        return found


def _answers(count: int) -> Any:
    some = [bindparam(f"key{at}", type_=IDEM.c.key.type) for at in range(count)]
    return select(IDEM.c.key, IDEM.c.request_hash, IDEM.c.answer, IDEM.c.at).where(IDEM.c.key.in_(some))


def _cursor(connection: Connection) -> Any:
    """The driver's own, inside the transaction that the connection has begun."""
    return connection.connection.cursor()
