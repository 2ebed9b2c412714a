"""What is wanted against what is there: which rules a device lacks, which are wrong, which have to go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ropewalk.serve.rules.rule import NOBODY, UNKNOWN, Rule


@dataclass(frozen=True)
class JobRules:
    """All rules of one allocation of a job."""

    job: str
    generation: int
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Over:
    """An allocation that is over, as far as rules of it may be left: where, and in which places."""

    job: str
    generation: int
    devices: frozenset[str]
    keys: frozenset[str]


@dataclass(frozen=True)
class WantedRules:
    """What the committed state asks for, all of it read at one moment."""

    running: tuple[JobRules, ...] = ()
    releasing: tuple[Over, ...] = ()
    """Allocations that are over: none of their links is given away before their rules are gone."""


@dataclass(frozen=True)
class RuleChanges:
    """What has to be done on one device."""

    stale: tuple[Rule, ...] = ()
    wrong: tuple[Rule, ...] = ()
    """Wanted rules in whose place something else is."""
    missing: tuple[Rule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.stale or self.wrong or self.missing)


def changes(wanted: Iterable[Rule], present: Iterable[Rule]) -> RuleChanges:
    """The difference; what is right is left alone.

    >>> from ropewalk.serve.rules.rule import Send
    >>> old = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.1"), "j1", 1)
    >>> new = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.3"), "j1", 2)
    >>> changes([new], [old]).wrong == (new,), changes([], [old]).stale == (old,), bool(changes([new], [new]))
    (True, True, False)
    """
    asked = {rule.key: rule for rule in wanted}
    there = set(present)
    occupied = {rule.key for rule in there}
    open_keys = {key for key, rule in asked.items() if rule not in there}
    stale = [rule for rule in there if asked.get(rule.key) != rule and rule.key not in open_keys]
    to_set = sorted((asked[key] for key in open_keys), key=lambda rule: rule.order)
    return RuleChanges(
        tuple(sorted(stale, key=lambda rule: rule.order)),
        tuple(rule for rule in to_set if rule.key in occupied),
        tuple(rule for rule in to_set if rule.key not in occupied),
    )


def is_left(over: Over, rule: Rule) -> bool:
    """May a rule that was seen be one of an allocation that is over?

    Rules that do not say whose they are count where one of it stood.
    """
    if rule.job == UNKNOWN:
        return rule.device in over.devices and rule.key in over.keys
    return rule.job != NOBODY and rule.job == over.job and rule.generation <= over.generation
