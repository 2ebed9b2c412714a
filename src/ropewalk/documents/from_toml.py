"""TOML, within the bounds of all documents."""

from __future__ import annotations

import tomllib
from typing import Any

from ropewalk.documents.bounds import check_depth, check_texts, too_deep
from ropewalk.documents.opening import Problem, packaged_text


def parse_toml(text: str, subject: str, error: Problem) -> dict[str, Any]:
    """The tables of a document.

    >>> from ropewalk.errors import InputError
    >>> parse_toml("a = " + "[" * 9999, "text", InputError)
    Traceback (most recent call last):
        ...
    ropewalk.errors.InputError: text: it is nested too deeply, more than 64 levels: write flat lists
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise error(f"{subject} is not TOML: {problem}: fix it there") from None
    except ValueError:
        raise error(f"{subject}: a number has thousands of digits: fix it") from None
    except RecursionError:
        raise error(too_deep(subject)) from None
    check_depth(document, subject, error)
    check_texts(document, subject, error)
    return document


def packaged_toml(package: str, name: str) -> dict[str, Any]:
    """A document that ropewalk brings along."""
    return tomllib.loads(packaged_text(package, name))
