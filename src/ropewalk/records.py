"""Frozen records as plain JSON values, and back: strictly, with every mistake named by its place.

A record is a data class of plain values: numbers, text, enums, tuples, other records. JSON has no infinite number: it
is written as the text `inf`.

>>> from ropewalk.task.transport import Transport
>>> plain(Transport(start_up_s=1e-6))["start_up_s"]
1e-06
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ropewalk.errors import Findings, InputError

Record = TypeVar("Record")

MOST = 1e300
"""Beyond it a number in a file is a slip, and products of such numbers are infinite."""
INFINITE = "inf"


def plain(value: Any) -> Any:
    """A record as mappings, lists and scalars."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.init}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, float):
        # 1 and 1.0 are the same number: one spelling, so that equal records have equal bytes.
        return INFINITE if value == math.inf else int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value


def record(kind: type[Record], value: object, subject: str, error: type[InputError]) -> Record:
    """The record that `plain` made plain; all mistakes are raised together.

    >>> from ropewalk.errors import GraphError
    >>> from ropewalk.task.transport import Transport
    >>> record(Transport, {"start_up_s": "soon", "rate": 1}, "transport", GraphError)
    Traceback (most recent call last):
        ...
    ropewalk.errors.GraphError: transport: 2 findings
      1. rate: unknown entry: remove it
      2. start_up_s is 'soon': give a number
    """
    findings = Findings(error, subject)
    found = _read(kind, value, "", findings)
    findings.raise_if_any()
    return found  # type: ignore[no-any-return]


def _read(kind: Any, value: object, where: str, findings: Findings) -> Any:
    """A value of this type; None with a finding where it is not one."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _one_of(get_args(kind), value, where, findings)
    if origin is Literal:
        known = get_args(kind)
        return value if value in known else _wrong(where, value, f"use one of {', '.join(map(str, known))}", findings)
    if origin is tuple:
        return _sequence(get_args(kind), value, where, findings)
    if origin is list:
        found = _sequence((*get_args(kind), Ellipsis), value, where, findings)
        return found if found is None else list(found)
    if origin in (dict, Mapping):
        return _mapping(get_args(kind), value, where, findings)
    if is_dataclass(kind):
        return _fields(kind, value, where, findings)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            return _wrong(where, value, f"use one of {', '.join(str(one.value) for one in kind)}", findings)
    return _scalar(kind, value, where, findings)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _fields(kind: Any, value: object, where: str, findings: Findings) -> Any:
    if isinstance(value, kind):
        return value  # read before, by a reader of its own
    if not isinstance(value, dict):
        return _wrong(where, value, "give an object", findings)
    before, hints, given = len(findings.messages), _hints(kind), {}
    known = {field.name: field for field in fields(kind) if field.init}
    for name in value:
        if name not in known:
            findings.add(f"{_inside(where, name)}: unknown entry: remove it")
    for name, field in known.items():
        if name in value:
            given[name] = _read(hints[name], value[name], _inside(where, name), findings)
        elif field.default is MISSING and field.default_factory is MISSING:
            findings.add(f"{_inside(where, name)} is missing: give it")
    if len(findings.messages) > before:
        return None
    try:
        return kind(**given)
    except InputError as problem:
        findings.add(str(problem))
        return None


def _one_of(kinds: tuple[Any, ...], value: object, where: str, findings: Findings) -> Any:
    """The first type that fits; the mistakes reported are those of the last that is not None."""
    if value is None and NoneType in kinds:
        return None
    tried = Findings(findings.error, findings.subject)
    for kind in (one for one in kinds if one is not NoneType):
        tried = Findings(findings.error, findings.subject)
        found = _read(kind, value, where, tried)
        if not tried:
            return found
    for message in tried.messages:
        findings.add(message)
    return None


def _sequence(kinds: tuple[Any, ...], value: object, where: str, findings: Findings) -> Any:
    if not isinstance(value, list | tuple):
        return _wrong(where, value, "give a list", findings)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        if kinds[0] in (int, str, bool) and all(type(one) is kinds[0] for one in value) and _fit(value):
            return tuple(value)  # the same in one look at each
        each = (kinds[0],) * len(value)
    else:
        each = kinds
    if len(each) != len(value):
        return _wrong(where, value, f"give a list of {len(each)}", findings)
    return tuple(
        _read(kind, one, f"{where}[{at}]", findings) for at, (kind, one) in enumerate(zip(each, value, strict=True))
    )


def _mapping(kinds: tuple[Any, ...], value: object, where: str, findings: Findings) -> Any:
    if not isinstance(value, dict):
        return _wrong(where, value, "give an object", findings)
    return {key: _read(kinds[1], one, _inside(where, key), findings) for key, one in value.items()}


def _fit(values: Any) -> bool:
    """Do whole numbers among these fit into 64 bits?"""
    return all(abs(one) < 2**63 for one in values if isinstance(one, int))


def _scalar(kind: Any, value: object, where: str, findings: Findings) -> Any:
    if kind is float and value == INFINITE:
        return math.inf
    if kind is Any or (kind is bool and isinstance(value, bool)) or (kind is str and isinstance(value, str)):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if kind is int and isinstance(value, int) and abs(value) < 2**63:
            return value
        if kind is float and abs(value) <= MOST:
            return float(value)
    wanted = {bool: "true or false", str: "text", int: "a whole number", float: "a number"}
    return _wrong(where, value, f"give {wanted.get(kind, kind)}", findings)


def _wrong(where: str, value: object, remedy: str, findings: Findings) -> None:
    shown = repr(value)
    findings.add(f"{where or 'it'} is {shown if len(shown) <= 60 else shown[:57] + '...'}: {remedy}")


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
