"""Groups of commands that are imported when somebody asks for them, so that lists and all other commands start at once.

A group has a table of what stands where and the sentence that describes it in a list:

    COMMANDS = {"plan": Later("ropewalk.cli.plan", "plan_command", "What should I do?")}
    app = typer.Typer(cls=group_of(COMMANDS))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

MARKUP: Any = "markdown"
HELP = ("-h", "--help")


@dataclass(frozen=True)
class Later:
    """Where a command or a group of commands is written, and what a list of commands says about it."""

    module: str
    name: str
    about: str
    panel: str | None = None

    def loaded(self, word: str) -> Any:
        """The command itself, called as it is typed."""
        from ropewalk.cli.tables import DescribedCommand

        found = getattr(import_module(self.module), self.name)
        if isinstance(found, typer.Typer):
            command = typer.main.get_command(found)
        else:
            alone = typer.Typer(add_completion=False, rich_markup_mode=MARKUP)
            alone.command(word, cls=DescribedCommand, rich_help_panel=self.panel)(found)
            command = typer.main.get_command(alone)
        command.name = word
        return command

    def listed(self, word: str) -> TyperCommand:
        """What stands for it where commands are listed."""
        return TyperCommand(word, help=self.about, rich_markup_mode=MARKUP, rich_help_panel=self.panel)


class LaterCommands(MutableMapping[str, Any]):
    """The commands of a group by name, each imported the first time that somebody looks at it."""

    def __init__(self, table: Mapping[str, Later]) -> None:
        self._table: dict[str, Later | None] = dict(table)
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, word: str) -> Any:
        later = self._table[word]
        if word not in self._loaded:
            assert later is not None
            self._loaded[word] = later.loaded(word)
        return self._loaded[word]

    def __setitem__(self, word: str, command: Any) -> None:
        self._table.setdefault(word, None)
        self._loaded[word] = command

    def __delitem__(self, word: str) -> None:
        del self._table[word]
        self._loaded.pop(word, None)

    def __contains__(self, word: object) -> bool:
        return word in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def group_of(table: Mapping[str, Later], default: str | None = None, *, alone: bool = False) -> type[TyperGroup]:
    """A group of the commands in a table.

    With a default, `ropewalk cluster jobs.csv` is `ropewalk cluster replay jobs.csv`; with `alone` the default also
    runs where nothing is typed behind the group.
    """

    class LaterGroup(TyperGroup):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "commands": LaterCommands(table)})

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            shown = copy(self)
            shown.commands = {word: later.listed(word) for word, later in table.items()}
            super(LaterGroup, shown).format_help(ctx, formatter)

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if default is not None and (args or alone) and (not args or args[0] not in (*self.commands, *HELP)):
                args = [default, *args]
            return super().parse_args(ctx, args)

    return LaterGroup
