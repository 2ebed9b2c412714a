"""A rank's plan for a tensor of a certain size: every message as spans of elements, with a place to wait in.

A rank keeps the chunks that it touches one after another in a *work* buffer. Chunks that stand together travel
straight from and to it. Chunks that do not, and everything that is to be added, go through *staging*, of which every
lane has a part: a lane reuses it step after step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.execute.plan import RankPlan, RankRound

Span = tuple[int, int]
"""First element and the one behind the last."""

DIRECT = -1


@dataclass(frozen=True)
class Transfer:
    """A message of a certain size."""

    peer: int
    adds: bool
    tag: int
    """Keeps lanes apart, and in them what is added from what overwrites; messages of one tag arrive in order."""
    spans: tuple[Span, ...]
    """Where its elements are, or go, in the work buffer."""
    elements: int
    staged: int
    """Where it waits in staging; `DIRECT` if it moves straight between the work buffer and the network."""


@dataclass(frozen=True)
class SizedStep:
    after: int
    sends: tuple[Transfer, ...]
    receives: tuple[Transfer, ...]


@dataclass(frozen=True, eq=False)
class SizedPlan:
    """A plan in elements."""

    work_elements: int
    staging_elements: int
    takes: tuple[Span, ...]
    """Where the input goes in the work buffer, in order."""
    gives: tuple[Span, ...]
    """Where the result is."""
    zeroed: tuple[Span, ...]
    in_result: bool
    """Whether all that the rank touches is in its result, which can then be the work buffer."""
    steps: tuple[SizedStep, ...]

    @property
    def taken_elements(self) -> int:
        return _length(self.takes)

    @property
    def given_elements(self) -> int:
        return _length(self.gives)


@lru_cache(maxsize=256)
def sized(plan: RankPlan, whole: int) -> SizedPlan:
    """The plan for `whole` elements in all chunks together.

    >>> from ropewalk.collectives import ring_all_reduce
    >>> from ropewalk.execute.plan import rank_plan
    >>> at_rank_0 = sized(rank_plan(ring_all_reduce([[0, 1, 2, 3]]), 0), 10)
    >>> [step.sends[0].spans for step in at_rank_0.steps[:3]], at_rank_0.staging_elements
    ([((7, 10),), ((5, 7),), ((2, 5),)], 3)
    """
    begin, end = plan.offsets(plan.held, whole)
    stops = np.cumsum(end - begin)
    local = _Local(plan.held, stops - (end - begin), stops)
    steps = [_laid_out(step, local) for step in plan.steps]
    need: dict[int, int] = {}
    for step, (_, staged) in zip(plan.steps, steps, strict=True):
        need[step.lane] = max(need.get(step.lane, 0), staged)
    base, total = {}, 0
    for lane in sorted(need):
        base[lane] = total
        total += need[lane]
    return SizedPlan(
        work_elements=int(stops[-1]) if len(stops) else 0,
        staging_elements=total,
        takes=local.spans(plan.takes),
        gives=local.spans(plan.gives),
        zeroed=local.spans(plan.zeroed),
        in_result=len(plan.gives) == len(plan.held) > 0,
        steps=tuple(_moved(one, base[step.lane]) for step, (one, _) in zip(plan.steps, steps, strict=True)),
    )


@dataclass(frozen=True, eq=False)
class _Local:
    """Where the chunks that a rank holds are in its work buffer."""

    held: Ints
    start: Ints
    stop: Ints

    def spans(self, places: Ints) -> tuple[Span, ...]:
        """Elements of chunks, with neighbours joined and empty ones left out."""
        at = np.searchsorted(self.held, places)
        start, stop = self.start[at], self.stop[at]
        full = stop > start
        start, stop = start[full], stop[full]
        if not len(start):
            return ()
        breaks = np.flatnonzero(start[1:] != stop[:-1])
        firsts = start[np.concatenate([[0], breaks + 1])]
        lasts = stop[np.concatenate([breaks, [len(stop) - 1]])]
        return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _laid_out(step: RankRound, local: _Local) -> tuple[SizedStep, int]:
    """A step whose staging begins at 0, and how much of that it needs; both ends leave out what has no elements."""
    staged = 0
    ends: tuple[list[Transfer], list[Transfer]] = ([], [])
    for message, receiving in [*((one, False) for one in step.sends), *((one, True) for one in step.receives)]:
        if spans := local.spans(message.places):
            elements = _length(spans)
            direct = len(spans) == 1 and not (receiving and message.adds)
            tag = 2 * step.lane + message.adds
            place = DIRECT if direct else staged
            ends[receiving].append(Transfer(message.peer, message.adds, tag, spans, elements, place))
            staged += 0 if direct else elements
    return SizedStep(step.after, tuple(ends[False]), tuple(ends[True])), staged


def _moved(step: SizedStep, base: int) -> SizedStep:
    """The step with staging in its lane's own part."""
    sends, receives = (
        tuple(one if one.staged == DIRECT else replace(one, staged=one.staged + base) for one in transfers)
        for transfers in (step.sends, step.receives)
    )
    return SizedStep(step.after, sends, receives)


def _length(spans: tuple[Span, ...]) -> int:
    return sum(stop - start for start, stop in spans)
