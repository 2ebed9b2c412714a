"""Packages that only some people need: how to get them into the Python that ropewalk runs in."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def how_to_install(extra: str) -> str:
    """The command that installs an extra: from a clone and from a wheel alike, because ropewalk itself is there.

    `pip` alone is another Python's wherever the virtual environment of this one is not active.
    """
    return f'{_pip()} install "ropewalk[{extra}]"'


def _pip() -> str:
    found = shutil.which("pip")
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return "pip"
    return f"{shlex.quote(sys.executable)} -m pip"
