"""`--memory-limit`: one option with one meaning for every command whose work can be large."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer

from ropewalk import units
from ropewalk.errors import InputError

MEMORY_LIMIT = typer.Option(
    None,
    metavar="SIZE",
    help="Refuse or stop work that takes more memory than this, such as 4GB.  [default: what this machine has]",
)


def _said_first(forecast: str) -> None:
    typer.echo(f"ropewalk: {forecast}", err=True)


def within_memory(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes `--memory-limit` and keeps to it."""
    written = inspect.signature(command, eval_str=True)

    def run(*, memory_limit: str | None, **given: Any) -> None:
        from ropewalk.room import LOWEST_LIMIT, memory_limited_to

        limit = None if memory_limit is None else units.size(memory_limit)
        if limit is not None and limit < LOWEST_LIMIT:
            least = units.show_size(LOWEST_LIMIT)
            raise InputError(
                f"--memory-limit {memory_limit} is less than the program itself takes: give {least} or more"
            )
        with memory_limited_to(limit, _said_first):
            command(**given)

    added = inspect.Parameter(
        "memory_limit", inspect.Parameter.KEYWORD_ONLY, default=MEMORY_LIMIT, annotation=str | None
    )
    own = [one.replace(kind=one.KEYWORD_ONLY) for one in written.parameters.values()]
    # Typer reads options from the signature and their types from the annotations.
    run.__signature__ = inspect.Signature([*own, added])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, added)}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run
