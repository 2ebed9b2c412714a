"""A copy of a SQLite store while its service runs: complete, consistent, in one file, on disk when it is there."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ropewalk.errors import InputError
from ropewalk.files import is_there, require_writable
from ropewalk.serve.store.engine import PRIVATE, engine_of, sqlite_file, url_of


def back_up(url: str, to: Path) -> int:
    """Copy the store to a file that does not exist yet; answers its size in bytes."""
    require_writable(to)
    if is_there(to):
        raise InputError(f"{to} already exists: name a new file")
    source = None if url_of(url).get_backend_name() == "postgresql" else sqlite_file(engine_of(url))
    if source is None:
        raise InputError("the database is PostgreSQL, which has its own tools: pg_dump --format=custom")
    if not is_there(source):
        raise InputError(f"the database {source} does not exist: check --database")
    part = to.with_name(f".{to.name}.part")
    try:
        part.unlink(missing_ok=True)  # of a backup that was killed, with whatever mode
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
        _copy(source, part)
        os.replace(part, to)
    except (sqlite3.Error, OSError) as problem:
        raise InputError(f"{source} cannot be copied to {to} ({problem}): check the path and the disk") from None
    finally:
        part.unlink(missing_ok=True)
    return to.stat().st_size


def _copy(source: Path, part: Path) -> None:
    there, here = sqlite3.connect(source), sqlite3.connect(part)
    try:
        there.backup(here)
        here.execute("PRAGMA journal_mode=DELETE").fetchall()  # one file, whoever opens it
        (verdict,) = here.execute("PRAGMA integrity_check").fetchone()
    finally:
        there.close()
        here.close()
    if verdict != "ok":
        raise InputError(f"the copy of {source} is damaged ({verdict}): check the disk")
    with open(part, "rb+") as written:
        os.fsync(written.fileno())
