"""Open a store: schema, lock, epoch."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from ropewalk.errors import ClusterError
from ropewalk.files import require_writable
from ropewalk.serve.store.engine import engine_of, sqlite_file
from ropewalk.serve.store.lock import FileLock
from ropewalk.serve.store.store import Store
from ropewalk.serve.store.upgrade import prepare


def open_store(url: str, *, upgrade: bool = False, writer: bool = True) -> Store:
    """The store at a path or URL; as its one writer, or beside the writer to read and to manage tokens.

    An empty store gets the schema; an older one is upgraded only where `upgrade` says so.
    """
    engine = engine_of(url)
    path = sqlite_file(engine)
    lock = None
    if path is not None:
        _check_file(path, writer)
        lock = FileLock(path) if writer else None
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
        if isinstance(problem, OperationalError):
            raise _unusable(engine, problem) from None
        raise


def _check_file(path: Path, writer: bool) -> None:
    if writer:
        require_writable(path)
    elif not path.exists():
        raise ClusterError(f"the store {path} does not exist: start `ropewalk serve` once, or check the path")


def _unusable(engine: Engine, problem: OperationalError) -> ClusterError:
    name = engine.url.render_as_string(hide_password=True)
    fact = str(problem.orig).strip().splitlines()[0] if problem.orig else "it does not answer"
    return ClusterError(f"the store {name} cannot be used: {fact}: check that it exists and may be written to")
