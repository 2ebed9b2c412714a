"""YAML in which every value knows its line, and every scalar is the text that stands in the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ropewalk.documents import read_text
from ropewalk.documents.from_yaml import composed_yaml
from ropewalk.errors import FabricError


@dataclass(frozen=True)
class Marked:
    """A value of a file: text, a list or a mapping. Names like `0012` stay text, as people mean them."""

    path: str
    line: int
    value: str | list[Marked] | dict[str, Marked]

    def wrong(self, message: str) -> FabricError:
        return FabricError(f"{self.path}: line {self.line}: {message}")

    def text(self, what: str) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong(f"{what} is not a text: write one")
        return self.value

    def items(self, what: str) -> list[Marked]:
        if not isinstance(self.value, list):
            raise self.wrong(f"{what} is not a list: write one")
        return self.value

    def mapping(self, what: str, known: frozenset[str] | None = None) -> dict[str, Marked]:
        """A mapping; with `known`, one that has no other keys."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"{what} is not a mapping: write keys and values")
        for key, value in self.value.items():
            if known is not None and key not in known:
                raise value.wrong(f"{what} has the unknown key {key!r}: use {', '.join(sorted(known))}")
        return self.value

    def get(self, key: str, what: str) -> Marked:
        found = self.mapping(what).get(key)
        if found is None:
            raise self.wrong(f"{what} has no {key!r}: add it")
        return found


def read_marked(path: Path) -> list[Marked]:
    """The documents of a YAML file that are not empty."""
    text = read_text(path, f"topology file {path}", FabricError)
    documents = [_marked(str(path), node) for node in composed_yaml(text, str(path), FabricError)]
    return [document for document in documents if document.value]


def _marked(path: str, node: Any) -> Marked:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        return Marked(path, line, str(node.value))
    if isinstance(node, yaml.SequenceNode):
        return Marked(path, line, [_marked(path, item) for item in node.value])
    found: dict[str, Marked] = {}
    for key, value in node.value:
        if not isinstance(key.value, str):
            raise FabricError(f"{path}: line {key.start_mark.line + 1}: a key is a list or a mapping: write a name")
        name = key.value
        if name in found:
            raise FabricError(f"{path}: line {key.start_mark.line + 1}: the key {name!r} is given twice: remove one")
        found[name] = _marked(path, value)
    return Marked(path, line, found)
