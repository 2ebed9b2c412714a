"""Connections to SQLite (a file, write-ahead log, every commit on disk) and PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from ropewalk.errors import ClusterError, InputError
from ropewalk.extras import how_to_install

BUSY_S = 30.0
"""How long a connection to SQLite waits for another one's transaction."""
DURABLE = ("journal_mode=WAL", "synchronous=FULL")
"""How SQLite writes: readers do not wait, and a commit is on disk when it returns."""

PRIVATE = 0o600
"""Mode of a new file: names of jobs and people are in it, and hashes of tokens."""


def engine_of(url: str) -> Engine:
    """The engine of a store named by a path (SQLite) or a URL."""
    target = url_of(url)
    if target.get_backend_name() == "sqlite":
        return _sqlite(target)
    try:
        return create_engine(target, pool_pre_ping=True, isolation_level="READ COMMITTED")
    except ModuleNotFoundError as problem:
        raise InputError(f"a store in PostgreSQL needs {problem.name}: {how_to_install('postgres')}") from None


def url_of(text: str) -> URL:
    """A path is a SQLite file; PostgreSQL is spoken to by psycopg.

    >>> str(url_of("state.db")), str(url_of("postgresql:///ropewalk"))
    ('sqlite:///state.db', 'postgresql+psycopg:///ropewalk')
    """
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        target = make_url(text)
        backend = target.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise ClusterError("the store's URL cannot be read: write sqlite:///FILE or postgresql://HOST/NAME") from None
    if backend == "postgresql":
        return target.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or not target.database or target.database == ":memory:":
        raise ClusterError(f"a store cannot be kept in {backend}: write sqlite:///FILE or postgresql://HOST/NAME")
    return target


def sqlite_file(engine: Engine) -> Path | None:
    """The file of a SQLite store; None for PostgreSQL."""
    return Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None


def _sqlite(target: URL) -> Engine:
    engine = create_engine(target, connect_args={"timeout": BUSY_S, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def durable(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, see below
        for pragma in DURABLE:
            connection.execute(f"PRAGMA {pragma}").fetchall()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.connection.cursor().execute("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
