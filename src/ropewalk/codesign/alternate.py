"""Topology and strategy by turns: each is found with the other held fixed, until neither gets better.

TopoOpt (NSDI 2023) splits the search in two planes. Plane 1 looks for a strategy on a given wiring; plane 2 wires anew
for what that strategy sends. Two things are easily lost on the way, so they are kept by construction here: a strategy
is timed again on every new wiring before it is compared with anything, and the best strategy is stored together with
the wiring it was timed on.

The alternation is a local search: a strategy that only pays on a wiring made for it is never tried on that wiring if it
loses on the present one. Where everything can be tried, `exhaust` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ropewalk.fabric.wiring import Wiring
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.progress import Progress, silent
from ropewalk.strategy.seating import Seating

INTERRUPTED = "interrupted"
Search = Callable[[Wiring, Seating, int], Seating]
"""Plane 1: (wiring, strategy to begin with, number of the round) -> the best strategy found on that wiring."""
Rewire = Callable[[Seating], Wiring]
"""Plane 2: the wiring for what a strategy sends."""
Time = Callable[[Seating, Wiring], float]
"""Seconds of a step."""


@dataclass(frozen=True)
class Candidate:
    """A strategy, a wiring, and the time of the one on the other."""

    seating: Seating
    wiring: Wiring
    seconds: float


@dataclass(frozen=True)
class HistoryEntry:
    """One entry of the history."""

    round: int
    plane: str
    """`start`, `strategy` (plane 1), `topology` (plane 2) or `exhaustive`."""
    seconds: float
    """Time of the step after this turn."""
    best: bool
    """Was it the best so far?"""


@dataclass(frozen=True)
class Alternation:
    """The best candidate, and how it was found."""

    best: Candidate
    history: tuple[HistoryEntry, ...]
    ended: str
    """Why the search stopped: `converged`, `rounds` (used up), `exhaustive` (everything was timed), `enumerated`
    (everything was estimated, the best timed) or `interrupted` (by who asked: the best so far)."""

    @property
    def interrupted(self) -> bool:
        return self.ended == INTERRUPTED


def alternate(
    starts: Sequence[Seating],
    *,
    search: Search,
    rewire: Rewire,
    time: Time,
    rounds: int,
    begin_with: int = 1,
    tell: Progress | None = None,
) -> Alternation:
    """Plane 1, plane 2, plane 1, … until plane 1 finds nothing better or the rounds are used up.

    Every start is timed on a wiring of its own. The search continues from the best, or from the first and the best
    others, `begin_with` in all. A wiring that cannot be built has a time of infinity and is not continued from. An
    interrupt ends the search with the best so far, as soon as there is one.
    """
    turns = _Turns(search, rewire, time, tell or silent)
    try:
        with unwrapped_interrupts():
            chosen = turns.begun(list(dict.fromkeys(starts)), begin_with)
            ended = turns.taken(chosen, rounds)
    except KeyboardInterrupt:
        if turns.record.best is None or math.isinf(turns.record.best.seconds):
            raise
        ended = INTERRUPTED
    if turns.record.best is None:
        raise ValueError("there is no strategy to begin with")
    return Alternation(turns.record.best, tuple(turns.record.history), ended)


class _Record:
    """The best so far and the history; wirings that cannot be built stay out of it."""

    def __init__(self) -> None:
        self.best: Candidate | None = None
        self.history: list[HistoryEntry] = []

    def add(self, number: int, plane: str, candidate: Candidate) -> Candidate:
        better = self.best is None or candidate.seconds < self.best.seconds
        if better:
            self.best = candidate
        if math.isfinite(candidate.seconds):
            self.history.append(HistoryEntry(number, plane, candidate.seconds, better))
        return candidate


@dataclass
class _Turns:
    """The turns of one alternation, and what they found."""

    search: Search
    rewire: Rewire
    time: Time
    say: Progress
    record: _Record = field(default_factory=_Record)

    def begun(self, starts: Sequence[Seating], begin_with: int) -> list[Candidate]:
        """Every start on a wiring of its own; those that the search continues from."""
        first = []
        for number, start in enumerate(starts):
            self.say(number, len(starts), "wiring for the first strategies")
            wiring = self.rewire(start)
            first.append(self.record.add(0, "start", Candidate(start, wiring, self.time(start, wiring))))
        by_time = sorted(first, key=lambda one: one.seconds)
        if begin_with == 1:
            return by_time[:1]
        return [*first[:1], *(one for one in by_time if one is not first[0])][:begin_with]

    def taken(self, chosen: Sequence[Candidate], rounds: int) -> str:
        """Rounds from each of these; why they ended."""
        ended = "converged"
        for at, current in enumerate(chosen):
            for number in range(1, rounds + 1):
                done, most = 2 * (rounds * at + number - 1), 2 * rounds * len(chosen)
                where = f"start {at + 1}, round {number}"
                self.say(done, most, f"{where}: strategies on this wiring")
                found = self.search(current.wiring, current.seating, rounds * at + number)
                tried = Candidate(found, current.wiring, self.time(found, current.wiring))
                self.record.add(number, "strategy", tried)
                if tried.seconds >= current.seconds:
                    break
                self.say(done + 1, most, f"{where}: a wiring for this strategy")
                wiring = self.rewire(found)
                # The strategy is the same, the graph is not: what was known about its time is void.
                current = self.record.add(number, "topology", Candidate(found, wiring, self.time(found, wiring)))
                if math.isinf(current.seconds):
                    break
            else:
                ended = "rounds"
        return ended


def judged(pairs: Sequence[Candidate], *, time: Time) -> Alternation:
    """The best of a few pairs that a whole space was narrowed down to, timed anew."""
    record = _Record()
    for number, pair in enumerate(pairs):
        tried = Candidate(pair.seating, pair.wiring, time(pair.seating, pair.wiring))
        if record.best is None or tried.seconds < record.best.seconds:
            record.add(number, "exhaustive", tried)
    if record.best is None:
        raise ValueError("there is no pair to judge")
    return Alternation(record.best, tuple(record.history), "enumerated")


def exhaust(
    seatings: Sequence[Seating], wirings: Sequence[Wiring], *, time: Time, tell: Progress | None = None
) -> Alternation:
    """Every strategy on every wiring; ties go to the first."""
    say = tell or silent
    record = _Record()
    for number, wiring in enumerate(wirings):
        say(number, len(wirings), "every strategy on every wiring")
        for seating in seatings:
            tried = Candidate(seating, wiring, time(seating, wiring))
            if record.best is None or tried.seconds < record.best.seconds:
                record.add(number, "exhaustive", tried)
    if record.best is None:
        raise ValueError("there is no strategy to try")
    return Alternation(record.best, tuple(record.history), "exhaustive")
