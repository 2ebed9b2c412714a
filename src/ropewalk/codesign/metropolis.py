"""Metropolis search over seatings: better is always accepted, worse the less likely the worse it is.

Losses are counted in parts of the best time so far, so that one setting does for steps of a millisecond and of ten
seconds; the published search counts milliseconds. Every so often the chain goes back to the best seating.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from ropewalk.codesign.moves import propose
from ropewalk.codesign.seats import Changes, Ledger, Places, SeatSpace
from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.seating import Seating

Cost = Callable[[Seating], float]
"""Seconds of a step with this seating."""


class Evaluator(Protocol):
    """Costs of seatings that differ by moves; `SeatingEstimate` is one."""

    def place(self, places: Sequence[int], /) -> float:
        """Seat all layers."""
        ...

    def tried(self, changes: Changes, /) -> float:
        """The cost after these moves, which are undone by the next try unless they are kept."""
        ...

    def keep(self) -> None: ...


class Anew:
    """An evaluator from any cost of whole seatings."""

    def __init__(self, space: SeatSpace, cost: Cost) -> None:
        self.space = space
        self.cost = cost
        self._places: list[int] = []
        self._last: Changes = {}

    def place(self, places: Sequence[int]) -> float:
        self._places, self._last = list(places), {}
        return self.cost(self.space.seating(places))

    def tried(self, changes: Changes) -> float:
        self._last = dict(changes)
        return self.cost(self.space.seating([changes.get(at, seat) for at, seat in enumerate(self._places)]))

    def keep(self) -> None:
        for layer, seat in self._last.items():
            self._places[layer] = seat
        self._last = {}


@dataclass(frozen=True)
class SearchPatience:
    """How long and how boldly to search."""

    budget: int = 4000
    """Proposals."""
    greed: float = 100.0
    """α: a seating that is worse by a part x of the best time is accepted with probability exp(-α x)."""
    back_every: int | None = None
    """Proposals after which the chain goes back to the best; a hundredth of the budget, 1 to 1,000, unless given."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "search")
        if self.budget < 0:
            findings.add(f"budget must be 0 proposals or more, got {self.budget}")
        if not self.greed >= 0:
            findings.add(f"greed must be 0 (accept all) or more, got {self.greed}")
        if self.back_every is not None and self.back_every < 1:
            findings.add(f"going back every {self.back_every} proposals: give 1 or more")
        findings.raise_if_any()

    @property
    def rhythm(self) -> int:
        return self.back_every or min(max(self.budget // 100, 1), 1000)


@dataclass(frozen=True)
class FoundSeating:
    """The best seating of a chain, and how it was found."""

    places: Places
    seconds: float
    history: tuple[tuple[int, float], ...]
    """(proposal, seconds) whenever the best got better; proposal 0 is the start."""
    proposals: int
    accepted: int
    did_not_fit: int
    """Proposals refused because a server would have run out of memory."""
    seed: int

    def seating(self, space: SeatSpace) -> Seating:
        return space.seating(self.places)


def search(
    space: SeatSpace,
    cost: Cost | Evaluator,
    *,
    seed: int,
    start: Places | None = None,
    patience: SearchPatience | None = None,
    tell: Callable[[int, float], None] | None = None,
) -> FoundSeating:
    """One chain; the same seed gives the same chain. `tell` hears of (proposal, best seconds) now and then."""
    wanted = patience or SearchPatience()
    costs: Evaluator = Anew(space, cost) if callable(cost) else cost
    draw = Random(seed)
    places = list(space.start if start is None else start)
    ledger = Ledger(space, places)
    best, best_s = tuple(places), costs.place(places)
    current_s = best_s
    history = [(0, best_s)]
    accepted = did_not_fit = 0
    for number in range(1, wanted.budget + 1):
        changes = propose(space, places, draw)
        threshold = draw.random()
        if changes and not ledger.fits(changes):
            did_not_fit += 1
        elif changes:
            seconds = costs.tried(changes)
            loss = (seconds - current_s) / best_s if best_s > 0 else seconds - current_s
            if loss <= 0 or threshold < math.exp(-wanted.greed * loss):
                costs.keep()
                ledger.keep(changes)
                for layer, seat in changes.items():
                    places[layer] = seat
                current_s, accepted = seconds, accepted + 1
                if seconds < best_s:
                    best, best_s = tuple(places), seconds
                    history.append((number, seconds))
        if number % wanted.rhythm == 0:
            if tuple(places) != best:
                places = list(best)
                ledger = Ledger(space, places)
                current_s = costs.place(places)
            if tell:
                tell(number, best_s)
    return FoundSeating(best, best_s, tuple(history), wanted.budget, accepted, did_not_fit, seed)


def wandered(space: SeatSpace, seed: int, moves_each: int = 3) -> Places:
    """A start of its own for a chain: the common start after as many random moves that fit as make it forgotten."""
    draw = Random(seed)
    ledger = Ledger(space, space.start)
    for _ in range(moves_each * len(space.options)):
        changes = propose(space, ledger.places, draw)
        if changes and ledger.fits(changes):
            ledger.keep(changes)
    return tuple(ledger.places)
