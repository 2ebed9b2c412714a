"""Schedules of breadth-first broadcasts: the fewest rounds that a fabric allows, D of them, or 2D for an all-reduce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.along_trees import TREE_COLLECTIVES, TreeCollective
from ropewalk.collectives.breadth_first.broadcast import BroadcastRound, BroadcastRounds, broadcast
from ropewalk.collectives.breadth_first.neighbours import Neighbours, Way, neighbours_of
from ropewalk.collectives.lanes import Rounds
from ropewalk.collectives.latency.cost import schedule_cost
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.program import Condition, Pattern, Program, Round, everyone, owner
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import ProgramError
from ropewalk.fabric import Fabric
from ropewalk.ragged import ranges
from ropewalk.routing import Routes, make_routes


def bfb_schedule(network: Network, collective: str, segments: int = 1, *, root: int | None = None) -> Schedule:
    """The breadth-first schedule of a collective; `root` is a host of the group (the first one unless given).

    The parts of the buffer that belong to a rank stand together, in the order of ranks. An all-reduce is a
    reduce-scatter and an all-gather. With more than one segment these follow each other a round apart, so that links
    which one round leaves idle work for the next one; the rounds are then D + segments - 1.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Hypercube
    >>> schedule = bfb_schedule(network_of(Hypercube(4, bandwidth=1e9).build()), "allgather")
    >>> schedule.program.check()
    >>> len(schedule.program.rounds), schedule.promise
    (4, Fraction(12800000000, 3))
    """
    if collective not in TREE_COLLECTIVES:
        raise ProgramError(f"there is no breadth-first {collective!r}: choose {', '.join(TREE_COLLECTIVES)}")
    if segments < 1:
        raise ProgramError(f"a pipeline of {segments} segments carries nothing: give at least 1")
    purpose = TREE_COLLECTIVES[collective]
    weight = _weights(network, purpose, root)
    moves: list[_Moves] = []
    ways: dict[tuple[int, int], tuple[Way, ...]] = {}
    parts: list[tuple[Neighbours, BroadcastRounds]] = []
    if purpose.reduces:
        parts.append(_part(network.reversed(), weight))
    if purpose.spreads:
        parts.append(_part(network, weight))
    pieces = int(np.lcm.reduce([part.pieces for _, part in parts]))
    first = np.cumsum([0, *weight]) * pieces
    for graph, part in parts:
        adds = graph.network.backwards != network.backwards
        own = [_moves_of(step, first, pieces // part.pieces, adds) for step in part.steps]
        moves += own[::-1] if adds else own
        ways |= {(u, w) if adds else (w, u): way for (w, u), way in graph.ways.items()}
    program = _program(purpose, weight, pieces, moves, segments)
    hosts = network.members.astype(np.int32)
    routes = _routes(network.fabric, hosts, {pair: ways[pair] for pair in _pairs_used(moves)})
    schedule = Schedule("breadth-first", program, hosts, routes)
    return replace(schedule, promise=1 / schedule_cost(schedule, network).seconds_per_byte)


def _weights(network: Network, purpose: TreeCollective, root: int | None) -> tuple[int, ...]:
    if not purpose.one_root:
        if root is not None:
            raise ProgramError(f"a {purpose.title} has no root: leave the root out")
        return network.weight
    host = int(network.members[0]) if root is None else root
    if host not in network.members:
        raise ProgramError(f"{purpose.title}: host {host} is not in the group: give the root as a host of the group")
    return tuple(int(member == host) for member in network.members)


def _part(network: Network, weight: tuple[int, ...]) -> tuple[Neighbours, BroadcastRounds]:
    graph = neighbours_of(network)
    return graph, broadcast(graph, weight)


@dataclass(frozen=True, eq=False)
class _Moves:
    """What moves in one step of the unsegmented program, chunk by chunk, grouped by (sender, receiver)."""

    src: Ints
    dst: Ints
    chunk: Ints
    adds: bool


def _moves_of(step: BroadcastRound, first: Ints, scale: int, adds: bool) -> _Moves:
    """A step as chunks; a sum takes the same arcs the other way round."""
    count = step.count * scale
    chunk = ranges(first[step.shard] + step.first * scale, count)
    ends = (np.repeat(step.dst, count), np.repeat(step.src, count))
    src, dst = ends if adds else ends[::-1]
    return _Moves(src, dst, chunk, adds)


def _pairs_used(moves: list[_Moves]) -> list[tuple[int, int]]:
    ends = np.concatenate([np.column_stack([step.src, step.dst]) for step in moves])
    return [(int(w), int(u)) for w, u in np.unique(ends, axis=0)]


def _program(
    purpose: TreeCollective, weight: tuple[int, ...], pieces: int, moves: list[_Moves], segments: int
) -> Program:
    ranks = len(weight)
    owner_of_piece = np.repeat(np.arange(ranks), np.array(weight) * pieces)
    roots: Condition = owner(ranks, lambda chunk: owner_of_piece[chunk // segments])
    everybody = everyone(ranks)
    return Program(
        name=f"breadth-first {purpose.title}" + (f" in {segments} segments" if segments > 1 else ""),
        ranks=ranks,
        chunks=len(owner_of_piece) * segments,
        rounds=tuple(_rounds(moves, segments)),
        pre=everybody if purpose.reduces else roots,
        post=everybody if purpose.spreads else roots,
    )


def _rounds(moves: list[_Moves], segments: int) -> Rounds:
    """Segment s takes step t in round s + t; rounds in which the same steps are busy share their pattern."""
    known: dict[range, _Busy] = {}
    rounds = []
    for number in range(len(moves) + segments - 1):
        steps = range(max(0, number - segments + 1), min(number + 1, len(moves)))
        if steps not in known:
            known[steps] = _busy(moves, steps)
        busy = known[steps]
        rounds.append(Round(busy.pattern, partial(_chunks_in_round, busy, number, segments)))
    return rounds


@dataclass(frozen=True, eq=False)
class _Busy:
    """The arrows of steps that are taken in the same round by segments that follow each other."""

    pattern: Pattern
    start: Ints
    piece: Ints
    step: Ints


def _busy(moves: list[_Moves], steps: range) -> _Busy:
    active = [moves[step] for step in steps]
    src, dst, piece = (np.concatenate([getattr(each, name) for each in active]) for name in ("src", "dst", "chunk"))
    length = [len(each.chunk) for each in active]
    adds = np.repeat([each.adds for each in active], length)
    step = np.repeat(list(steps), length)
    order = np.lexsort((piece, step, adds, dst, src))
    src, dst, piece, adds, step = (column[order] for column in (src, dst, piece, adds, step))
    leads = np.ones(len(src), bool)
    leads[1:] = (np.diff(src) != 0) | (np.diff(dst) != 0) | (adds[1:] != adds[:-1])
    begins = np.flatnonzero(leads)
    start = np.append(begins, len(src))
    pattern = Pattern(
        src=src[begins].astype(np.int32),
        dst=dst[begins].astype(np.int32),
        chunks=np.diff(start),
        reduces=adds[begins].astype(np.bool_),
        lane=np.zeros(len(begins), np.int32),
    )
    return _Busy(pattern, start.astype(np.int64), piece, step)


def _chunks_in_round(busy: _Busy, number: int, segments: int) -> tuple[Ints, Ints]:
    return busy.start, busy.piece * segments + (number - busy.step)


def _routes(fabric: Fabric, hosts: NDArray[np.int32], ways: Mapping[tuple[int, int], tuple[Way, ...]]) -> Routes:
    """The paths of all pairs that are used, in the order of their hosts."""
    listed = sorted((int(hosts[w]), int(hosts[u]), way) for (w, u), way in ways.items())
    paths = [(pair, links, share) for pair, (_, _, way) in enumerate(listed) for links, share in way]
    return make_routes(
        fabric,
        np.array([src for src, _, _ in listed], np.int32),
        np.array([dst for _, dst, _ in listed], np.int32),
        np.array([pair for pair, _, _ in paths], np.int64),
        np.array([float(share) for _, _, share in paths], np.float64),
        np.repeat(np.arange(len(paths)), [len(links) for _, links, _ in paths]),
        np.array([link for _, links, _ in paths for link in links], np.int32),
    )
