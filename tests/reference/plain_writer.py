"""The gang of a step written move by move in plain Python: what the kernel of `task.lower` is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ropewalk.strategy.memory import gradient_bytes, tied_copy, updated
from ropewalk.strategy.prices import Pace
from ropewalk.strategy.shares import Share
from ropewalk.strategy.stages import Pieces
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.hops import Hop, hop
from ropewalk.task.lower.moves import STREAM, Move, Scope
from ropewalk.task.lower.passes import Leg, Passes
from ropewalk.task.step import Act
from ropewalk.timetable.passes import Entry, Pass
from ropewalk.workload.workload import Workload


def plain_gang(
    workload: Workload,
    strategy: Strategy,
    shares: tuple[Share, ...],
    pieces: Pieces,
    passes: list[Passes],
    prices: Pace,
    pace: list[float],
) -> PlainGang:
    """The same as `script_of(...).gang()`, whatever the pace."""
    writer = Writer(workload, strategy, shares, pieces, passes, prices)
    writer.run_schedule()
    finish(writer)
    return writer.gang


@dataclass
class PlainGang:
    """Operations one behind the other: (move, stage, peer, those it waits for)."""

    rows: list[tuple[Move, int, int, tuple[int, ...]]] = field(default_factory=list)

    def add(self, move: Move, stage: int, after: Iterable[int], peer: int = -1) -> int:
        self.rows.append((move, stage, peer, tuple(dict.fromkeys(after))))
        return len(self.rows) - 1


GRADIENTS_DONE = (Pass.BACKWARD, Pass.WEIGHT)
"""Passes after which the gradients of a micro-batch are complete."""


@dataclass
class Thread:
    """Operations of a stage one after the other; of two passes side by side each has a thread of its own."""

    cursor: list[int] = field(default_factory=list)
    """What the next operation waits for: the last one."""
    arrived: list[int] = field(default_factory=list)
    """What it waits for besides: weights that are gathered, activations on the way."""
    before: list[int] = field(default_factory=list)
    """What the leg before this one waited for: from then on weights are gathered ahead."""
    gathered: int = -1
    """The layer whose weights were gathered last."""

    @property
    def since(self) -> list[int]:
        return [*self.cursor, *self.arrived]

    def fork(self) -> Thread:
        return replace(self, cursor=[*self.cursor], arrived=[*self.arrived], before=[*self.before])

    def join(self, others: Sequence[Thread]) -> None:
        """Go on when all of these have come to their ends."""
        self.cursor = list(dict.fromkeys(at for other in others for at in other.cursor))
        self.arrived = list(dict.fromkeys(at for other in others for at in other.arrived))
        self.before, self.gathered = others[-1].before, others[-1].gathered


@dataclass(frozen=True)
class Reduction:
    """Gradients to be reduced; `key` tells those that two copies of the model reduce together."""

    move: Move
    key: tuple[int, int]
    """Piece of the model, counted in one copy, and place in its last backward pass."""


@dataclass
class Stage:
    """A row of passes, how far it is written, and the last operation on each of its streams."""

    row: list[Entry]
    at: int = 0
    thread: Thread = field(default_factory=Thread)
    last: dict[str, int] = field(default_factory=dict)
    """The last operation on each stream that keeps its own order."""
    reductions: list[Reduction] = field(default_factory=list)
    """Gradients that wait for the end of the backward pass."""

    def __post_init__(self) -> None:
        ends = {entry.piece: at for at, entry in enumerate(self.row) if entry.kind in GRADIENTS_DONE}
        self._ends = set(ends.values())

    def slot(self) -> Iterator[tuple[Entry, bool]]:
        """The pass that comes next, or the two that run side by side; True behind the last gradients of a piece."""
        if self.at < len(self.row):
            for at in range(self.at, self.at + 1 + self.row[self.at].paired):
                yield self.row[at], at in self._ends


Handed = tuple[bool, int, int]
"""What a pass hands on: (backward, piece, micro-batch)."""


class Writer:
    """Writes the gang, pass by pass, in an order in which inputs come before those who need them."""

    def __init__(
        self,
        workload: Workload,
        strategy: Strategy,
        shares: tuple[Share, ...],
        pieces: Pieces,
        passes: list[Passes],
        prices: Pace,
    ) -> None:
        self.strategy, self.shares, self.pieces, self.passes, self.prices = strategy, shares, pieces, passes, prices
        self.views = strategy.on_stages()
        self.element_bytes = prices.element_bytes
        self.gang = PlainGang()
        self.stages = [Stage(row) for row in strategy.timetable.rows()]
        crossings = pieces.crossings(workload)
        every = len(pieces.homes)
        self.sources: list[list[int]] = [[] for _ in range(every)]
        self.targets: list[list[int]] = [[] for _ in range(every)]
        self.hops: dict[tuple[bool, int, int], Hop] = {}
        """By direction, piece that hands on and piece that takes."""
        for copy in range(0, every, pieces.count):
            for (source, target), elements in crossings.items():
                ends = source + copy, target + copy
                self.sources[ends[1]].append(ends[0])
                self.targets[ends[0]].append(ends[1])
                for back, giver, taker in ((False, *ends), (True, *ends[::-1])):
                    self.hops[back, giver, taker] = self._hop(back, giver, taker, elements)
        self.done: set[Handed] = set()
        self.sent: dict[Handed, list[tuple[int, Hop]]] = {}
        """Sends to a pass, and how each goes."""
        self.half_done: dict[tuple[int, int], tuple[int, list[int]]] = {}
        """Reductions that wait for the second copy of the model: stage of the first, and what it waits for."""

    def _hop(self, back: bool, giver: int, taker: int, elements: int) -> Hop:
        source, target = self.pieces.stage(giver), self.pieces.stage(taker)
        size = elements * self.element_bytes
        return hop(back, size, self.views[source], self.views[target], split=bool(self.strategy.parts))

    def run_schedule(self) -> None:
        """Write all passes of all stages; those of both copies together where they share weights out."""
        together = self.strategy.zero >= 2 and self.strategy.copies > 1
        twins = [self.pieces.twin(number) if together else -1 for number in range(len(self.stages))]
        seats = [
            (number, twin) if together else (number,)
            for number, twin in enumerate(twins)
            if twin > number or not together
        ]
        moving = True
        while moving:
            moving = False
            for numbers in seats:
                while self.stages[numbers[0]].at < len(self.stages[numbers[0]].row) and self._try_slot(numbers):
                    moving = True
        assert all(stage.at == len(stage.row) for stage in self.stages), "a schedule waits for itself"

    def _try_slot(self, numbers: tuple[int, ...]) -> bool:
        """Write the next pass of these stages, or the next two side by side, if all that they need is written."""
        stages = [self.stages[number] for number in numbers]
        slots = [list(stage.slot()) for stage in stages]
        for entry, _ in (one for slot in slots for one in slot):
            if any(given not in self.done for given in self._needed(entry)):
                return False
        for number, stage, slot in zip(numbers, stages, slots, strict=True):
            for entry, _ in slot:
                self._receive(number, stage, entry)
        several = len(slots[0]) > 1
        threads = [[stage.thread.fork() for _ in slots[0]] if several else [stage.thread] for stage in stages]
        for at in range(len(slots[0])):
            entries = [slot[at][0] for slot in slots]
            self._run(numbers, [mine[at] for mine in threads], entries, slots[0][at][1])
        for number, stage, slot, mine in zip(numbers, stages, slots, threads, strict=True):
            if several:
                stage.thread.join(mine)
            for entry, _ in slot:
                self._send(number, stage, entry)
            stage.at += len(slot)
        return True

    def _needed(self, entry: Entry) -> Iterable[Handed]:
        """What a pass takes from other pieces; gradients of weights take nothing."""
        if entry.kind == Pass.WEIGHT:
            return ()
        back = entry.kind != Pass.FORWARD
        givers = self.targets[entry.piece] if back else self.sources[entry.piece]
        return ((back, giver, entry.micro_batch) for giver in givers)

    def _run(self, numbers: tuple[int, ...], threads: list[Thread], entries: list[Entry], last: bool) -> None:
        """Write one pass of a stage, or that of its twin as well, leg by leg."""
        shared_out = self.strategy.zero >= 2
        legs = [self.passes[one.piece].legs(one.kind, reduces=shared_out or last) for one in entries]
        reduced = 0
        for several in zip(*legs, strict=True):
            self._gather(numbers, threads, several[0])
            for number, thread, leg in zip(numbers, threads, several, strict=True):
                thread.before = list(thread.cursor)
                running: list[int] = []
                for move in leg.moves:
                    if move.beside:
                        running.append(self.gang.add(move, number, thread.since))
                    else:
                        self.in_order(number, thread, move)
                        thread.arrived, running = running, []
                for place, move in enumerate(leg.reduces, reduced):
                    reduction = Reduction(move, (entries[0].piece % self.pieces.count, place))
                    if self.strategy.order.overlap:
                        self._reduce(number, reduction, thread.since)
                    else:
                        self.stages[number].reductions.append(reduction)
            reduced += len(several[0].reduces)
        if shared_out:
            # Gradients that are shared out have no place to wait for the end of the step.
            done = [self.reduce_left(number, thread) for number, thread in zip(numbers, threads, strict=True)][-1]
            for thread in threads:
                thread.arrived += done

    def _gather(self, numbers: tuple[int, ...], threads: list[Thread], leg: Leg) -> None:
        """Gather weights for a leg of these stages."""
        if not leg.gathers or leg.layer == threads[0].gathered:
            return
        since = [at for one in threads for at in (one.before if self.strategy.prefetch else one.since)]
        for move in leg.gathers:
            if len(numbers) == 1:
                made = self.beside(*numbers, "zero", move, since)
            else:
                made = self.between(*numbers, "zero", move, since)
            for thread in threads:
                thread.arrived.append(made)
        for thread in threads:
            thread.gathered = leg.layer

    def reduce_left(self, number: int, thread: Thread) -> list[int]:
        """Reduce the gradients that were not reduced while the backward pass went on."""
        stage, since = self.stages[number], thread.since
        done = [self._reduce(number, reduction, since) for reduction in stage.reductions]
        stage.reductions = []
        return [at for at in done if at is not None]

    def _reduce(self, number: int, reduction: Reduction, since: list[int]) -> int | None:
        """Reduce gradients; where stages keep two copies of the model, once both of them have got there."""
        if self.strategy.copies == 1:
            return self.beside(number, "data", reduction.move, since)
        if reduction.key not in self.half_done:
            self.half_done[reduction.key] = number, since
            return None
        other, before = self.half_done.pop(reduction.key)
        return self.between(other, number, "data", reduction.move, [*before, *since])

    def in_order(self, number: int, thread: Thread, move: Move) -> None:
        """An operation that the stage cannot go on without."""
        thread.cursor = [self.gang.add(move, number, thread.since)]
        thread.arrived = []

    def beside(self, number: int, stream: str, move: Move, since: Iterable[int], peer: int = -1) -> int:
        """An operation beside the computation, behind the last one on its own stream."""
        last = self.stages[number].last
        after = [*since, *([last[stream]] if stream in last else [])]
        last[stream] = self.gang.add(move, number, after, peer)
        return last[stream]

    def between(self, one: int, other: int, stream: str, move: Move, since: Iterable[int]) -> int:
        """An operation of two stages, behind the last one of both on this stream."""
        lasts = [self.stages[number].last for number in (one, other)]
        after = [*since, *(last[stream] for last in lasts if stream in last)]
        at = self.gang.add(move, one, after, other)
        for last in lasts:
            last[stream] = at
        return at

    def _send(self, number: int, stage: Stage, entry: Entry) -> None:
        """Hand the result of a pass to the pieces that need it."""
        if entry.kind == Pass.WEIGHT:
            return
        back, piece = entry.kind != Pass.FORWARD, entry.piece
        for taker in self.sources[piece] if back else self.targets[piece]:
            peer = self.pieces.stage(taker)
            if peer == number:
                continue  # the order of the stage is enough
            path = self.hops[back, piece, taker]
            sent = self.beside(number, f"to {peer}", path.sent, stage.thread.since, peer)
            self.sent.setdefault((back, taker, entry.micro_batch), []).append((sent, path))
        self.done.add((back, piece, entry.micro_batch))

    def _receive(self, number: int, stage: Stage, entry: Entry) -> None:
        """Wait for what was sent to a pass; parts are gathered by the tensor ranks."""
        if entry.kind == Pass.WEIGHT:
            return
        for sent, path in self.sent.pop((entry.kind != Pass.FORWARD, entry.piece, entry.micro_batch), []):
            stage.thread.arrived.append(sent)
            if path.gathered is not None:
                self.in_order(number, stage.thread, path.gathered)


def finish(writer: Writer) -> None:
    """Write what comes behind the last passes."""
    for number, stage in enumerate(writer.stages):
        writer.reduce_left(number, stage.thread)
    assert not writer.half_done, "gradients of one copy of the model wait for the other"
    held = [[writer.shares[at] for at in writer.pieces.layers_of_stage(stage)] for stage in range(len(writer.stages))]
    _tie(writer, held)
    for number, stage in enumerate(writer.stages):
        stage.thread.arrived += [stage.last[stream] for stream in ("data", "tied") if stream in stage.last]
        writer.in_order(number, stage.thread, _update(writer, number, held[number]))
        other = writer.pieces.twin(number)
        for move in _gather_updated(writer, number, held[number]) if writer.strategy.zero in (1, 2) else ():
            if other < 0:
                writer.beside(number, "zero", move, stage.thread.cursor)
            elif other < number:
                both = [*writer.stages[other].thread.cursor, *stage.thread.cursor]
                writer.between(other, number, "zero", move, both)


def _update(writer: Writer, number: int, held: list[Share]) -> Move:
    seconds = writer.prices.update(*updated(writer.views[number], held), writer.strategy.optimiser)
    return Move(Act.COMPUTE, Scope.RANK, seconds, STREAM["compute"], "update")


def _gather_updated(writer: Writer, number: int, held: list[Share]) -> Iterable[Move]:
    """Weights that ranks updated in parts."""
    strategy, size = writer.views[number], writer.element_bytes
    for scope, ways, count in (
        (Scope.DATA, strategy.replicas, sum(share.parameters for share in held) + tied_copy(held)),
        (Scope.EXPERT_DATA, strategy.replicas // strategy.expert, sum(share.expert_parameters for share in held)),
    ):
        if ways > 1 and count:
            yield Move(Act.ALL_GATHER, scope, count * size, STREAM["zero"], "updated weights")


def _tie(writer: Writer, held: list[list[Share]]) -> None:
    """Sum the gradients of an embedding that two stages hold between the two."""
    for number, shares in enumerate(held):
        copy = tied_copy(shares)
        owner = next((at for at, others in enumerate(held) if any(copy in one.embeddings for one in others)), None)
        if not copy or owner is None:
            continue
        size = copy * gradient_bytes(writer.strategy, writer.element_bytes)
        move = Move(Act.ALL_REDUCE, Scope.TIED, size, STREAM["data"], "tied embedding")
        both = [writer.stages[owner], writer.stages[number]]
        after = [at for stage in both for at in stage.thread.since]
        after += [stage.last["data"] for stage in both if "data" in stage.last]
        tied = writer.gang.add(move, owner, after, number)
        for stage in both:
            stage.last["tied"] = tied
