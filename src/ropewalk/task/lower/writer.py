"""The gang of a step, written pass by pass: what each stage runs in order, what runs beside it."""

from __future__ import annotations

from collections.abc import Iterable

from ropewalk.strategy.prices import Pace
from ropewalk.strategy.shares import Share
from ropewalk.strategy.stages import Pieces
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.hops import Hop, hop
from ropewalk.task.lower.moves import Move
from ropewalk.task.lower.passes import Leg, Passes
from ropewalk.task.lower.stage import Reduction, Stage, Thread
from ropewalk.timetable.passes import Entry, Pass
from ropewalk.workload.workload import Workload

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
        paces: list[Pace],
    ) -> None:
        self.strategy, self.shares, self.pieces, self.passes, self.paces = strategy, shares, pieces, passes, paces
        self.views = strategy.on_stages()
        self.element_bytes = paces[0].element_bytes
        self.gang = Gang()
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
        return hop(back, target, size, self.views[source], self.views[target], split=bool(self.strategy.parts))

    def run_schedule(self) -> None:
        """Write all passes of all stages."""
        moving = True
        while moving:
            moving = False
            for number, stage in enumerate(self.stages):
                while stage.at < len(stage.row) and self._try_slot(number, stage):
                    moving = True
        assert all(stage.at == len(stage.row) for stage in self.stages), "a schedule waits for itself"

    def _try_slot(self, number: int, stage: Stage) -> bool:
        """Write the next pass of a stage, or the next two side by side, if all that they need is written."""
        slot = list(stage.slot())
        for entry, _ in slot:
            if any(given not in self.done for given in self._needed(entry)):
                return False
        for entry, _ in slot:
            self._receive(number, stage, entry)
        threads = [stage.thread.fork() for _ in slot] if len(slot) > 1 else [stage.thread]
        for (entry, last), thread in zip(slot, threads, strict=True):
            self._run(number, stage, thread, entry, last)
        if len(slot) > 1:
            stage.thread.join(threads)
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

    def _run(self, number: int, stage: Stage, thread: Thread, entry: Entry, last: bool) -> None:
        """Write one pass."""
        shared_out = self.strategy.zero >= 2
        reduced = 0
        for leg in self.passes[entry.piece].legs(entry.kind, reduces=shared_out or last):
            self._run_leg(number, thread, leg)
            for move in leg.reduces:
                reduction = Reduction(move, (entry.piece % self.pieces.count, reduced))
                reduced += 1
                if self.strategy.order.overlap:
                    self._reduce(number, reduction, thread.since)
                else:
                    stage.reductions.append(reduction)
        if shared_out:
            # Gradients that are shared out have no place to wait for the end of the step.
            thread.arrived += self.reduce_left(number, stage)

    def _run_leg(self, number: int, thread: Thread, leg: Leg) -> None:
        if leg.gathers and leg.layer != thread.gathered:
            since = thread.before if self.strategy.prefetch else thread.since
            for move in leg.gathers:
                thread.arrived.append(self.beside(number, "zero", move, since))
            thread.gathered = leg.layer
        thread.before = list(thread.cursor)
        for move in leg.moves:
            self.in_order(number, thread, move)

    def reduce_left(self, number: int, stage: Stage) -> list[int]:
        """Reduce the gradients that were not reduced while the backward pass went on."""
        since = stage.thread.since
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
            sent = self.beside(number, path.stream, path.sent, stage.thread.since, peer)
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
