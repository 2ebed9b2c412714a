"""What is wrong with an entry of a document, as a sentence with a remedy instead of a validator's."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

KINDS = {
    "int_type": "give a whole number",
    "int_from_float": "give a whole number",
    "float_type": "give a number",
    "bool_type": "write true or false",
    "string_type": "write it in quotes",
    "list_type": "write a list",
    "tuple_type": "write a list",
}
BOUNDS = {"ge": "{} or more", "gt": "more than {}", "le": "{} or less", "lt": "less than {}"}


def sentence(model: type[BaseModel], error: Any) -> str:
    """One of the errors of Pydantic's `ValidationError`, said with what was given."""
    kind, given, context = error["type"], repr(error["input"])[:60], error.get("ctx", {})
    names = [field.alias or name for name, field in model.model_fields.items()]
    if kind == "extra_forbidden":
        near = get_close_matches(str(error["loc"][-1]), names, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return f"unknown key: {hint}use {', '.join(names)}"
    if kind == "missing":
        return "is missing: add it"
    if kind == "model_type":
        return f"is not a mapping: write the keys {', '.join(names)}"
    if kind in KINDS:
        return f"is {given}: {KINDS[kind]}"
    if kind in ("literal_error", "enum"):
        return f"is {given}: write {context['expected']}"
    bounds = [BOUNDS[name].format(context[name]) for name in BOUNDS if name in context]
    if kind.startswith(("greater_than", "less_than")) and bounds:
        return f"is {given}: give {' and '.join(bounds)}"
    return str(error["msg"]).removeprefix("Value error, ")
