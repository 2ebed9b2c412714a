"""YAML as people write it, read strictly: each key once, numbers as they look, no bombs of aliases.

PyYAML's fast loader recurses in C, so what is nested too deeply ends the process; and an alias is read once but walked
through wherever it stands. Both are bounded on the flat list of parse events, before anything is built.
"""

from __future__ import annotations

import re
from typing import Any

from ropewalk.documents.bounds import check_texts, too_deep, too_large
from ropewalk.documents.from_json import place_of_repeated
from ropewalk.documents.limits import DEEPEST, MOST_NODES, MOST_OF_YAML
from ropewalk.documents.opening import Problem
from ropewalk.units import show_size

_WHOLE = re.compile("[-+]?(?:0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def parse_yaml(text: str, subject: str, error: Problem) -> object:
    """The document as lists, mappings and scalars.

    >>> from ropewalk.errors import InputError
    >>> parse_yaml("hosts: 1_000", "text", InputError)
    Traceback (most recent call last):
        ...
    ropewalk.errors.InputError: text: line 1: 1_000 is not a plain number: write digits only, or a name in quotes
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """PyYAML keeps the last of two equal keys, and reads 010 as 8, 1:30 as 90 and 1_000 as 1000."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            # Keys that are themselves lists or mappings are refused by PyYAML, which says so better.
            named = [key for key, _ in node.value if isinstance(key.value, str)]
            again = place_of_repeated(key.value for key in named)
            if again is not None:
                where = f"line {named[again].start_mark.line + 1}"
                raise error(f"{subject}: {where}: the key {named[again].value!r} is given twice: remove one of the two")
            return super().construct_mapping(node, deep)

        def whole(self, node: Any) -> int:
            why = _odd_whole(node.value)
            if why is not None:
                raise error(f"{subject}: line {node.start_mark.line + 1}: {why}")
            return int(node.value)

        def fraction(self, node: Any) -> float:
            value = float(node.value) if _FRACTION.fullmatch(node.value) else float("nan")
            if not abs(value) < float("inf"):
                why = f"{node.value} is not a plain number: write a finite one, with digits and one point"
                raise error(f"{subject}: line {node.start_mark.line + 1}: {why}")
            return value

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.whole)
    Loader.add_constructor("tag:yaml.org,2002:float", Loader.fraction)
    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)  # a date is text, as in JSON
    check_shape(text, subject, error)
    try:
        document = yaml.load(text, Loader)
    except yaml.YAMLError as problem:
        raise error(f"{subject}: {_in_words(problem)}") from None
    except (ValueError, TypeError) as problem:
        raise error(f"{subject}: {' '.join(str(problem).split())}: fix the YAML") from None
    if "\\" in text:
        check_texts(document, subject, error)
    return document


def composed_yaml(text: str, subject: str, error: Problem) -> list[Any]:
    """The nodes of PyYAML of every document in the text, which know their lines and have all values as text."""
    import yaml

    check_shape(text, subject, error)
    try:
        found = list(yaml.compose_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as problem:
        raise error(f"{subject}: {_in_words(problem)}") from None
    return [node for node in found if node is not None]


def check_shape(text: str, subject: str, error: Problem) -> None:
    """Refuse what is too large, too deep, inside itself, or too large once its aliases are written out."""
    import yaml

    if len(text) > MOST_OF_YAML:
        raise error(f"{subject} is larger than {show_size(MOST_OF_YAML)}: write it as JSON, which is read faster")
    size: dict[str, int] = {}
    begun: list[tuple[str | None, int]] = []
    nodes = 0
    try:
        for event in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent):
                if any(anchor == event.anchor for anchor, _ in begun):
                    raise error(f"{subject}: {_line(event)}: *{event.anchor} refers to itself: write it out")
                nodes += size.get(event.anchor or "", 1)
            elif isinstance(event, yaml.NodeEvent):
                nodes += 1
                if isinstance(event, yaml.CollectionStartEvent):
                    begun.append((event.anchor, nodes - 1))
                elif event.anchor is not None:
                    size[event.anchor] = 1
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, before = begun.pop()
                size |= {} if anchor is None else {anchor: nodes - before}
            if len(begun) > DEEPEST:
                raise error(too_deep(subject))
            if nodes > MOST_NODES:
                raise error(f"{subject}: it has more than {MOST_NODES} entries with its aliases written out: use fewer")
    except yaml.YAMLError as problem:
        raise error(f"{subject}: {_in_words(problem)}") from None


def _odd_whole(digits: str) -> str | None:
    if _WHOLE.fullmatch(digits):
        why = too_large(digits)
        return None if why is None else f"{why}: write a smaller one"
    return f"{digits[:20]} is not a plain number: write digits only, or a name in quotes"


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def _in_words(problem: Any) -> str:
    """What PyYAML has to say, with the place in front."""
    mark = getattr(problem, "problem_mark", None) or getattr(problem, "context_mark", None)
    if mark is None:
        return f"{' '.join(str(problem).split())}: fix the YAML"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem.problem or problem.context}: fix the YAML there"
