"""Options that belong together, each written once and added to every command that asks for them.

A group is a data class; it may extend another, and hold others. Each of its fields that is no group is the option whose
constant stands in the same module, in capitals:

    BUFFER = typer.Option(None, help="Shared buffer of every switch.")

    @dataclass(frozen=True)
    class PacketChoices:
        buffer: str | None
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, get_type_hints


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose arguments are options; those that are groups are typed as the options they are made of."""
    written = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        one.name: one.annotation for one in written.parameters.values() if is_dataclass(one.annotation)
    }
    options = [
        option
        for one in written.parameters.values()
        for option in (_options(groups[one.name]) if one.name in groups else [one.replace(kind=one.KEYWORD_ONLY)])
    ]

    def run(**given: Any) -> None:
        gathered = {name: _gathered(kind, given) for name, kind in groups.items()}
        command(**gathered, **given)

    # Typer reads options from the signature and their types from the annotations.
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in options}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def names_of(kind: type) -> list[str]:
    """The parameters of a group and of those in it, as a command has them."""
    return [option.name for option in _options(kind)]


def _gathered(kind: Any, given: dict[str, Any]) -> Any:
    """A group made of what was typed, which it takes out of `given`."""
    types = get_type_hints(kind)
    inside = {field.name: types[field.name] for field in fields(kind)}
    return kind(**{
        name: _gathered(one, given) if is_dataclass(one) else given.pop(name) for name, one in inside.items()
    })  # fmt: skip


def _options(kind: Any) -> list[inspect.Parameter]:
    types = get_type_hints(kind)
    found = []
    for field in fields(kind):
        if is_dataclass(types[field.name]):
            found += _options(types[field.name])
            continue
        constant = getattr(_module_of(kind, field.name), field.name.upper())
        found.append(inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=constant, annotation=types[field.name]
        ))  # fmt: skip
    return found


def _module_of(kind: type, name: str) -> ModuleType:
    """Where a field is written: in the group itself, or in one that it extends."""
    return next(sys.modules[one.__module__] for one in kind.__mro__ if name in vars(one).get("__annotations__", {}))
