"""Several files that belong together are written together: none takes its place before all of them are complete."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ropewalk.errors import InputError
from ropewalk.files import note_written, real_path, require_writable


def write_together(content: Mapping[Path, bytes]) -> None:
    """Write all files through temporary neighbours; what cannot be written is refused before any file changes."""
    for path in content:
        require_writable(path)
    staged: list[tuple[Path, Path]] = []
    try:
        for path, data in content.items():
            target = real_path(path)
            temporary = target.with_name(f".ropewalk-{os.getpid()}-{len(staged)}.part")
            staged.append((temporary, target))
            with open(temporary, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        for temporary, target in staged:
            os.replace(temporary, target)
            note_written()
    except OSError as problem:
        where = problem.filename or next(iter(content))
        raise InputError(f"cannot write {where}: {problem.strerror or problem}: choose another prefix") from None
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
