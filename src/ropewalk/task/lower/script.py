"""What the gang of a step is written from, as arrays: rows of passes, legs of pieces, hops between them, the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.strategy.between import gradients_between, parts_between
from ropewalk.strategy.memory import gradient_bytes, tied_copy, updated
from ropewalk.strategy.prices import Pace
from ropewalk.strategy.seating import seat_of
from ropewalk.strategy.shares import Share
from ropewalk.strategy.stages import Pieces
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.task.lower.columns import SPARE_THREADS, Ending, Hops, Legs, TimetableRows, WriterState
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.hops import hop
from ropewalk.task.lower.moves import STREAM, Move, Scope
from ropewalk.task.lower.passes import Leg, Passes
from ropewalk.task.lower.updated import gathered_behind
from ropewalk.task.step import Act
from ropewalk.timetable.passes import Pass
from ropewalk.timetable.table import Timetable
from ropewalk.workload.workload import Workload

KINDS = tuple(Pass)
OWN_STREAMS = 3
"""Streams of a stage that keep their own order besides its sends: gradients, weights, tied embeddings."""


class _Moves:
    """A table of moves while it is filled."""

    def __init__(self) -> None:
        self.rows: list[Move] = []

    def add(self, moves: Sequence[Move]) -> range:
        """The rows that these moves have now."""
        first = len(self.rows)
        self.rows += moves
        return range(first, len(self.rows))


@dataclass(frozen=True, eq=False)
class Script:
    """All that the kernel needs to write a gang."""

    moves: tuple[Move, ...]
    rows: TimetableRows
    legs: Legs
    hops: Hops
    ending: Ending
    line: Ints
    """By stage: stages on the same ranks have the same number, and reduce their gradients one after the other."""
    flags: Ints
    """Reductions overlap the backward pass, gradients are shared out, weights are gathered a layer ahead, two copies,
    sends to a stage keep their order, updated weights are gathered from the beginning on."""
    pieces: int
    """Of one copy of the model."""
    micro_batches: int
    pace: NDArray[np.float64]
    """By stage, as in a `Gang`."""

    def gang(self) -> Gang:
        """Write it."""
        # Numba is imported here, not at the top: commands that only read input never pay for it.
        from ropewalk.task.lower._book_kernel import DEPENDENCIES, FULL, OPERATIONS, make_book
        from ropewalk.task.lower._writer_kernel import write_gang

        operations = self._most_operations()
        room = 4 * operations
        while True:
            book, desk = make_book(operations, room), self._desk()
            complete = write_gang(book, desk, self.rows, self.legs, self.hops, self.ending, self.flags)
            assert complete, "a schedule waits for itself"
            if not book.size[FULL]:
                break
            room *= 2
        assert (desk.half_done[:, :, 0] < 0).all(), "gradients of one copy of the model wait for the other"
        many, deps = int(book.size[OPERATIONS]), int(book.size[DEPENDENCIES])
        return Gang(
            self.moves, book.move[:many], book.stage[:many], book.peer[:many], book.dep_start[: many + 1],
            book.dep[:deps], self.pace,
        )  # fmt: skip

    def _most_operations(self) -> int:
        """Operations at most: gathers may be left out."""
        legs, rows = self.legs, self.rows
        of_leg = np.diff(legs.move_start) + np.diff(legs.gather_start) + np.diff(legs.reduce_start)
        before = np.concatenate([[0], np.cumsum(of_leg)])
        of_pass = (before[legs.behind] - before[legs.first]).reshape(-1, 2).max(axis=1)
        passes = int(of_pass[rows.piece * 4 + rows.kind].sum())
        end = len(self.ending.tie) + len(self.ending.update) + len(self.ending.gather)
        return passes + 2 * len(self.hops.sent) * self.micro_batches + end

    def _desk(self) -> WriterState:
        stages, every, hops = len(self.line), len(self.legs.first) // 8, len(self.hops.sent)
        threads = len(self.rows.row_start) - 1 + SPARE_THREADS
        most = int(self.legs.reduce_place.max(initial=-1)) + 1
        return WriterState._make((
            self.rows.row_start[:-1].copy(),
            *(np.full(threads, -1) for _ in range(4)),
            np.full((stages, OWN_STREAMS + stages), -1),
            self.line,
            np.full(stages, -1),
            np.zeros((2, every, self.micro_batches), np.bool_),
            np.full((hops, self.micro_batches), -1),
            np.full((self.pieces, most, 3), -1),
        ))  # fmt: skip


def script_of(
    workload: Workload,
    strategy: Strategy,
    shares: tuple[Share, ...],
    pieces: Pieces,
    passes: list[Passes],
    prices: Pace,
    pace: Sequence[float],
) -> Script:
    """What the gang of this step is written from; computations of stage s take `pace[s]` times their prices."""
    moves, views, element_bytes = _Moves(), strategy.on_stages(shares[0].server.gpus), prices.element_bytes
    shared_out = strategy.zero >= 2
    held = [[shares[at] for at in pieces.layers_of_stage(stage)] for stage in range(len(views))]
    legs = _legs(moves, passes, pieces.count, shared_out)
    hops = _hops(moves, pieces.crossings(workload), pieces, strategy, views, element_bytes)
    lines, waits = _lines(strategy, len(views))
    ending = _ending(moves, strategy, views, held, pieces, prices, waits)
    flags = [
        strategy.order.overlap, shared_out, strategy.prefetch, strategy.copies > 1, strategy.grain != SERVER,
        strategy.gather_ahead,
    ]  # fmt: skip
    return Script(
        tuple(moves.rows), _rows(strategy.timetable, pieces, len(views)), legs, hops, ending, _ints(lines),
        np.array(flags, np.int64), pieces.count, strategy.micro_batches, np.array(pace, np.float64),
    )  # fmt: skip


def _lines(strategy: Strategy, stages: int) -> tuple[list[int], list[list[int]]]:
    """By stage: its line, which stages on the same ranks share, and all lines that some of its ranks are in."""
    if strategy.grain != SERVER:
        return list(range(stages)), [[line] for line in range(stages)]
    workers = [one.workers for one in strategy.stage_parts]
    number: dict[tuple[int, ...], int] = {}
    lines = [number.setdefault(mine, len(number)) for mine in workers]
    of_line = {line: set(mine) for mine, line in number.items()}
    return lines, [[line for line, ours in of_line.items() if not ours.isdisjoint(mine)] for mine in workers]


def _rows(table: Timetable, pieces: Pieces, stages: int) -> TimetableRows:
    home, row_of_stage = _ints(pieces.homes), np.zeros(stages, np.int64)
    row_of_stage[home] = table.device_of_piece
    piece, number = table.piece.astype(np.int64), np.arange(table.passes)
    done = np.flatnonzero((table.kind == Pass.BACKWARD) | (table.kind == Pass.WEIGHT))
    last = np.full(len(table.device_of_piece), -1)
    last[piece[done]] = done
    first, ahead = np.full(len(table.device_of_piece), -1), np.flatnonzero(table.kind == Pass.FORWARD)[::-1]
    first[piece[ahead]] = ahead
    return TimetableRows(
        table.row_start, table.kind.astype(np.int64), piece, table.micro_batch.astype(np.int64),
        table.paired.astype(np.int64), (number == last[piece]) | (number == first[piece]), home, row_of_stage,
    )  # fmt: skip


def _legs(moves: _Moves, passes: list[Passes], count: int, shared_out: bool) -> Legs:
    empty: tuple[list[int], ...] = ([], [], [], [], [])
    first, behind, layer, reduce_piece, reduce_place = empty
    columns: tuple[list[range], list[range], list[range]] = ([], [], [])
    for piece, mine in enumerate(passes):
        written: dict[int, tuple[int, int]] = {}
        for kind in KINDS:
            if kind not in mine.plain:
                first += (0, 0)
                behind += (0, 0)
                continue
            for reduces in (False, True):
                # Where gradients are shared out every pass reduces them.
                known = reduces or not shared_out
                legs: tuple[Leg, ...] = mine.legs(kind, reduces=reduces) if known else ()
                if id(legs) not in written:
                    place = 0
                    for leg in legs:
                        for column, part in zip(columns, (leg.moves, leg.gathers, leg.reduces), strict=True):
                            column.append(moves.add(part))
                        layer.append(leg.layer)
                        reduce_piece += [piece % count] * len(leg.reduces)
                        reduce_place += range(place, place + len(leg.reduces))
                        place += len(leg.reduces)
                    written[id(legs)] = len(layer) - len(legs), len(layer)
                first.append(written[id(legs)][0])
                behind.append(written[id(legs)][1])
    (starts, run), *others = (_csr(column) for column in columns)
    beside = _ints(moves.rows[at].beside for at in run)
    ends = _ints(reduce_piece), _ints(reduce_place)
    return Legs._make([_ints(first), _ints(behind), _ints(layer), starts, run, beside, *chain(*others), *ends])


def _hops(
    moves: _Moves,
    crossings: dict[tuple[int, int], int],
    pieces: Pieces,
    strategy: Strategy,
    views: tuple[Strategy, ...],
    element_bytes: float,
) -> Hops:
    every, anything_moves = len(pieces.homes), _moves_between(strategy)
    rows: list[tuple[int, int, int, int]] = []
    give: list[list[int]] = [[] for _ in range(2 * every)]
    take: list[list[int]] = [[] for _ in range(2 * every)]
    for copy in range(0, every, pieces.count):
        for (source, target), elements in crossings.items():
            ends = source + copy, target + copy
            for back, giver, taker in ((False, *ends), (True, *ends[::-1])):
                here, there = pieces.stage(giver), pieces.stage(taker)
                sent, gathered = -1, []
                if anything_moves(back, here, there):
                    size = elements * element_bytes
                    made = hop(back, size, views[here], views[there], split=bool(strategy.parts))
                    sent, *gathered = moves.add([made.sent, *([made.gathered] if made.gathered is not None else [])])
                give[back * every + giver].append(len(rows))
                take[back * every + taker].append(len(rows))
                rows.append((giver, there, sent, gathered[0] if gathered else -1))
    columns = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    return Hops._make([*columns, *_csr(give), *_csr(take)])


Moves = Callable[[bool, int, int], bool]
"""Does anything move back or forth from one stage to another?"""


def _moves_between(strategy: Strategy) -> Moves:
    """On the same ranks, split alike, nothing moves: their order is enough."""
    if strategy.grain != SERVER:
        return lambda back, here, there: here != there
    seats = [seat_of(one) for one in strategy.stage_parts]

    @cache
    def any_part(back: bool, here: int, there: int) -> bool:
        return len((gradients_between if back else parts_between)(seats[here], seats[there]).src) > 0

    return any_part


def _ending(
    moves: _Moves,
    strategy: Strategy,
    views: tuple[Strategy, ...],
    held: list[list[Share]],
    pieces: Pieces,
    prices: Pace,
    waits: list[list[int]],
) -> Ending:
    element_bytes = prices.element_bytes
    ties = []
    for number, shares in enumerate(held):
        copy = tied_copy(shares)
        owner = next((at for at, others in enumerate(held) if any(copy in one.embeddings for one in others)), None)
        if copy and owner is not None:
            size = copy * gradient_bytes(strategy, element_bytes)
            move = Move(Act.ALL_REDUCE, Scope.TIED, size, STREAM["data"], "tied embedding")
            ties.append((owner, number, *moves.add([move])))
    update: list[int] = []
    gathers: list[range] = []
    for view, mine in zip(views, held, strict=True):
        together = [mine] if prices.factor is not None else [[share] for share in mine]
        seconds = sum(prices.update(*updated(view, group), strategy.optimiser) for group in together)
        update += moves.add([Move(Act.COMPUTE, Scope.RANK, seconds, STREAM["compute"], "update")])
        behind = strategy.zero in (1, 2) and not strategy.gather_ahead
        again = gathered_behind(view, mine, prices.listed.numbers) if behind else ()
        gathers.append(moves.add(list(again)))
    twins = _ints(pieces.twin(stage) for stage in range(len(views)))
    tied = np.array(ties, np.int64).reshape(-1, 3).T.copy()
    return Ending._make([*tied, _ints(update), *_csr(waits), *_csr(gathers), twins])


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int64)


def _csr(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    return np.cumsum([0, *map(len, rows)]).astype(np.int64), np.fromiter(chain.from_iterable(rows), np.int64)
