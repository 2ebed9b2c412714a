"""Packages that only some people need: how to get them into the Python that ropewalk runs in."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path

_OF_EXTRA = re.compile(r"""(?P<package>[\w.-]+)[^;]*;.*\bextra == ['"](?P<extra>\w+)['"]""")
"""A requirement of an extra, as the metadata of a package has it."""


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


def extra_with(module: str) -> str | None:
    """The extra that brings a module, by what the installed ropewalk says that it requires; None where none does.

    That for its developers (`dev`) brings the packages of others as well, and is no advice for users.
    """
    name = module.partition(".")[0].lower()
    for requirement in metadata.requires("ropewalk") or ():
        found = _OF_EXTRA.match(requirement)
        if found is None or found["extra"] == "dev":
            continue
        if found["package"].lower().replace("-", "_") == name:
            return found["extra"]
    return None
