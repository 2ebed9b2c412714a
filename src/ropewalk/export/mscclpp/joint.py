"""Arrivals that are added to the same chunks in the same round, which one operation can add up together.

One after the other, each of them would have to wait for the one before. As one, they cost one pass over the data: the
thread block waits for all senders and reduces everything that has landed into the target at once.
"""

from __future__ import annotations

from ropewalk.export.mscclpp.plan import MOST_PER_OPERATION
from ropewalk.export.threadblocks.moves import Event, Moves


def leaders(moves: Moves) -> dict[Event, Event]:
    """The first of its companions, for every arrival that has some."""
    groups: dict[object, list[Event]] = {}
    for move in moves.moves:
        if all(run.operand is not None for run in move.runs):
            targets = tuple((run.target, run.count) for run in move.runs)
            groups.setdefault((move.round, move.lane, move.dst, targets), []).append((move.number, True))
    found = {}
    for events in groups.values():
        for first in range(0, len(events), MOST_PER_OPERATION):
            group = events[first : first + MOST_PER_OPERATION]
            if len(group) > 1 and _independent(moves, group):
                found.update(dict.fromkeys(group, group[0]))
    return found


def _independent(moves: Moves, group: list[Event]) -> bool:
    """Nobody in the group waits for something of the same round outside of it, which might in turn wait for others."""
    round_of_group = moves.moves[group[0][0]].round
    members = set(group)
    return all(
        needed in members or moves.moves[needed[0]].round < round_of_group or needed < group[0]
        for event in group
        for needed in moves.needs.get(event, ())
    )
