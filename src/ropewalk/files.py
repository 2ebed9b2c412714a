"""Files that are written whole or not at all: a reader never sees half of one, and a crash leaves the old one."""

from __future__ import annotations

import os
from pathlib import Path

from ropewalk.errors import InputError


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file through a temporary neighbour that takes its place when it is complete."""
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
        remedy = f"create the folder {target.parent}" if not target.parent.is_dir() else "choose another path"
        raise InputError(f"cannot write {path}: {problem.strerror or problem}: {remedy}") from None
