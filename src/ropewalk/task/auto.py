"""Which collectives a step should run: the best candidates of every purpose, judged by simulating the whole step.

The ring is where the search starts, and it stays unless something is strictly faster, so the choice is never slower
than rings. Purposes are taken one after the other, the one that takes longest on rings first; all other purposes run
beside it as chosen so far, so contention between groups decides, not a group alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ropewalk.collectives.choice import AUTO, CollectiveChoice
from ropewalk.task.estimate import estimated, of_purpose, purposes_of, ranked
from ropewalk.task.kinds import Use
from ropewalk.task.step import Step

MOST_TRIED = 3
"""Candidates of a purpose that are simulated beside the ring."""

FASTER = 1 - 1e-9
"""What is faster by rounding alone is not faster."""

Cost = Callable[[CollectiveChoice], float]
"""Seconds of the whole step when its collectives are chosen so."""


@dataclass(frozen=True)
class TriedChoice:
    """A choice and the step time that it was simulated to have."""

    algorithm: str
    seconds: float


@dataclass(frozen=True)
class Chosen:
    """The fastest choice, and all that were simulated to find it, rings first."""

    choice: CollectiveChoice
    seconds: float
    tried: tuple[TriedChoice, ...]
    notes: tuple[str, ...] = ()


def fastest(step: Step, use: Use, cost: Cost, names: Collection[str] | None = None) -> Chosen:
    """Settle what a choice leaves open (`auto`), among all collectives or some `names`; what it names stays."""
    asked = use.choice
    default = "ring" if asked.default == AUTO else asked.default
    named = tuple((purpose, name) for purpose, name in asked.by_purpose if name != AUTO)
    best = CollectiveChoice(default, named)
    open_ones = [purpose for purpose in purposes_of(step) if asked.name_for(purpose) == AUTO]
    for purpose in open_ones:
        best = best.having(purpose, "ring")
    parts = {purpose: of_purpose(step, purpose) for purpose in open_ones}
    seconds = cost(best)
    tried, notes = [TriedChoice(str(best), seconds)], []
    rings = {purpose: estimated(parts[purpose], "ring", use) for purpose in open_ones}
    for purpose in sorted(open_ones, key=lambda each: -rings[each].seconds):
        found, why = ranked(parts[purpose], use, rings[purpose], names)
        notes += [f"{purpose}: {note}" for note in why]
        for name in found[:MOST_TRIED]:
            other = best.having(purpose, name)
            taken = cost(other)
            tried.append(TriedChoice(str(other), taken))
            if taken < seconds * FASTER:
                best, seconds = other, taken
    return Chosen(best, seconds, tuple(tried), tuple(notes))
