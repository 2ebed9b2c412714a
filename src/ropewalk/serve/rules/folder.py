"""A driver that keeps a document per device in a folder, written whole: what a device is to have, for who loads it.

How rules are written is a `RuleFormat`. A document that was damaged by hand is replaced by a whole one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ropewalk.errors import InputError
from ropewalk.files import write_whole
from ropewalk.serve.rules.driver import DriverError, Present
from ropewalk.serve.rules.rule import Body, Foreign, Rule


@dataclass(frozen=True)
class RuleFormat:
    """How the rules of one device are written, and read back."""

    written: Callable[[str, Sequence[Rule], str], str]
    """(device, rules, the document before or nothing) -> the document."""
    read: Callable[[str, str], Sequence[Rule]]
    """(device, document) -> rules; an InputError where it cannot be read."""
    kinds: tuple[type[Body], ...]
    suffix: str = ".json"


@dataclass(frozen=True)
class FolderDriver:
    """Documents of devices in a folder."""

    name: str
    folder: Path
    formats: Mapping[str, RuleFormat]
    """By device."""
    settles_s: float = 0.0

    def devices(self) -> tuple[str, ...]:
        return tuple(self.formats)

    def handles(self, body: Body) -> bool:
        return any(isinstance(body, one.kinds) for one in self.formats.values())

    def present(self, device: str) -> Present:
        text = self._text(device)
        if not text:
            return Present(())
        try:
            return Present(tuple(self.formats[device].read(device, text)))
        except InputError as problem:
            return Present((Rule.on(device, Foreign(f"document: {problem}")),))

    def apply(self, device: str, rules: Sequence[Rule]) -> None:
        before, there = self._before(device)
        by_key = {rule.key: rule for rule in (*there, *rules)}
        self._write(device, by_key.values(), before)

    def remove(self, device: str, rules: Sequence[Rule]) -> None:
        before, there = self._before(device)
        gone = set(rules)
        self._write(device, (rule for rule in there if rule not in gone), before)

    def path(self, device: str) -> Path:
        """The document of a device; letters that a file name cannot have are replaced, so its number stands first."""
        number = list(self.formats).index(device)
        plain = re.sub(r"[^A-Za-z0-9.-]", "_", device)
        return self.folder / f"{number}-{plain}{self.formats[device].suffix}"

    def _before(self, device: str) -> tuple[str, tuple[Rule, ...]]:
        """The document and its rules; nothing where it is damaged."""
        rules = self.present(device).rules
        damaged = any(isinstance(rule.body, Foreign) for rule in rules)
        return ("", ()) if damaged else (self._text(device), rules)

    def _text(self, device: str) -> str:
        try:
            return self.path(device).read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as problem:
            raise DriverError(f"{self.path(device)} cannot be read ({problem.strerror}): check the folder") from None

    def _write(self, device: str, rules: Iterable[Rule], before: str) -> None:
        ordered = sorted(rules, key=lambda rule: rule.order)
        try:
            write_whole(self.path(device), self.formats[device].written(device, ordered, before))
        except InputError as problem:
            raise DriverError(f"{device}: {problem}") from None
