"""One operation of every kind that a gang has, between computations of all who take part.

How copies of operations meet on ranks and links depends on their kinds alone, not on how often and in which order they
run. So who cannot be told apart here cannot be told apart in any gang with these kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.task.kinds import Settled
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.moves import BLOCKING, STREAM, STREAMS, Move, Scope
from ropewalk.task.step import Act

Key = tuple[int, int, int, int, int, Settled]
"""Act, scope, stage, peer, stream and what a library chose for their size: with these two operations have the same
copies, groups and collectives."""
ChooseFor = Callable[[Act, Scope, int, int, float], Settled]
"""What a library chooses for an act of a scope, a stage and its peer, of so many bytes."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds of the operations of a gang."""

    keys: tuple[Key, ...]
    of_operation: Ints


def kinds_of(gang: Gang, by_library: Collection[int] = (), choose: ChooseFor | None = None) -> Kinds:
    """Sort the operations of a gang into kinds; on some streams a library chooses by size."""
    plain = _plain_kinds(gang)
    if choose is None or not by_library:
        return plain
    open_kind = [
        act >= Act.ALL_REDUCE and act != Act.BARRIER and stream in by_library for act, *_, stream, _ in plain.keys
    ]
    keys, number = list(plain.keys), plain.of_operation.copy()
    size, found = gang.amount / gang.repeats, dict[Key, int]()
    for at in np.flatnonzero(open_kind).tolist():
        act, scope, stage, peer, stream, _ = plain.keys[at]
        mine = np.flatnonzero(plain.of_operation == at)
        sizes, which = np.unique(size[mine], return_inverse=True)
        # Kinds are made for every choice, and the first of them takes the place of the kind that was left open.
        chosen = [choose(Act(act), Scope(scope), stage, peer, one) for one in sizes.tolist()]
        place = [_placed((act, scope, stage, peer, stream, one), at, keys, found) for one in chosen]
        number[mine] = np.array(place)[which]
    return Kinds(tuple(keys), number)


def _placed(key: Key, left_open: int, keys: list[Key], found: dict[Key, int]) -> int:
    """The number of a kind, which is new or known."""
    if key not in found:
        if keys[left_open][-1]:
            found[key] = len(keys)
            keys.append(key)
        else:
            found[key], keys[left_open] = left_open, key
    return found[key]


def _plain_kinds(gang: Gang) -> Kinds:
    meetings, meeting = gang.meetings
    streams = int(gang.stream.max(initial=0)) + 1
    code = (meeting * (max(Act) + 1) + gang.act) * streams + gang.stream
    seen = np.zeros(len(meetings) * (max(Act) + 1) * streams, np.bool_)
    seen[code] = True
    known = np.flatnonzero(seen)
    number = np.cumsum(seen) - 1
    keys = []
    for at in known.tolist():
        rest, stream = divmod(at, streams)
        which, act = divmod(rest, max(Act) + 1)
        scope, stage, peer = meetings[which]
        keys.append((act, int(scope), stage, peer, stream, ()))
    return Kinds(tuple(keys), number[code])


RELATED = (Act.ALL_REDUCE, Act.ALL_GATHER, Act.REDUCE_SCATTER)
"""Acts of which other strategies with the same ranks run others: sequence parallelism, ZeRO."""


def with_related(keys: tuple[Key, ...], choice: CollectiveChoice) -> tuple[Key, ...]:
    """These kinds and those of the same groups that other strategies with the same ranks have, where all are rings.

    >>> len(with_related(((Act.ALL_REDUCE, Scope.TENSOR, 0, -1, STREAM["tensor"], ()),), CollectiveChoice()))
    3
    """
    found = set(keys)
    for act, scope, stage, peer, stream, _ in keys:
        both = (STREAM["data"], STREAM["zero"])
        if act not in RELATED or scope == Scope.TIED or stream not in (*BLOCKING, *both):
            continue
        for other in RELATED:
            own = both[other == Act.ALL_GATHER] if stream in both else stream
            if choice.name_for(STREAMS[own]) == "ring":
                found.add((int(other), scope, stage, peer, own, ()))
    return tuple(sorted(found))


def one_of_each(keys: tuple[Key, ...]) -> tuple[Gang, Ints]:
    """A gang with one operation of a byte or a second of every kind, and where each of them stands in it.

    In front of and behind each stand computations of the ranks of both of its stages, which last as long as no others.
    """
    moves: list[Move] = []
    ends: list[tuple[int, int]] = []
    after: list[list[int]] = []
    places = []

    def add(move: Move, stage: int, peer: int, waits: list[int]) -> int:
        moves.append(move)
        ends.append((stage, peer))
        after.append(waits)
        return len(moves) - 1

    def compute(stage: int, waits: list[int]) -> int:
        return add(Move(Act.COMPUTE, Scope.RANK, float(len(moves) + 1), STREAM["compute"], ""), stage, -1, waits)

    for act, scope, stage, peer, stream, _ in keys:
        if act == Act.COMPUTE:
            places.append(compute(stage, []))
            continue
        both = [stage, *([peer] if peer >= 0 else [])]
        arrived = [compute(one, []) for one in both]
        places.append(add(Move(Act(act), Scope(scope), 1.0, stream, ""), stage, peer, arrived))
        for one in both:
            compute(one, [places[-1]])
    stages, peers = np.array(ends, np.int64).reshape(-1, 2).T.copy()
    dep_start = np.cumsum([0, *map(len, after)]).astype(np.int64)
    dep = np.array([at for waits in after for at in waits], np.int64)
    pace = np.ones(int(max(stages.max(initial=-1), peers.max(initial=-1))) + 1)
    return Gang(tuple(moves), np.arange(len(moves)), stages, peers, dep_start, dep, pace), np.array(places, np.int64)
