"""Open a store: schema, lock, epoch."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError

from ropewalk.errors import ClusterError
from ropewalk.files import require_writable
from ropewalk.serve.store.engine import PRIVATE, engine_of, sqlite_file
from ropewalk.serve.store.lock import FileLock
from ropewalk.serve.store.store import Store
from ropewalk.serve.store.upgrade import prepare

REMEDIES = {
    "not a database": "name a database of ropewalk, or a file that does not exist yet",
    "malformed": "restore a backup",
    "readonly": "check who may write the file and its folder",
    "unable to open": "check who may write the file and its folder",
    "locked": "end the program that holds it, such as a sqlite3 shell",
    "full": "make room on the disk",
}
"""What helps, by words of SQLite."""


def open_store(url: str, *, upgrade: bool = False, writer: bool = True) -> Store:
    """The store at a path or URL; as its one writer, or beside the writer to read and to manage tokens.

    An empty store gets the schema; an older one is upgraded only where `upgrade` says so.
    """
    engine = engine_of(url)
    path = sqlite_file(engine)
    lock = None
    if path is not None and writer:
        lock = _claimed(path)
    elif path is not None and not path.exists():
        raise ClusterError(f"the store {path} does not exist: start `ropewalk serve` once, or check the path")
    try:
        prepare(engine, upgrade=upgrade)
        store = Store(engine, lock)
        if writer:
            store.begin_epoch()
        return store
    except BaseException as problem:
        engine.dispose()
        if lock is not None:
            lock.close()
        if isinstance(problem, DatabaseError | sqlite3.DatabaseError):
            raise _unusable(engine, problem) from None
        raise


def _claimed(path: Path) -> FileLock:
    """The lock of a file that is there from now on; a new one may be read by its owner only."""
    require_writable(path)
    try:
        lock = FileLock(path)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
    except OSError as problem:
        raise ClusterError(
            f"the store {path} cannot be written ({problem.strerror}): check who may write its folder"
        ) from None
    return lock


def _unusable(engine: Engine, problem: DatabaseError | sqlite3.DatabaseError) -> ClusterError:
    name = engine.url.render_as_string(hide_password=True)
    cause = problem.orig if isinstance(problem, DatabaseError) else problem
    fact = next(iter(str(cause or "").strip().splitlines()), "") or "it does not answer"
    known = (remedy for words, remedy in REMEDIES.items() if words in fact)
    remedy = next(known, "check that it exists and may be written to")
    return ClusterError(f"the store {name} cannot be used: {fact}: {remedy}")
