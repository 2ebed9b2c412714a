"""Files that are written whole or not at all: a reader never sees half of one, and a crash leaves the old one."""

from __future__ import annotations

import os
from pathlib import Path

from ropewalk.errors import InputError

LONGEST_NAME = 255
"""Bytes of the name of a file."""


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


def is_file(path: str | Path) -> bool:
    """Is there such a file? Paths that no file system takes (too long, with a NUL) name none."""
    return os.path.isfile(path)


def is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)


def is_there(path: str | Path) -> bool:
    """Is there anything of this name?"""
    return os.path.exists(path)


def real_path(path: str | Path) -> Path:
    """The path without links; one that leads in a circle stays as it is."""
    return Path(os.path.realpath(path))


def require_writable(path: str | Path) -> None:
    """Refuse a path that cannot be written to, before hours of work depend on it; makes the folder it needs."""
    target = _place_for(path)
    if is_there(target) and not is_file(target):
        return  # a pipe or a terminal
    trial = _beside(target)
    try:
        trial.touch(exist_ok=False)
        trial.unlink()
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror or problem}: choose another path") from None


def _place_for(path: str | Path) -> Path:
    """Where a file of this name is written, in a folder that is there."""
    target = real_path(path)
    if len(os.fsencode(target.name)) > LONGEST_NAME:
        raise InputError(f"cannot write {path}: its name is longer than {LONGEST_NAME} bytes: choose a shorter one")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror or problem}: choose another path") from None
    if is_folder(target):
        raise InputError(f"cannot write {path}: it is a folder: name a file in it")
    return target


def _beside(target: Path) -> Path:
    """A name in the same folder that nothing else has."""
    return target.with_name(f".ropewalk-{os.getpid()}-{os.urandom(4).hex()}.part")


def _as_utf_8(text: str) -> bytes:
    """Text as UTF-8; bytes of file names that Python could not decode are what they are in UTF-8, or question marks."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()


_written = 0


def note_written() -> None:
    """A file or a folder has taken its place: a command that is stopped from now on leaves something behind."""
    global _written
    _written += 1


def has_written() -> bool:
    """Has this process written a file of its user's?"""
    return _written > 0


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file through a temporary neighbour that takes its place when it is complete."""
    target = _place_for(path)
    data = _as_utf_8(content) if isinstance(content, str) else content
    try:
        if is_there(target) and not is_file(target) and not is_folder(target):
            target.write_bytes(data)  # a pipe or a terminal cannot be replaced, only written to
            note_written()
            return
        temporary = _beside(target)
        try:
            with open(temporary, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
            note_written()
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as problem:
        remedy = "choose another path"
        raise InputError(f"cannot write {path}: {problem.strerror or problem}: {remedy}") from None
