"""Options that are numbers, read strictly: digits as people mean them, finite, within 64 bits.

Typer reads `1_000`, digits of other scripts, `nan` and `inf`. Each of them is a slip that no later check can see.
"""

from __future__ import annotations

import types
from typing import Any, Union, get_args, get_origin

from ropewalk.documents.numbers import digits_alone, finite, whole
from ropewalk.errors import InputError

_READERS = {int: (whole, "a whole number such as 64"), float: (finite, "a finite number such as 0.5")}


def read_strictly(parameter: Any) -> None:
    """Let an option or argument refuse text that is not the number it takes."""
    kind = _number_of(parameter)
    if kind is None:
        return
    process = parameter.process_value

    def processed(context: Any, value: Any) -> Any:
        for text in value if isinstance(value, tuple | list) else (value,):
            if isinstance(text, str):
                _check(parameter, kind, text.strip())
        return process(context, value)

    parameter.process_value = processed


def _check(parameter: Any, kind: type, text: str) -> None:
    read, wanted = _READERS[kind]
    try:
        read(text)
    except ValueError:
        name = max(parameter.opts, key=len) if parameter.opts[0].startswith("-") else parameter.name.upper()
        if kind is int and digits_alone(text.lstrip("+-")):
            raise InputError(f"{name} {text[:40]} does not fit 64 bits: give {wanted}") from None
        raise InputError(f"{name} {text[:40]!r} is not {wanted}: write it with the digits 0 to 9") from None


def _number_of(parameter: Any) -> type | None:
    """The kind of number that a parameter takes, one of them or several; None where it takes something else."""
    described = getattr(parameter, "type_descriptor", None)
    if described is None:  # releases of Typer that use Click's own types
        name = type(parameter.type).__name__.lower()
        return next((kind for kind in _READERS if name.startswith(kind.__name__)), None)
    return next((kind for kind in _READERS if kind in _inside(described.annotation)), None)


def _inside(annotation: Any) -> set[Any]:
    if get_origin(annotation) in (Union, types.UnionType, list, tuple):
        return set().union(*map(_inside, get_args(annotation)))
    return {annotation}
