"""Events dealt out to thread blocks, and what each of them waits for in other thread blocks of its rank.

A thread block does its events in the order of the rounds, sends before arrivals. As everything that an event waits for
comes earlier in that order, no dealing can make thread blocks wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from ropewalk.export.threadblocks.moves import Event, Moves

Seat = tuple[int, int]
"""A thread block of a rank, and a position in it."""


@dataclass(frozen=True, eq=False)
class Dealt:
    """Thread blocks of each rank as tuples of events."""

    blocks: list[list[tuple[Event, ...]]]
    seat: dict[Event, Seat]
    awaited: dict[Event, tuple[Seat, ...]]
    """Seats in other thread blocks of the rank that must be over before the event; none that is known already."""

    def heard(self, rank: int) -> dict[Seat, tuple[int, ...]]:
        """The thread blocks that wait for each seat of a rank."""
        listeners: dict[Seat, list[int]] = {}
        for block, events in enumerate(self.blocks[rank]):
            for event in events:
                for seat in self.awaited.get(event, ()):
                    listeners.setdefault(seat, []).append(block)
        return {seat: tuple(sorted(set(who))) for seat, who in listeners.items()}


def deal(
    moves: Moves,
    stream: Callable[[Event], Hashable],
    cost: Callable[[Event], int] | None = None,
    room: int = 0,
    leaders: Mapping[Event, Event] | None = None,
) -> Dealt:
    """One thread block for each stream of a rank; with a cost, streams are cut into blocks of at most `room`.

    Events with a leader take their turn right behind it.
    """
    led = leaders or {}
    events: list[Event] = [(move.number, arrives) for move in moves.moves for arrives in (False, True)]
    events.sort(key=lambda event: (moves.turn(led.get(event, event)), event))
    blocks: list[list[list[Event]]] = [[] for _ in range(moves.ranks)]
    current: dict[tuple[int, Hashable], int] = {}
    spent: dict[tuple[int, int], int] = {}
    seat: dict[Event, Seat] = {}
    for event in events:
        rank = moves.rank_of(event)
        key = (rank, stream(event))
        price = cost(event) if cost is not None else 0
        if key not in current or (cost is not None and spent[rank, current[key]] + price > room):
            current[key] = len(blocks[rank])
            spent[rank, current[key]] = 0
            blocks[rank].append([])
        block = current[key]
        spent[rank, block] += price
        seat[event] = (block, len(blocks[rank][block]))
        blocks[rank][block].append(event)
    awaited = {}
    for rank in range(moves.ranks):
        for number, members in enumerate(blocks[rank]):
            awaited.update(_new_waits(moves, seat, number, members))
    return Dealt([[tuple(members) for members in own] for own in blocks], seat, awaited)


def _new_waits(
    moves: Moves, seat: dict[Event, Seat], number: int, members: list[Event]
) -> dict[Event, tuple[Seat, ...]]:
    """Waits of one thread block: it need not wait again for what comes no later than what it has waited for."""
    reached: dict[int, int] = {}
    waits: dict[Event, tuple[Seat, ...]] = {}
    for event in members:
        furthest: dict[int, int] = {}
        for needed in moves.needs.get(event, ()):
            block, position = seat[needed]
            if block != number and position > reached.get(block, -1):
                furthest[block] = max(position, furthest.get(block, -1))
        if furthest:
            reached.update(furthest)
            waits[event] = tuple(sorted(furthest.items()))
    return waits
