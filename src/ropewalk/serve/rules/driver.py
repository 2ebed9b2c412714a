"""Drivers: whoever tells devices their rules, and asks them which they have.

A driver is idempotent: rules that are there already may be applied again, rules that are gone may be removed again, and
what a killed process has half done is made whole by the next call. It sees and touches only what carries its own mark,
with which it writes the job and the generation of every rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ropewalk.errors import RopewalkError
from ropewalk.serve.rules.rule import Body, Rule

Link = tuple[str, str]
"""Leaf and spine, by name."""


class DriverError(RopewalkError):
    """A device that could not be asked or told; the message says what to do about it."""


class DriverTimeout(DriverError):
    """A device that did not answer in time: nobody knows whether it did what it was told, or still will."""


@dataclass(frozen=True)
class Present:
    """What a device says."""

    rules: tuple[Rule, ...]
    dead_links: tuple[Link, ...] = ()
    """Links that the device sees down, where it can tell."""


class Driver(Protocol):
    """Tells devices their rules; every call may raise a DriverError."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def settles_s(self) -> float:
        """After so many seconds no command is still at work on a device, however it or we were ended."""

    def devices(self) -> tuple[str, ...]:
        """Every device that may have rules of ours."""

    def handles(self, body: Body) -> bool:
        """Can its devices do this?"""

    def present(self, device: str) -> Present:
        """All rules with our mark on a device; what is marked and not understood is `Foreign`."""

    def apply(self, device: str, rules: Sequence[Rule]) -> None:
        """Put rules in place; a rule takes the place of others with its key without a moment in between."""

    def remove(self, device: str, rules: Sequence[Rule]) -> None:
        """Take exactly these rules away."""
