"""The reconciler: compares what is wanted with what devices have, repairs, and reads again before it says so.

A pass first takes away what nobody wants, on leafs before spines before optical switches, and then sets up what is
missing in the other direction, so that a path exists before anything is sent over it. What is right is not touched.
A device that fails is left alone for a while, longer each time; the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ropewalk.serve.rules.book import Book
from ropewalk.serve.rules.changes import Over, RuleChanges, WantedRules, changes, is_left
from ropewalk.serve.rules.driver import Driver, DriverError, DriverTimeout, Link, Present
from ropewalk.serve.rules.report import Allocated, ReconcileReport
from ropewalk.serve.rules.rule import Join, Relay, Rule

FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 30.0
AT_ONCE = 8
"""Devices that are spoken to at the same time."""
_LEAF, _SPINE, _SWITCH = range(3)


@dataclass
class _Seat:
    """A device as the reconciler remembers it."""

    device: str
    driver: Driver
    seen: Present | None = None
    """What it said last."""
    has: frozenset[Rule] = frozenset()
    """Its rules then."""
    asked_at: float = 0.0
    """When it was asked for that."""
    failures: int = 0
    retry_at: float = 0.0
    unsure_until: float = 0.0
    """Until then a command that was given up may still do its work there."""


@dataclass
class _Pass:
    """What a pass has done so far."""

    read: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    changed: dict[str, RuleChanges] = field(default_factory=dict)


class Reconciler:
    """Keeps the devices of some drivers as they are wanted."""

    def __init__(
        self, drivers: Sequence[Driver], *, clock: Callable[[], float] = time.monotonic, at_once: int = AT_ONCE
    ) -> None:
        self._clock, self._at_once = clock, at_once
        self.drivers = tuple(driver.name for driver in drivers)
        # Whoever was here before us may have been killed with commands under way.
        self._seats = {
            device: _Seat(device, driver, unsure_until=clock() + driver.settles_s)
            for driver in drivers
            for device in driver.devices()
        }
        self.book = Book()
        self._behind = set(self._seats)
        self._ready: set[Allocated] = set()
        self._known: set[Allocated] = set()

    def has(self, rule: Rule) -> bool:
        """Was it there when its device was last asked?"""
        seat = self._seats.get(rule.device)
        return seat is not None and rule in seat.has

    def retry_in(self) -> float:
        """Seconds until a device that failed may be asked again; infinite where none has."""
        waits = [seat.retry_at - self._clock() for seat in self._seats.values() if seat.failures]
        return max(0.0, min(waits, default=float("inf")))

    def once(self, wanted: WantedRules, *, whole: bool = True, patient: bool = True) -> ReconcileReport:
        """One pass over all devices, or over those that are not known to be as they should.

        Without patience it asks devices again that failed just now.
        """
        began, now = self._clock(), _Pass()
        self.book.update(wanted)
        self._behind |= self.book.touched
        self.book.touched.clear()
        late = self._behind | {device for one in wanted.releasing for device in one.devices}
        chosen = [seat for device, seat in self._seats.items() if whole or device in late]
        resting = {seat.device for seat in chosen if patient and seat.failures and seat.retry_at > began}
        seats = [seat for seat in chosen if seat.device not in resting]
        self._each(now, seats, self._read)
        asked = [seat for seat in seats if seat.device in now.read]
        for seat in asked:
            now.changed[seat.device] = changes(self.book.rules(seat.device), seat.has)
        dirty = [seat for seat in asked if now.changed[seat.device]]
        for rank in (_LEAF, _SPINE, _SWITCH):
            self._step(now, dirty, rank, lambda one: one.stale, "remove")
        for rank in (_SWITCH, _SPINE, _LEAF):
            self._step(now, dirty, rank, lambda one: one.wrong + one.missing, "apply")
        self._each(now, dirty, self._read)  # also where a step failed: half of it may have been done
        self._settle(now, seats)
        return self._report(now, frozenset(resting), self._clock() - began)

    def _settle(self, now: _Pass, seats: Iterable[_Seat]) -> None:
        """What is known after a pass: who is behind, which allocations have all their rules."""
        for seat in seats:
            right = seat.seen is not None and seat.has == frozenset(self.book.rules(seat.device))
            self._behind.discard(seat.device) if right else self._behind.add(seat.device)
            if seat.device not in now.failed:
                seat.failures = 0
        now.failed |= self._without_driver()
        asked = {which for seat in seats for which in self.book.on(seat.device)}
        asked |= {which for which in self.book.running if which not in self._known}
        self._ready = {which for which in self._ready - asked if which in self.book.running}
        self._ready |= {which for which in asked if all(map(self.has, self.book.running[which].rules))}
        self._known = set(self.book.running)

    def _without_driver(self) -> dict[str, str]:
        found = {}
        for device in self.book.devices - self._seats.keys():
            kind = next(iter(self.book.rules(device))).body.kind
            found[device] = (
                f"{device}: no driver of this service installs rules of the kind {kind!r}: start it with one that does "
                "(`ropewalk list drivers`)"
            )
        return found

    def _each(self, now: _Pass, seats: Sequence[_Seat], act: Callable[[_Pass, _Seat], None]) -> None:
        if len(seats) < 2 or self._at_once < 2:
            for seat in seats:
                act(now, seat)
            return
        with ThreadPoolExecutor(min(self._at_once, len(seats))) as pool:
            list(pool.map(lambda seat: act(now, seat), seats))

    def _read(self, now: _Pass, seat: _Seat) -> None:
        seat.asked_at = self._clock()
        try:
            seat.seen = seat.driver.present(seat.device)
            seat.has = frozenset(seat.seen.rules)
            now.read.add(seat.device)
        except DriverError as problem:
            seat.seen, seat.has = None, frozenset()
            now.read.discard(seat.device)
            self._note(now, seat, problem)

    def _step(
        self, now: _Pass, seats: Sequence[_Seat], rank: int, pick: Callable[[RuleChanges], tuple[Rule, ...]], verb: str
    ) -> None:
        def act(now: _Pass, seat: _Seat) -> None:
            rules = pick(now.changed[seat.device])
            try:
                seat.driver.apply(seat.device, rules) if verb == "apply" else seat.driver.remove(seat.device, rules)
            except DriverError as problem:
                self._note(now, seat, problem)

        due = [
            seat
            for seat in seats
            if seat.device not in now.failed
            and (rules := pick(now.changed[seat.device]))
            and _rank(rules) == rank
        ]  # fmt: skip
        self._each(now, due, act)

    def _note(self, now: _Pass, seat: _Seat, problem: DriverError) -> None:
        if seat.device not in now.failed:
            seat.failures += 1
            wait = min(FIRST_WAIT_S * 2 ** (seat.failures - 1), LONGEST_WAIT_S)
            seat.retry_at = self._clock() + wait
        now.failed[seat.device] = str(problem)
        if isinstance(problem, DriverTimeout):
            seat.unsure_until = self._clock() + seat.driver.settles_s

    def _report(self, now: _Pass, resting: frozenset[str], seconds: float) -> ReconcileReport:
        done = {device: one for device, one in now.changed.items() if device not in now.failed}
        dead = {link for device in now.read for link in self._dead(device)}
        return ReconcileReport(
            added=tuple(rule for one in done.values() for rule in one.missing),
            removed=tuple(rule for one in done.values() for rule in one.stale),
            repaired=tuple(rule for one in done.values() for rule in one.wrong),
            failed=dict(sorted(now.failed.items())),
            resting=tuple(sorted(resting)),
            ready=frozenset(self._ready),
            gone=tuple((one.job, one.generation) for one in self.book.releasing if self._is_gone(one, now)),
            dead=tuple(sorted(dead)),
            seconds=seconds,
        )

    def _dead(self, device: str) -> tuple[Link, ...]:
        seen = self._seats[device].seen
        return () if seen is None else seen.dead_links

    def _is_gone(self, over: Over, now: _Pass) -> bool:
        """Was every device of it read in this pass, with nothing left and nothing that may still come?"""
        if not all(
            device in now.read and self._seats[device].unsure_until <= self._seats[device].asked_at
            for device in over.devices
            if device in self._seats
        ):
            return False
        return not any(is_left(over, rule) for device in now.read for rule in self._seats[device].has)


def _rank(rules: Iterable[Rule]) -> int:
    """On which kind of device rules stand, by what they do."""
    bodies = [rule.body for rule in rules]
    if any(isinstance(body, Join) for body in bodies):
        return _SWITCH
    return _SPINE if any(isinstance(body, Relay) for body in bodies) else _LEAF
