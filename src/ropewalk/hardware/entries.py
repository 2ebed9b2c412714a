"""Rows of a cluster file, read as far as they can be: one mistake does not hide the others."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ropewalk.errors import Findings

Model = TypeVar("Model", bound=BaseModel)


def read_entry(model: type[Model], value: object, where: str, findings: Findings) -> Model | None:
    """The row without the keys that cannot be read, each of which is a finding; None where a required one is gone."""
    keys = ", ".join(model.model_fields)
    if not isinstance(value, Mapping):
        findings.add(f"{where}{': ' if where else ''}is not a mapping: write the keys {keys}")
        return None
    kept: dict[Any, Any] = dict(value)
    try:
        return model.model_validate(kept)
    except ValidationError as problem:
        for error in problem.errors():
            at = ".".join([where, *map(str, error["loc"])]).strip(".")
            findings.add(f"{at}: {_sentence(model, error)}")
            kept.pop(error["loc"][0], None)
    try:
        return model.model_validate(kept)
    except ValidationError:
        return None


def _sentence(model: type[BaseModel], error: Any) -> str:
    kind, given, limits = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        near = get_close_matches(str(error["loc"][-1]), model.model_fields, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return f"unknown key: {hint}use {', '.join(model.model_fields)}"
    if kind == "missing":
        return "is missing: add it"
    if kind in ("int_type", "greater_than_equal", "less_than_equal"):
        least, most = limits.get("ge", 1), limits.get("le")
        return f"is {given!r}: give a whole number" + (f", at most {most}" if most else f", {least} or more")
    words = {"bool_type": "write true or false", "list_type": "write a list", "string_type": "write it in quotes"}
    if kind in words:
        return f"is {given!r}: {words[kind]}"
    return str(error["msg"]).removeprefix("Value error, ")
