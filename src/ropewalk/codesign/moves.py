"""Proposals of the search: a layer sits down elsewhere, a seat spreads to neighbours, two tables swap.

A layer and a seat drawn evenly, and a swap, are as likely one way as back. The propagation of FlexFlow (Jia et al.,
2019) is not: it copies seats and cannot undo that by copying. With it the chain is a search, not a sampler, which is
all that is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ropewalk.codesign.seats import Changes, SeatSpace

Move = Callable[[SeatSpace, Sequence[int], Random], Changes]

GO_ON = 0.75
"""How likely a propagating seat is to go one layer further."""


def reseat(space: SeatSpace, places: Sequence[int], draw: Random) -> Changes:
    """A layer with a choice, drawn evenly, takes one of its seats, drawn evenly."""
    if not space.movable:
        return {}
    layer = draw.choice(space.movable)
    seat = draw.choice(space.options[layer])
    return {} if seat == places[layer] else {layer: seat}


def propagate(space: SeatSpace, places: Sequence[int], draw: Random) -> Changes:
    """A layer's seat is copied to a neighbour that may take it, likelier the more they exchange, and on from there."""
    layer = draw.randrange(len(places))
    seat = places[layer]
    changes: dict[int, int] = {}
    while True:
        beside = [(other, volume) for other, volume in space.neighbours[layer] if seat in space.allowed[other]]
        if not beside:
            return changes
        layer = draw.choices([other for other, _ in beside], [volume for _, volume in beside])[0]
        if places[layer] != seat:
            changes[layer] = seat
        if draw.random() >= GO_ON:
            return changes


def swap(space: SeatSpace, places: Sequence[int], draw: Random) -> Changes:
    """Two pinned tables exchange their servers."""
    if len(space.pinned) < 2:
        return {}
    a, b = draw.sample(space.pinned, 2)
    return {} if places[a] == places[b] else {a: places[b], b: places[a]}


MOVES: tuple[tuple[Move, float], ...] = ((reseat, 0.65), (propagate, 0.25), (swap, 0.10))
"""Every move and how often it is proposed."""


def propose(space: SeatSpace, places: Sequence[int], draw: Random) -> Changes:
    """One proposal; it may be to change nothing."""
    moves, often = zip(*MOVES, strict=True)
    move: Move = draw.choices(moves, often)[0]
    return move(space, places, draw)
