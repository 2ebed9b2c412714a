"""Plans of ranks run in plain NumPy, under any interleaving, on a network that is as unhelpful as the rules allow.

A transfer happens when both ends have posted it and the network feels like it: until then the sender's buffer is only
pointed to, and from then on the receiver's buffer is written, so a plan that touches either too early gives wrong sums.
A send is not complete before its receive has been posted (nothing is buffered), so a plan that relies on buffering
never ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.execute.plan import RankPlan
from ropewalk.execute.spans import DIRECT, SizedPlan, Transfer, sized

Choose = Callable[[int], int]
"""Number of things that could happen next -> which one does."""


class Deadlock(AssertionError):
    """Nothing can happen, and not all ranks are done."""


@dataclass(eq=False)
class _Rank:
    todo: SizedPlan
    work: Ints
    staging: Ints
    posted: int = 0
    pending: dict[int, int] = field(default_factory=dict)
    """Transfers of each posted step that have not happened."""

    @property
    def can_move(self) -> bool:
        if self.posted == len(self.todo.steps):
            return False
        after = self.todo.steps[self.posted].after
        return after < 0 or self.pending[after] == 0

    @property
    def done(self) -> bool:
        return self.posted == len(self.todo.steps) and not any(self.pending.values())

    def buffer(self, one: Transfer) -> Ints:
        if one.staged == DIRECT:
            return self.work[slice(*one.spans[0])]
        return self.staging[one.staged : one.staged + one.elements]

    def complete(self, number: int) -> None:
        for one in self.todo.steps[number].receives:
            if one.staged != DIRECT:
                arrived, at = self.buffer(one), 0
                for start, stop in one.spans:
                    part = arrived[at : at + stop - start]
                    self.work[start:stop] = self.work[start:stop] + part if one.adds else part
                    at += stop - start


def run_interleaved(plans: Sequence[RankPlan], inputs: Sequence[Ints], whole: int, choose: Choose) -> list[Ints]:
    """The results of all ranks, in the order of their places."""
    ranks = [_Rank(*_ready(plan, given, whole)) for plan, given in zip(plans, inputs, strict=True)]
    sends: dict[tuple[int, int, int], deque[tuple[int, Transfer]]] = {}
    receives: dict[tuple[int, int, int], deque[tuple[int, Transfer]]] = {}
    while not all(rank.done for rank in ranks):
        moves: list[tuple[int, ...]] = [(at,) for at, rank in enumerate(ranks) if rank.can_move]
        moves += [key for key in sorted(sends) if sends[key] and receives.get(key)]
        if not moves:
            raise Deadlock(f"ranks stand at steps {[rank.posted for rank in ranks]}")
        move = moves[choose(len(moves))]
        if len(move) == 1:
            _post(move[0], ranks[move[0]], sends, receives)
        else:
            _deliver(move, ranks, sends, receives)  # type: ignore[arg-type]
    for rank in ranks:
        completed = {step.after for step in rank.todo.steps}
        for number in range(len(rank.todo.steps)):
            if number not in completed:
                rank.complete(number)
    return [np.concatenate([rank.work[a:b] for a, b in rank.todo.gives] or [rank.work[:0]]) for rank in ranks]


def _ready(plan: RankPlan, given: Ints, whole: int) -> tuple[SizedPlan, Ints, Ints]:
    todo = sized(plan, whole)
    # What nobody has written must never be read: it is full of nonsense.
    work = np.full(todo.work_elements, -(10**12) - plan.rank)
    at = 0
    for start, stop in todo.takes:
        work[start:stop] = given[at : at + stop - start]
        at += stop - start
    assert at == len(given)
    for start, stop in todo.zeroed:
        work[start:stop] = 0
    return todo, work, np.full(todo.staging_elements, -(10**15))


def _post(
    at: int,
    rank: _Rank,
    sends: dict[tuple[int, int, int], deque[tuple[int, Transfer]]],
    receives: dict[tuple[int, int, int], deque[tuple[int, Transfer]]],
) -> None:
    number = rank.posted
    step = rank.todo.steps[number]
    if step.after >= 0:
        rank.complete(step.after)
    for one in step.sends:
        if one.staged != DIRECT:
            rank.buffer(one)[:] = np.concatenate([rank.work[a:b] for a, b in one.spans])
        sends.setdefault((at, one.peer, one.tag), deque()).append((number, one))
    for one in step.receives:
        receives.setdefault((one.peer, at, one.tag), deque()).append((number, one))
    rank.pending[number] = len(step.sends) + len(step.receives)
    rank.posted += 1


def _deliver(
    key: tuple[int, int, int],
    ranks: Sequence[_Rank],
    sends: dict[tuple[int, int, int], deque[tuple[int, Transfer]]],
    receives: dict[tuple[int, int, int], deque[tuple[int, Transfer]]],
) -> None:
    """The oldest send and the oldest receive of a pair and tag meet."""
    source, target, _ = key
    sent_in, sent = sends[key].popleft()
    got_in, got = receives[key].popleft()
    assert sent.elements == got.elements, f"{source} sends {sent.elements} elements, {target} expects {got.elements}"
    ranks[target].buffer(got)[:] = ranks[source].buffer(sent)
    ranks[source].pending[sent_in] -= 1
    ranks[target].pending[got_in] -= 1


def expected_results(plans: Sequence[RankPlan], inputs: Sequence[Ints], whole: int) -> list[Ints]:
    """The contract: in every chunk the sum of the inputs of those that bring it."""
    total = np.zeros(whole, np.int64)
    for plan, given in zip(plans, inputs, strict=True):
        total[_elements(plan, plan.takes, whole)] += given
    return [total[_elements(plan, plan.gives, whole)] for plan in plans]


def inputs_of(plans: Sequence[RankPlan], whole: int, seed: int) -> list[Ints]:
    """Numbers for every rank's chunks, none for ranks that bring nothing."""
    numbers = np.random.default_rng(seed)
    return [numbers.integers(-1000, 1000, len(_elements(plan, plan.takes, whole))) for plan in plans]


def _elements(plan: RankPlan, places: Ints, whole: int) -> Ints:
    start, stop = plan.offsets(places, whole)
    return np.concatenate([np.arange(a, b) for a, b in zip(start, stop, strict=True)] or [np.zeros(0, np.int64)])
