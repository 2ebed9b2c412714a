"""One writer: a second process on the same store is refused, whoever the first is."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from sqlalchemy import Connection, text

from ropewalk.errors import ClusterError

ADVISORY_KEY = 0x726F7065
"""Of PostgreSQL's lock, which belongs to the database."""
PATIENCE_S = 5.0
"""A server process of PostgreSQL may outlive a killed client for a moment."""


class FileLock:
    """A lock on a file beside the store; the kernel gives it back when the process is gone, however it went."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(store.name + ".lock")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise _in_use(str(store)) from None

    def close(self) -> None:
        os.close(self._file)


def lock_database(connection: Connection, name: str) -> None:
    """PostgreSQL's advisory lock; it goes with the connection that all changes are written through."""
    until = time.monotonic() + PATIENCE_S
    asked = text("SELECT pg_try_advisory_lock(:key)")
    while not connection.execute(asked, {"key": ADVISORY_KEY}).scalar():
        if time.monotonic() > until:
            raise _in_use(name)
        time.sleep(0.05)


def _in_use(store: str) -> ClusterError:
    return ClusterError(f"another process runs on the store {store}: stop it first, or name another store")
