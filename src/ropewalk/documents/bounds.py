"""What parsers returned, held to the bounds of documents: depth, characters, numbers."""

from __future__ import annotations

import re
from json import JSONDecodeError
from typing import Any

from ropewalk.documents.limits import DEEPEST, LARGEST_WHOLE, LONGEST_NAME
from ropewalk.documents.opening import Problem

_NOT_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters and halves of characters: no name, label or path has them, and terminals obey some."""
_LINE_END = re.compile("[\n\r\x85\u2028\u2029]")


def check_depth(document: object, subject: str, error: Problem) -> None:
    """Refuse lists inside lists beyond what any file needs, so that whoever walks through them may recurse."""
    level = [document]
    for _ in range(DEEPEST):
        inside = [value for node in level if isinstance(node, dict) for value in node.values()]
        inside += [value for node in level if isinstance(node, list) for value in node]
        level = [value for value in inside if isinstance(value, dict | list)]
        if not level:
            return
    raise error(too_deep(subject))


def check_texts(document: object, subject: str, error: Problem) -> None:
    """Refuse characters that are not text, in keys and in values."""
    rest: list[Any] = [document]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest += [*value, *value.values()]
        elif isinstance(value, list):
            rest += value
        elif isinstance(value, str) and (found := _NOT_TEXT.search(value)):
            raise error(
                f"{subject}: the text {shortened(value)} has the character U+{ord(found[0]):04X}, which is not text: "
                "remove it"
            )


def flaw_of_name(name: str) -> str | None:
    """Why a name is refused; None where it is not.

    >>> flaw_of_name("leaf 0"), flaw_of_name("")
    (None, 'a name is empty: give one')
    """
    if not name:
        return "a name is empty: give one"
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        return f"the name {shortened(name)} is longer than {LONGEST_NAME} bytes: shorten it"
    if (found := _NOT_TEXT.search(name)) or (found := _LINE_END.search(name)):
        return f"the name {shortened(name)} has the character U+{ord(found[0]):04X}: remove it"
    return None


def syntax_mistake(problem: JSONDecodeError) -> str:
    """What Python's parser says, without the words that its position follows.

    >>> syntax_mistake(JSONDecodeError("Unterminated string starting at", '{"name": "a', 9))
    'Unterminated string'
    """
    return problem.msg.removesuffix(" starting at")


def too_deep(subject: str) -> str:
    return f"{subject}: it is nested too deeply, more than {DEEPEST} levels: write flat lists"


def too_large(number: str) -> str | None:
    """Why a whole number in a document is refused; None where it is not."""
    digits = number.lstrip("+-")
    if len(digits) <= 19 or (len(digits) == 20 and int(digits) <= LARGEST_WHOLE):
        return None
    return f"the number {number[:12]}… has {len(digits)} digits, the limit is {LARGEST_WHOLE}"


def shortened(text: str) -> str:
    shown = ascii(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."
