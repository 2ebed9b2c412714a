"""What help texts say for `{routers}` and its like, written down so that help need not import what it names.

python -m ropewalk.cli.blanks      # after a table has changed; a test says so
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

FILE = "blanks.json"


@cache
def written() -> dict[str, str]:
    """The text for every blank, as it was written down last."""
    found: dict[str, str] = json.loads(files("ropewalk.cli").joinpath(FILE).read_text("utf-8"))
    return found


def in_text(text: str) -> Iterator[str]:
    """The blanks of a help text.

    >>> list(in_text("One of {devices}; {routers.described}"))
    ['devices', 'routers.described']
    """
    return (blank for _, blank, _, _ in Formatter().parse(text) if blank)


def found() -> dict[str, str]:
    """The text for every blank of every command, as the tables have it."""
    from typer.main import get_command

    from ropewalk.cli import app
    from ropewalk.cli.tables import filled_from_tables

    blanks = {blank for text in _texts(get_command(app)) for blank in in_text(text)}
    return {blank: filled_from_tables(f"{{{blank}}}") for blank in sorted(blanks)}


def _texts(command: Any) -> Iterator[str]:
    for inner in getattr(command, "commands", {}).values():
        yield from _texts(inner)
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""


if __name__ == "__main__":
    text = json.dumps(found(), indent=1, ensure_ascii=False) + "\n"
    Path(__file__).with_name(FILE).write_text(text, "utf-8")
