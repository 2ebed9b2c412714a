"""Options that several commands have in common, each written once and added to every command that asks for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from types import ModuleType
from typing import Any, get_type_hints

from ropewalk.cli import cluster_plant, cluster_trace
from ropewalk.cli.cluster_plant import PlantOptions
from ropewalk.cli.cluster_trace import ReplayOptions

GROUPS: dict[type, ModuleType] = {PlantOptions: cluster_plant, ReplayOptions: cluster_trace}
"""Every field of such a record is the option whose constant in this module has its name."""


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose arguments of type `PlantOptions` or `ReplayOptions` are typed as options of their own."""
    written = inspect.signature(command, eval_str=True)
    groups = {one.name: one.annotation for one in written.parameters.values() if one.annotation in GROUPS}
    own = [one.replace(kind=one.KEYWORD_ONLY) for one in written.parameters.values() if one.name not in groups]
    added = [one for kind in groups.values() for one in _options(kind)]

    def run(**given: Any) -> None:
        gathered = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()
        }
        command(**gathered, **given)

    # Typer reads options from the signature and their types from the annotations.
    run.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *added)}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _options(kind: type) -> list[inspect.Parameter]:
    types, constants = get_type_hints(kind), GROUPS[kind]
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(constants, field.name.upper()),
            annotation=types[field.name],
        )
        for field in fields(kind)
    ]
