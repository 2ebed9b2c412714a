"""A power cut: whatever SQLite had not synced is gone, and nothing acknowledged is among it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import sqlite_syncs
from serve_invariants import check

from ropewalk.serve.operation import End, Submit
from ropewalk.serve.restored import restored
from ropewalk.serve.service import open_writer
from ropewalk.serve.store import checkpoints, engine, open_store
from ropewalk.tenancy.plant import plant

pytestmark = pytest.mark.skipif(sqlite_syncs.missing() is not None, reason=str(sqlite_syncs.missing()))
OPERATIONS, CUTS = 160, 20


def _lost(folder: Path) -> tuple[int, int]:
    """(cuts after which something acknowledged was gone, syncs) of a writer that is cut off again and again."""
    chance, database = random.Random(3), folder / "state.db"
    lost, ended = 0, set()
    with sqlite_syncs.watched() as log:
        store = open_store(str(database))
        writer = open_writer(store, plant("leaf-spine:4x8x8", gpus_per_server=4)).start()
        for number in range(OPERATIONS):
            job = writer.submit(Submit("job", 8, labels={"padding": "x" * 200})).result().document["id"]
            if chance.random() < 0.9:
                writer.submit(End(job)).result()
                ended.add(job)
            if number % (OPERATIONS // CUTS) == 0:
                lost += _is_lost(log, database, folder / f"cut{number}", number + 1, ended, chance)
        writer.close()
        store.close()
    return lost, log.syncs


def _is_lost(
    log: sqlite_syncs.SyncLog, database: Path, folder: Path, submitted: int, ended: set[str], chance: random.Random
) -> bool:
    """Half of the time a part of what was not synced has reached the disk all the same."""
    wal = str(database) + "-wal"
    synced, now = log.files.get(wal, b""), log.now(wal)
    more = (
        {wal: now[: chance.randint(len(synced), len(now))]} if now.startswith(synced) and chance.random() < 0.5 else {}
    )
    try:
        store = open_store(str(log.image(database, folder, more)))
    except Exception:
        return True  # not even the tables are there
    try:
        saved = store.load()
        if saved is None:
            return True
        check(restored(saved).state)
        kept = [store.job(f"j{number}") for number in range(1, submitted + 1)]
        return None in kept or not ended <= {job.id for job in kept if job and job.state == "ended"}
    finally:
        store.close()


def test_no_acknowledged_operation_is_lost_with_the_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    lost, syncs = _lost(tmp_path)
    assert lost == 0
    assert syncs > OPERATIONS
    assert not list(here.iterdir()), "SQLite keeps pointers to names of files: one that was a copy names stray files"


def test_the_same_cuts_find_a_store_that_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "DURABLE", ("journal_mode=WAL", "synchronous=NORMAL"))
    monkeypatch.setattr(checkpoints.Checkpoints.__init__, "__defaults__", (1e9, 10**9))  # copying syncs the log, too
    lost, _ = _lost(tmp_path)
    assert lost > CUTS // 2
