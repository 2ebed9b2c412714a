"""What is on disk after a power cut: SQLite's files as they were when they were last synced.

SQLite opens files through a table of functions. While a `SyncLog` watches, `xOpen` of the default table hands out files
whose `xSync` also keeps a copy of the file: that is all a disk has promised to remember.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POINTER, INT = ctypes.c_void_p, ctypes.c_int
Open = ctypes.CFUNCTYPE(INT, POINTER, POINTER, POINTER, INT, POINTER)
Sync = ctypes.CFUNCTYPE(INT, POINTER, INT)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", INT), ("file_size", INT), ("longest_path", INT), ("next", POINTER), ("name", ctypes.c_char_p),
        ("data", POINTER), ("open", POINTER),
    )  # fmt: skip


class _Methods(ctypes.Structure):
    """As many functions as version 3 has; `sync` is the fifth."""

    _fields_ = (
        ("version", INT), ("close", POINTER), ("read", POINTER), ("write", POINTER), ("truncate", POINTER),
        ("sync", POINTER), *((f"other{number}", POINTER) for number in range(13)),
    )  # fmt: skip


class _File(ctypes.Structure):
    _fields_ = (("methods", POINTER),)


def missing() -> str | None:
    """Why nothing can be watched here; None where it can."""
    library = _library()
    if library is None:
        return "Python's SQLite is not the shared library, so that its files cannot be watched"
    library.sqlite3_libversion.restype = ctypes.c_char_p
    if library.sqlite3_libversion().decode() != sqlite3.sqlite_version:
        return "Python's SQLite is another library than the shared one"
    return None


@dataclass
class SyncLog:
    """The content of every file at its last sync."""

    files: dict[str, bytes] = field(default_factory=dict)
    syncs: int = 0
    _open: dict[tuple[int, int], int] = field(default_factory=dict)

    def now(self, path: str) -> bytes:
        """What a file holds. It is never closed again: closing it would give back SQLite's locks of this process."""
        found = os.stat(path)
        inode = found.st_dev, found.st_ino
        if inode not in self._open:
            self._open[inode] = os.open(path, os.O_RDONLY)
        return os.pread(self._open[inode], found.st_size, 0)

    def image(self, database: Path, folder: Path, more: dict[str, bytes] | None = None) -> Path:
        """A database as a power cut leaves it, with what else may have reached the disk; deleted files are gone."""
        folder.mkdir()
        for path, content in {**self.files, **(more or {})}.items():
            if path.startswith(str(database)) and Path(path).exists():
                (folder / Path(path).name).write_bytes(content)
        return folder / database.name


@contextmanager
def watched() -> Iterator[SyncLog]:
    """Files that SQLite opens in this block are watched as long as the process lives."""
    library = _library()
    assert library is not None
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = library.sqlite3_vfs_find(None).contents
    original, log = vfs.open, SyncLog()
    open_file = Open(original)
    tables: dict[int, Any] = {}

    def watching(table: int, name: int | None, file: int, flags: int, out: int) -> int:
        code = int(open_file(table, name, file, flags, out))  # the very same name: SQLite keeps the pointer
        if code == 0 and name is not None:
            at = _File.from_address(file)
            if at.methods is not None:
                at.methods = ctypes.addressof(_patched(at.methods, file, ctypes.string_at(name).decode(), log, tables))
        return code

    callback = Open(watching)
    vfs.open = ctypes.cast(callback, POINTER).value
    _KEPT.append((callback, tables))
    try:
        yield log
    finally:
        vfs.open = original


_KEPT: list[Any] = []
"""Callbacks that C code may still call."""


def _patched(methods: int, file: int, name: str, log: SyncLog, tables: dict[int, Any]) -> _Methods:
    """A copy of the file's functions with a `sync` that keeps what the file holds."""
    copy = _Methods.from_buffer_copy(_Methods.from_address(methods))
    sync_file = Sync(copy.sync)

    def syncing(at: int, flags: int) -> int:
        code = int(sync_file(at, flags))
        log.files[name] = log.now(name)
        log.syncs += 1
        return code

    callback = Sync(syncing)
    copy.sync = ctypes.cast(callback, POINTER).value
    tables[file] = (copy, callback, sync_file)
    _KEPT.append(tables[file])
    return copy


def _library() -> Any:
    name = ctypes.util.find_library("sqlite3")
    return None if name is None else ctypes.CDLL(name)
