"""What somebody asks in the browser: a command with its options and files, checked before anything runs.

Whatever a browser sends is hostile. Commands come from a list, options from the command itself; values may not name
files of this machine, and code of users is never run.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ropewalk import __version__
from ropewalk.errors import InputError

MOST_VALUES = 200
LONGEST_VALUE = 2_000
MOST_FILES = 8
MOST_FILE_BYTES = 4_000_000
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
FILE_KINDS = (".yaml", ".yml", ".json", ".csv", ".txt", ".xml", ".graphml", ".toml", ".conf", ".log")
OUTSIDE = re.compile(r"(^|[,=:;@\s])\s*[/~\\]|\.\.|[A-Za-z]:\\")
"""In a value: a path that leaves the folder of the question."""
CODE = re.compile(r"\.py(:|$)", re.IGNORECASE)
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Asked:
    """A command line, and the files that it reads by name.

    >>> Asked(("plan",), ("gpt2", "--batch", "64")).command_line
    'ropewalk plan gpt2 --batch 64'
    >>> Asked(("plan",), ("net.py:Net",))
    Traceback (most recent call last):
        ...
    ropewalk.errors.InputError: 'net.py:Net' is code, which no browser may run: use the command line
    """

    command: tuple[str, ...]
    arguments: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.arguments) > MOST_VALUES:
            raise InputError(f"{len(self.arguments)} options and values: give at most {MOST_VALUES}")
        for value in self.arguments:
            _check_value(value)
        if len(self.files) > MOST_FILES:
            raise InputError(f"{len(self.files)} files: send at most {MOST_FILES}")
        for name, content in self.files.items():
            _check_file(name, content)

    @property
    def command_line(self) -> str:
        """What gives the same answer in a terminal."""
        return shlex.join(["ropewalk", *self.command, *self.arguments])

    @property
    def key(self) -> str:
        """The same question to the same version has the same key, whoever asks."""
        files = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(self.files.items())}
        text = json.dumps([__version__, self.command, self.arguments, files], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def as_document(self) -> dict[str, Any]:
        return {
            "command": list(self.command),
            "arguments": list(self.arguments),
            "command_line": self.command_line,
            "files": sorted(self.files),
            "version": __version__,
        }


def _check_value(value: str) -> None:
    if len(value) > LONGEST_VALUE:
        raise InputError(f"a value has {len(value):,} characters: give at most {LONGEST_VALUE:,}")
    if CONTROL.search(value):
        raise InputError(f"{value!r} has control characters: leave them out")
    if CODE.search(value):
        raise InputError(f"{value!r} is code, which no browser may run: use the command line")
    if OUTSIDE.search(value):
        raise InputError(f"{value!r} names a file of the machine: send the file itself and give its name alone")


def _check_file(name: str, content: bytes) -> None:
    if not FILE_NAME.fullmatch(name) or ".." in name or not name.lower().endswith(FILE_KINDS):
        raise InputError(f"a file is called {name[:80]!r}: send one that ends in {', '.join(FILE_KINDS)}")
    if len(content) > MOST_FILE_BYTES:
        raise InputError(f"{name} has {len(content):,} bytes: send at most {MOST_FILE_BYTES:,}")
