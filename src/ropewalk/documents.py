"""YAML and JSON as people write them: read strictly, with the position of every mistake."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

from ropewalk.errors import InputError

Problem = type[InputError]
Parser = Callable[[str, str, Problem], object]
"""(text, what it is the text of, error to raise) -> the document as lists, mappings and scalars."""


def read_bytes(path: Path, subject: str, error: Problem) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise error(f"{subject} does not exist: check the path") from None
    except OSError as problem:
        raise error(f"{subject} cannot be read: {problem.strerror or problem}: check the path") from None


def decode(content: bytes, subject: str, error: Problem) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise error(f"{subject} is not UTF-8 text (byte {problem.start}): save it as UTF-8") from None


def parse_json(text: str, subject: str, error: Problem) -> object:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        again = _place_of_repeated(key for key, _ in pairs)
        if again is not None:
            raise error(f"{subject}: the key {pairs[again][0]!r} is given twice in one object: remove one of the two")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise error(f"{subject}: {where}: {problem.msg}: fix the JSON") from None
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise error(f"{subject}: a number has more than {most} digits: fix the JSON") from None
    except RecursionError:
        raise error(f"{subject}: the JSON is nested too deeply: write flat lists") from None


def json_text(value: Any) -> str:
    """A document as JSON with one entry per line, where numbers of a list stand side by side.

    >>> print(json_text({"ends": [[0, 1], [1, 2]]}), end="")
    {
     "ends": [
      [0, 1],
      [1, 2]
     ]
    }
    """
    return _json_text(value, "") + "\n"


def _json_text(value: Any, indent: str) -> str:
    inner = indent + " "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(key)}: {_json_text(entry, inner)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        return "[\n" + ",\n".join(inner + _json_text(entry, inner) for entry in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


def parse_yaml(text: str, subject: str, error: Problem) -> object:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """PyYAML keeps the last of two equal keys; that would lose half of a file unseen."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            # Keys that are themselves lists or mappings are refused by PyYAML, which says so better.
            named = [key for key, _ in node.value if isinstance(key.value, str)]
            again = _place_of_repeated(key.value for key in named)
            if again is not None:
                where = f"line {named[again].start_mark.line + 1}"
                raise error(f"{subject}: {where}: the key {named[again].value!r} is given twice: remove one of the two")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise error(f"{subject}: {where}{problem.problem or problem.context}: fix the YAML there") from None
    except (yaml.YAMLError, ValueError, TypeError) as problem:
        raise error(f"{subject}: {' '.join(str(problem).split())}: fix the YAML") from None
    except RecursionError:
        raise error(f"{subject}: the YAML is nested too deeply: write flat lists") from None


def _place_of_repeated(keys: Iterable[Hashable]) -> int | None:
    """Where a key stands that was there before."""
    seen: set[Hashable] = set()
    for place, key in enumerate(keys):
        if key in seen:
            return place
        seen.add(key)
    return None
