"""SQLite's write-ahead log is copied into the database by a thread of its own, so that no commit waits for that.

A commit is on disk when the log is. Left to itself SQLite copies the log, 1,000 pages of it, inside the commit that
makes it so long, and has the database synced there: many times what a commit takes. Here a second connection does most
of it while the writer goes on. What was added meanwhile, a few pages, the writer copies itself between two commits when
the log has become long: only then can it begin anew at the beginning of its file.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from typing import Any

from sqlalchemy import Engine

from ropewalk.serve import failpoints

EVERY_S = 0.5
"""How often the log is looked after while there are commits."""
LONG = 8_000
"""Pages of the log, 32 MB, from which on the writer has it begin anew."""
LOGGER = logging.getLogger("ropewalk.serve")


class Checkpoints:
    """The thread, and what the writer has to do with it."""

    def __init__(self, engine: Engine, every_s: float = EVERY_S, long: int = LONG) -> None:
        self._engine, self._every_s, self._long = engine, every_s, long
        self._committed, self._stop = threading.Event(), threading.Event()
        self._due = False
        """Is the log long, and all but its last pages copied?"""
        self._problem = ""
        self._thread = threading.Thread(target=self._run, name="ropewalk-checkpoints", daemon=True)

    def start(self, writer: Any) -> Checkpoints:
        """From now on the commits of this connection of the driver copy nothing."""
        writer.execute("PRAGMA wal_autocheckpoint=0").fetchall()
        self._thread.start()
        return self

    def committed(self, writer: Any) -> None:
        """The writer has committed and is in no transaction: the end of a long log is its own to copy."""
        self._committed.set()
        if self._due:
            self._due = False
            self._copy(writer)

    def close(self) -> None:
        self._stop.set()
        self._committed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pooled = self._engine.raw_connection()
        try:
            while self._committed.wait() and not self._stop.wait(self._every_s):
                self._committed.clear()
                pages = self._copy(pooled.dbapi_connection)
                self._due = pages >= self._long
        finally:
            pooled.close()

    def _copy(self, connection: Any) -> int:
        """Copy what can be copied without anybody waiting; answers how many pages the log has."""
        try:
            _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._problem = ""
            failpoints.reach("checkpoint")
            return int(pages)
        except sqlite3.Error as problem:  # the log has everything: a full disk fails the next commit
            if str(problem) != self._problem:
                LOGGER.warning("the write-ahead log cannot be copied into the database: %s", problem)
            self._problem = str(problem)
            return 0
