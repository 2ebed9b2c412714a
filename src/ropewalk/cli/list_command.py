"""`ropewalk list`: everything that can be chosen by name, with a sentence about each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from ropewalk.cli.screen import JSON, console, print_json, print_wrapped
from ropewalk.cli.tables import TABLES, table
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.choices import Choice, Choices


def list_command(
    kind: str | None = typer.Argument(None, metavar="[KIND]", help=f"{', '.join(TABLES)}.  [default: all kinds]"),
    search: list[str] = typer.Argument(None, metavar="[SEARCH]...", help="Only entries that contain all these words."),
    json: bool = JSON,
) -> None:
    """List everything that can be chosen by name, and where it applies.

    Examples: `ropewalk list`, `ropewalk list models llama`, `ropewalk list routers torus --json`
    """
    if kind is None:
        _list_kinds(json)
        return
    choices = table(kind)
    found = _matching(choices, search or [])
    if json:
        print_json({kind: [choice.as_json() for choice in found]})
    else:
        print_wrapped(_table(found))


def _list_kinds(json: bool) -> None:
    counts = {plural: len(table(plural)) for plural in TABLES}
    if json:
        print_json(counts)
        return
    shown = _plain_table("kind", "count", "examples")
    for plural, count in counts.items():
        names = list(table(plural))
        shown.add_row(plural, str(count), ", ".join(names[:4]) + (", …" if count > 4 else ""))
    print_wrapped(shown)
    console().print("`ropewalk list KIND [SEARCH]` describes each entry")


def _matching(choices: Choices[Choice[Any]], words: list[str]) -> list[Choice[Any]]:
    found = [choice for choice in choices.values() if all(word.lower() in _text(choice) for word in words)]
    if not found:
        raise InputError(
            f"no {choices.kind} matches {' '.join(words)!r}: {choices.hint(words[0])}"
            f"`ropewalk list {choices.plural}` lists all {len(choices)}"
        )
    return found


def _text(choice: Choice[Any]) -> str:
    """What a search looks at."""
    return " ".join([choice.name, choice.title, choice.about, *choice.facts().values()]).lower()


def _table(found: list[Choice[Any]]) -> Table:
    shown = _plain_table("name", "description", *found[0].facts())
    for choice in found:
        shown.add_row(choice.name, choice.about, *choice.facts().values())
    return shown


def _plain_table(*headings: str) -> Table:
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        shown.add_column(heading, no_wrap=number == 0, overflow="fold")
    return shown
