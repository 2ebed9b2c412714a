"""Files that are written whole or not at all: a reader never sees half of one, and a crash leaves the old one."""

from __future__ import annotations

import os
from pathlib import Path

from ropewalk.errors import InputError


def seen_from(folder: Path, name: str) -> str:
    """The name of a file as a document in this folder writes it down; `found_from` finds it again from anywhere.

    >>> seen_from(Path("plans"), "models/net.yaml"), found_from(Path("plans"), "../models/net.yaml")
    ('../models/net.yaml', 'models/net.yaml')
    """
    return name if os.path.isabs(name) else os.path.relpath(name, folder)


def found_from(folder: Path, name: str) -> str:
    """The file that a document in this folder names."""
    path = os.path.normpath(folder / name)
    return path if os.path.isabs(path) else os.path.relpath(path)


def require_writable(path: str | Path) -> None:
    """Refuse a path that cannot be written to, before hours of work depend on it; makes the folder it needs."""
    target = Path(path)
    try:
        target.resolve().parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror or problem}: choose another path") from None
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a folder: name a file in it")


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file through a temporary neighbour that takes its place when it is complete."""
    require_writable(path)
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        target = target.resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)  # a pipe or a terminal cannot be replaced, only written to
            return
        temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with open(temporary, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as problem:
        remedy = "choose another path"
        raise InputError(f"cannot write {path}: {problem.strerror or problem}: {remedy}") from None
