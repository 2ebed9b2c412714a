"""Open a store: schema, lock, epoch."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ropewalk.errors import ClusterError
from ropewalk.files import is_there, require_writable
from ropewalk.serve.store.engine import PRIVATE, engine_of, sqlite_file
from ropewalk.serve.store.lock import FileLock
from ropewalk.serve.store.store import Store
from ropewalk.serve.store.unusable import DATABASE_ERRORS, unusable
from ropewalk.serve.store.upgrade import prepare


def open_store(url: str, *, upgrade: bool = False, writer: bool = True) -> Store:
    """The store at a path or URL; as its one writer, or beside the writer to read and to manage tokens.

    An empty store gets the schema; an older one is upgraded only where `upgrade` says so.
    """
    engine = engine_of(url)
    path = sqlite_file(engine)
    lock = None
    if path is not None and writer:
        lock = _claimed(path)
    elif path is not None and not is_there(path):
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
        if isinstance(problem, DATABASE_ERRORS):
            raise unusable(engine, problem) from None
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
