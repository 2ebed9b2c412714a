"""JSON, read strictly: each key once, numbers that are numbers, bounded depth; and written with one entry per line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable
from typing import Any, NoReturn

from ropewalk.documents.bounds import check_depth, check_texts, syntax_mistake, too_deep, too_large
from ropewalk.documents.limits import DEEPEST, MOST_BYTES
from ropewalk.documents.opening import Problem, read_text

_LONG_NUMBER = re.compile("[0-9]{19}|[0-9][eE][+]?[0-9]{3}")
"""May be beyond what numbers are read to; most texts have none, and theirs are read without looking at each."""
_ESCAPED = re.compile(r"\\u(?:00[01]|007[fF]|[dD][89a-fA-F])")
"""May be a control character or half a character."""


def read_json(path: Any, subject: str, error: Problem, most: int = MOST_BYTES) -> object:
    """The document in a file, packed with gzip or plain."""
    return parse_json(read_text(path, subject, error, most), subject, error)


def parse_json(text: str, subject: str, error: Problem) -> object:
    """The document as lists, mappings and scalars.

    >>> from ropewalk.errors import InputError
    >>> parse_json('{"a": 1, "a": 2}', "text", InputError)
    Traceback (most recent call last):
        ...
    ropewalk.errors.InputError: text: the key 'a' is given twice in one object: remove one of the two
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        again = place_of_repeated(key for key, _ in pairs)
        if again is not None:
            raise error(f"{subject}: the key {pairs[again][0]!r} is given twice in one object: remove one of the two")
        return dict(pairs)

    document = _parsed(text, subject, error, {"object_pairs_hook": unique} | _numbers(text, subject, error))
    if _ESCAPED.search(text):
        check_texts(document, subject, error)
    return document


def parse_foreign_json(text: str, subject: str, error: Problem) -> Any:
    """The document of another program, which may repeat keys and write NaN; its depth is bounded all the same."""
    return _parsed(text, subject, error, {})


def parse_foreign_documents(text: str, subject: str, error: Problem) -> list[Any]:
    """Documents of another program that stand one behind the other, with nothing but white space between them.

    >>> from ropewalk.errors import InputError
    >>> parse_foreign_documents('[1] {"a": 2}\\n', "text", InputError)
    [[1], {'a': 2}]
    """
    decoder, found, at = json.JSONDecoder(), list[Any](), _behind_space(text, 0)
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError as problem:
            raise error(f"{subject}: document {len(found) + 1} is not JSON ({problem}): fix it") from None
        except RecursionError:
            raise error(too_deep(subject)) from None
        found.append(document)
        at = _behind_space(text, at)
    if text.count("[") + text.count("{") > DEEPEST:
        check_depth(found, subject, error)
    return found


def _behind_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _parsed(text: str, subject: str, error: Problem, hooks: dict[str, Any]) -> object:
    try:
        document = json.loads(text, **hooks)
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise error(f"{subject}: {where}: {syntax_mistake(problem)}: fix the JSON") from None
    except ValueError:
        raise error(f"{subject}: a number has thousands of digits: fix the JSON") from None
    except RecursionError:
        raise error(too_deep(subject)) from None
    if text.count("[") + text.count("{") > DEEPEST:
        check_depth(document, subject, error)
    return document


def _numbers(text: str, subject: str, error: Problem) -> dict[str, Any]:
    """How numbers are read; with a look at each only where one might be too large."""

    def no_number(name: str) -> NoReturn:
        raise error(f"{subject}: {name} is not a number: write a finite one, or leave the entry out")

    def whole(digits: str) -> int:
        why = too_large(digits)
        if why is not None:
            raise error(f"{subject}: {why}: write a smaller one")
        return int(digits)

    def finite(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise error(f"{subject}: the number {digits[:12]}… is too large: write a smaller one")
        return value

    long = {"parse_int": whole, "parse_float": finite} if _LONG_NUMBER.search(text) else {}
    return long | {"parse_constant": no_number}


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


def place_of_repeated(keys: Iterable[Hashable]) -> int | None:
    """Where a key stands that was there before."""
    seen: set[Hashable] = set()
    for place, key in enumerate(keys):
        if key in seen:
            return place
        seen.add(key)
    return None
