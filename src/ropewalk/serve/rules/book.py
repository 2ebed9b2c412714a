"""Wanted rules by device, kept up to date: a commit costs what it changes, not what the cluster runs."""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.errors import PhysicsError
from ropewalk.serve.rules.changes import JobRules, Over, WantedRules
from ropewalk.serve.rules.report import Allocated
from ropewalk.serve.rules.rule import Rule


class Book:
    """The last `WantedRules`, by device and place.

    >>> from ropewalk.serve.rules.rule import Send
    >>> rule = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.1"), "j1", 1)
    >>> book = Book()
    >>> book.update(WantedRules((JobRules("j1", 1, (rule,)),)))
    >>> book.touched, list(book.rules("leaf0")) == [rule]
    ({'leaf0'}, True)
    """

    def __init__(self) -> None:
        self.running: dict[Allocated, JobRules] = {}
        self.releasing: tuple[Over, ...] = ()
        self.touched: set[str] = set()
        """Devices whose rules have changed since somebody cleared it."""
        self._places: dict[str, dict[str, tuple[Rule, int]]] = {}
        """By device and key: the rule, and how many allocations want it."""
        self._users: dict[str, set[Allocated]] = {}

    def rules(self, device: str) -> Iterator[Rule]:
        return (rule for rule, _ in self._places.get(device, {}).values())

    @property
    def devices(self) -> set[str]:
        """Those that are to have rules."""
        return {device for device, places in self._places.items() if places}

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    def on(self, device: str) -> frozenset[Allocated]:
        """Allocations with rules on a device."""
        return frozenset(self._users.get(device, ()))

    def update(self, wanted: WantedRules) -> None:
        """What is wanted now; two rules that are to stand in one place are a bug of whoever made them."""
        new = {(one.job, one.generation): one for one in wanted.running}
        self.releasing = wanted.releasing
        for which in [which for which, one in self.running.items() if new.get(which) != one]:
            self._take_out(which, self.running.pop(which))
        for which, one in new.items():
            if which not in self.running:
                self.running[which] = one
                self._put_in(which, one)

    def _take_out(self, which: Allocated, one: JobRules) -> None:
        for rule in one.rules:
            places = self._places[rule.device]
            there, count = places[rule.key]
            if there != rule:
                continue  # it was refused when it came
            if count > 1:
                places[rule.key] = there, count - 1
            else:
                del places[rule.key]
            self.touched.add(rule.device)
            self._users[rule.device].discard(which)

    def _put_in(self, which: Allocated, one: JobRules) -> None:
        refused = ""
        for rule in one.rules:
            there, count = self._places.setdefault(rule.device, {}).get(rule.key, (rule, 0))
            if there != rule:
                refused = f"{rule.device} would have two rules {rule.key!r}, of {there.job} and {rule.job}"
                continue
            self._places[rule.device][rule.key] = rule, count + 1
            self.touched.add(rule.device)
            self._users.setdefault(rule.device, set()).add(which)
        if refused:
            raise PhysicsError(refused)
