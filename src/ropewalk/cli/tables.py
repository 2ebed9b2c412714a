"""The tables that commands choose from by name, and help texts that name their choices.

A help text says `{routers}` for the names of all routers, `{routers.described}` for names and sentences, and
`{policies.isolates}` for the names of those policies whose record says so. They are filled in when somebody asks for
help: from the tables that are loaded already, and of others from what `blanks.py` has written down, so that help
imports none of them.
"""

from __future__ import annotations

import sys
from copy import copy
from importlib import import_module
from string import Formatter
from typing import Any

from typer.core import TyperCommand

from ropewalk.choices import Choice, Choices
from ropewalk.cli.blanks import in_text, written
from ropewalk.cli.strict_numbers import read_strictly
from ropewalk.errors import InputError

TABLES = {
    "models": ("ropewalk.workload.zoo", "ZOO"),
    "devices": ("ropewalk.device.device", "DEVICES"),
    "stacks": ("ropewalk.workload.zoo.stacks", "STACKS"),
    "dispatchers": ("ropewalk.workload.dispatch", "DISPATCHES"),
    "recomputed-parts": ("ropewalk.strategy.recompute", "MODULES"),
    "presets": ("ropewalk.hardware.presets", "PRESETS"),
    "networks": ("ropewalk.hardware.networks", "NETWORKS"),
    "fabrics": ("ropewalk.fabric.families", "FAMILIES"),
    "routers": ("ropewalk.routing.table", "ROUTERS"),
    "transports": ("ropewalk.sim.transports", "TRANSPORTS"),
    "collectives": ("ropewalk.collectives.table", "COLLECTIVES"),
    "schedules": ("ropewalk.timetable.named", "TIMETABLES"),
    "context-exchanges": ("ropewalk.strategy.context", "EXCHANGES"),
    "orders": ("ropewalk.strategy.order", "ORDERS"),
    "frameworks": ("ropewalk.strategy.frameworks", "FRAMEWORKS"),
    "mixes": ("ropewalk.tenancy.traces.mix", "MIXES"),
    "placements": ("ropewalk.tenancy.placements.table", "PLACEMENTS"),
    "routings": ("ropewalk.tenancy.routings", "ROUTINGS"),
    "policies": ("ropewalk.tenancy.policies", "POLICIES"),
    "drivers": ("ropewalk.serve.rules.table", "DRIVERS"),
    "baselines": ("ropewalk.codesign.baselines", "BASELINES"),
    "benchmarks": ("ropewalk.expect.benchmarks", "BENCHMARKS"),
    "settings": ("ropewalk.expect.settings", "SETTINGS"),
    "testbeds": ("ropewalk.lab.suite.table", "TESTBEDS"),
    "exports": ("ropewalk.export.of_plan", "EXPORTS"),
}
"""Where the table of each kind is, by the plural that people type; read when it is needed."""


def table(plural: str) -> Choices[Choice[Any]]:
    """The table of a kind of choice.

    >>> table("routers").kind
    'router'
    """
    if plural not in TABLES:
        raise InputError(f"there is nothing called {plural!r} to list: use one of {', '.join(TABLES)}")
    module, name = TABLES[plural]
    found: Choices[Choice[Any]] = getattr(import_module(module), name)
    return found


class _Names:
    """What stands for a table in a help text."""

    def __init__(self, choices: Choices[Choice[Any]]) -> None:
        self.choices = choices

    def __str__(self) -> str:
        return ", ".join(self.choices)

    def __getattr__(self, word: str) -> str:
        if word == "described":
            return self.choices.described()
        return ", ".join(name for name, choice in self.choices.items() if getattr(choice, word))


class _Tables(dict[str, _Names]):
    def __missing__(self, plural: str) -> _Names:
        return _Names(table(plural))


def filled(text: str) -> str:
    """A help text with the names that it refers to.

    >>> filled("One of {devices}.").startswith("One of h200, h100, ")
    True
    """
    if "{" not in text:
        return text
    known = written()
    if any(blank not in known or _is_loaded(blank) for blank in in_text(text)):
        return filled_from_tables(text)
    return "".join(said + (known[blank] if blank else "") for said, blank, _, _ in Formatter().parse(text))


def _is_loaded(blank: str) -> bool:
    """Is the table of a blank there, perhaps with choices that were added to it?"""
    return TABLES[blank.partition(".")[0]][0] in sys.modules


def filled_from_tables(text: str) -> str:
    """The same with the tables themselves: it imports them."""
    return text.format_map(_Tables())


class DescribedCommand(TyperCommand):
    """A command whose help texts name the choices of tables, and whose numbers are read strictly."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            read_strictly(parameter)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        shown = copy(self)
        shown.help = filled(self.help or "")
        shown.params = [_described(parameter) for parameter in self.params]
        super(DescribedCommand, shown).format_help(ctx, formatter)


def _described(parameter: Any) -> Any:
    described = copy(parameter)
    if getattr(parameter, "help", None):
        described.help = filled(parameter.help)
    return described
