"""SQLite's log is copied into the database beside the commits, and begins anew when it has become long."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from threading import Semaphore, current_thread
from typing import Any

import pytest

from ropewalk.serve.operation import End, Submit
from ropewalk.serve.service import open_writer
from ropewalk.serve.store import checkpoints, open_store
from ropewalk.tenancy.plant import plant

SMALL = plant("leaf-spine:4x8x8", gpus_per_server=4)
PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""


def _work(path: Path, operations: int, turns: Semaphore | None = None) -> int:
    """Jobs come and go; answers the bytes of the log afterwards. With turns the thread has one every ten jobs."""
    store = open_store(str(path))
    writer = open_writer(store, SMALL).start()
    for number in range(operations):
        while turns is not None and turns.acquire(blocking=False):
            pass
        job = writer.submit(Submit("job", 8, labels={"padding": "x" * 200})).result().document["id"]
        writer.submit(End(job)).result()
        if turns is not None and number % 10 == 0:
            assert turns.acquire(timeout=PATIENCE_S)
    size = path.with_name(path.name + "-wal").stat().st_size
    writer.close()
    store.close()
    return size


def test_the_database_has_what_the_log_had_without_any_commit_copying_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints.Checkpoints.__init__, "__defaults__", (0.01, 10**9))
    store = open_store(str(tmp_path / "state.db"))
    writer = open_writer(store, SMALL).start()
    writer.submit(Submit("job", 8)).result()
    connection = store._writer.connection.dbapi_connection  # type: ignore[union-attr]
    assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    alone = f"file:{tmp_path / 'state.db'}?immutable=1"  # the file, without its log
    kept: list[tuple[str]] = []
    until = time.monotonic() + PATIENCE_S
    while not kept and time.monotonic() < until:
        with closing(sqlite3.connect(alone, uri=True)) as reader, suppress(sqlite3.Error):
            kept = reader.execute("SELECT id FROM job").fetchall()
        time.sleep(0.01)
    assert kept == [("j1",)]
    writer.close()
    store.close()


def test_a_long_log_begins_anew_while_there_are_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns, copy = Semaphore(0), checkpoints.Checkpoints._copy

    def noted(self: checkpoints.Checkpoints, connection: Any) -> int:
        pages = copy(self, connection)
        if current_thread() is self._thread:
            turns.release()
        return pages

    monkeypatch.setattr(checkpoints.Checkpoints, "_copy", noted)
    monkeypatch.setattr(checkpoints.Checkpoints.__init__, "__defaults__", (0.005, 50))
    anew = _work(tmp_path / "anew.db", 300, turns)
    monkeypatch.setattr(checkpoints.Checkpoints.__init__, "__defaults__", (1e9, 50))
    never = _work(tmp_path / "never.db", 300)
    assert anew < never / 2


def test_a_log_that_cannot_be_copied_is_said_once_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def execute(self, _: str) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    made = checkpoints.Checkpoints(None)  # type: ignore[arg-type]
    assert [made._copy(Broken()), made._copy(Broken())] == [0, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "the write-ahead log cannot be copied into the database: database or disk is full"
    ]
