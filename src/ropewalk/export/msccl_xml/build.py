"""A program as an MSCCL algorithm: one thread block sends, and one receives, what a lane moves between two ranks.

Sends and arrivals are never put into one thread block. A thread block that sends may then wait for its receiver as long
as it takes, so no number of slots between them, not even none, can lead to a deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.errors import ProgramError
from ropewalk.export.msccl_xml.algo import NOBODY, Algo, XmlGpu, XmlStep, XmlThreadBlock
from ropewalk.export.msccl_xml.targets import REMEDY, LibraryLimits, excess
from ropewalk.export.threadblocks.blocks import Dealt, deal
from ropewalk.export.threadblocks.moves import ChunkRun, Moves, ProgramSend

Link = tuple[int, int, int]
"""(source rank, destination rank, channel)."""


def algo_of_moves(moves: Moves, name: str, inplace: bool, outofplace: bool, target: LibraryLimits) -> Algo:
    """Deal the moves out as finely as the target allows."""
    lanes = 1 + max((move.lane for move in moves.moves), default=0)
    problem: str | None = None
    while True:
        for room in (target.steps, target.steps * 3 // 4, target.steps // 2, target.steps // 4):
            links = _linked(moves, lanes, room, target.count)
            algo = _build(moves, links, name, inplace, outofplace, target)
            problem = excess(algo, target)
            if problem is None:
                return algo
        if lanes == 1:
            raise ProgramError(f"MSCCL algorithm {name!r}: {problem}: {REMEDY}")
        lanes = -(-lanes // 2)


def _linked(moves: Moves, lanes: int, room: int, most: int) -> list[Link]:
    """The channel of each move: one for each (folded) lane between two ranks, a new one when its blocks are full."""
    channels: dict[tuple[int, int], int] = {}
    current: dict[tuple[int, int, int], int] = {}
    spent: dict[Link, int] = {}
    links = []
    for move in moves.moves:
        key = (move.src, move.dst, move.lane % lanes)
        price = len(list(_pieces(move.runs, most)))
        link = (move.src, move.dst, current.get(key, -1))
        if link[2] < 0 or spent[link] + price > room:
            current[key] = channels.get((move.src, move.dst), 0)
            channels[move.src, move.dst] = current[key] + 1
            link = (move.src, move.dst, current[key])
            spent[link] = 0
        spent[link] += price
        links.append(link)
    return links


def _build(moves: Moves, links: list[Link], name: str, inplace: bool, outofplace: bool, target: LibraryLimits) -> Algo:
    dealt = deal(moves, lambda event: (event[1], links[event[0]]))
    layout = moves.layout
    gpus = []
    for rank in range(moves.ranks):
        blocks = _blocks(moves, links, dealt, rank, target.count)
        own = [
            piece
            for source, goal, count in moves.own(rank)
            for piece in _pieces((ChunkRun(("i", source), None, ("o", goal), count, False),), target.count)
        ]
        if own:
            steps = tuple(XmlStep("cpy", run.source, run.target, run.count) for run in own)
            blocks.append(XmlThreadBlock(NOBODY, NOBODY, 0, steps))
        gpus.append(XmlGpu(layout.inputs, layout.outputs, moves.scratch[rank], tuple(blocks)))
    channels = 1 + max((channel for _, _, channel in links), default=0)
    chunks = max(layout.inputs, layout.outputs)
    return Algo(name, layout.collective, chunks, channels, tuple(gpus), inplace, outofplace)


def _blocks(moves: Moves, links: list[Link], dealt: Dealt, rank: int, most: int) -> list[XmlThreadBlock]:
    heard = dealt.heard(rank)
    last_step = _last_steps(moves, dealt, rank, most)
    blocks = []
    for number, events in enumerate(dealt.blocks[rank]):
        steps: list[XmlStep] = []
        for position, event in enumerate(events):
            waits = [(block, last_step[block, place]) for block, place in dealt.awaited.get(event, ())]
            # One step waits for one other; more of them are nops before it, and it has the last one itself.
            steps.extend(XmlStep("nop", ("i", -1), ("o", -1), 0, wait) for wait in waits[:-1])
            own = _steps(moves.moves[event[0]], event[1], most)
            own[0] = _changed(own[0], waits=waits[-1] if waits else None)
            own[-1] = _changed(own[-1], heard=(number, position) in heard)
            steps.extend(own)
        src, dst, channel = links[events[0][0]]
        arrives = events[0][1]
        send, recv = (NOBODY, src) if arrives else (dst, NOBODY)
        blocks.append(XmlThreadBlock(send, recv, channel, tuple(steps)))
    return blocks


def _last_steps(moves: Moves, dealt: Dealt, rank: int, most: int) -> dict[tuple[int, int], int]:
    """The number of the last step of each seat."""
    last: dict[tuple[int, int], int] = {}
    for number, events in enumerate(dealt.blocks[rank]):
        count = 0
        for position, event in enumerate(events):
            waits = len(dealt.awaited.get(event, ()))
            count += max(0, waits - 1) + len(_steps(moves.moves[event[0]], event[1], most))
            last[number, position] = count - 1
    return last


def _steps(move: ProgramSend, arrives: bool, most: int) -> list[XmlStep]:
    steps = []
    for run in _pieces(move.runs, most):
        if not arrives:
            steps.append(XmlStep("s", run.source, run.target, run.count))
        elif run.operand is None:
            steps.append(XmlStep("r", run.source, run.target, run.count))
        else:
            steps.append(XmlStep("rrc", run.operand, run.target, run.count))
    return steps


def _pieces(runs: tuple[ChunkRun, ...], most: int) -> Iterator[ChunkRun]:
    """Runs cut so that no step moves more chunks than fit."""
    for run in runs:
        for first in range(0, run.count, most):
            count = min(most, run.count - first)
            places = (run.source, run.operand, run.target)
            source, operand, target = (None if place is None else (place[0], place[1] + first) for place in places)
            assert source is not None
            assert target is not None
            yield ChunkRun(source, operand, target, count, run.direct)


def _changed(step: XmlStep, waits: tuple[int, int] | None = None, heard: bool = False) -> XmlStep:
    return XmlStep(step.kind, step.src, step.dst, step.count, waits or step.waits, heard or step.heard)
