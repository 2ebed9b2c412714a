"""The gang of a step, written pass by pass: what each stage runs in order, what runs beside it, how the step ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ropewalk.strategy.memory import gradient_bytes, tied_copy, updated
from ropewalk.strategy.prices import Pace
from ropewalk.strategy.shares import Share
from ropewalk.strategy.stages import Pieces
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.moves import STREAM, Move, Scope
from ropewalk.task.lower.passes import Leg, Passes
from ropewalk.task.step import Act
from ropewalk.timetable.passes import Entry, Pass
from ropewalk.workload.workload import Workload


@dataclass(frozen=True)
class _Pass:
    """One pass of a stage over one micro-batch."""

    back: bool
    piece: int
    micro_batch: int
    last: bool
    """Is no backward pass of the same piece to come?"""


def _passes_in(row: list[Entry]) -> list[_Pass]:
    """The row of a stage, with the last backward pass of every piece marked."""
    last = {entry.piece: at for at, entry in enumerate(row) if entry.kind == Pass.BACKWARD}
    return [
        _Pass(entry.kind == Pass.BACKWARD, entry.piece, entry.micro_batch, at == last.get(entry.piece))
        for at, entry in enumerate(row)
    ]


@dataclass
class _Stage:
    """Where a stage is in its order of passes, and what its next operations wait for."""

    order: list[_Pass]
    at: int = 0
    cursor: list[int] = field(default_factory=list)
    """What the next operation in order waits for: the last one."""
    arrived: list[int] = field(default_factory=list)
    """What it waits for besides: weights that are gathered, activations on the way."""
    before: list[int] = field(default_factory=list)
    """What the leg before this one waited for: from then on weights are gathered ahead."""
    last: dict[str, int] = field(default_factory=dict)
    """The last operation on each stream that keeps its own order."""
    gathered: int = -1
    """The layer whose weights were gathered last."""
    reductions: list[Move] = field(default_factory=list)
    """Gradients that wait for the end of the backward pass."""


@dataclass(frozen=True)
class _Hop:
    """How the result of a pass reaches the piece that needs it."""

    stream: str
    """Sends of one stream keep their order."""
    sent: Move
    gathered: Move | None
    """Where parts are sent: what puts them together again among the tensor ranks."""


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
        self.element_bytes = paces[0].element_bytes
        self.gang = Gang()
        self.stages = [_Stage(_passes_in(row)) for row in strategy.timetable.rows()]
        self.crossings = pieces.crossings(workload)
        self.sources: list[list[int]] = [[] for _ in range(pieces.count)]
        self.targets: list[list[int]] = [[] for _ in range(pieces.count)]
        for source, target in self.crossings:
            self.sources[target].append(source)
            self.targets[source].append(target)
        self.done: set[tuple[bool, int, int]] = set()
        """Passes that are written: (backward, piece, micro-batch)."""
        self.hops = {
            (back, *(ends[::-1] if back else ends)): self._hop(back, ends[0] if back else ends[1], elements)
            for ends, elements in self.crossings.items()
            for back in (False, True)
        }
        """By direction, piece that hands on and piece that takes."""
        self.sent: dict[tuple[bool, int, int], list[tuple[int, _Hop]]] = {}
        """Sends to a pass, and how each goes."""

    def run_schedule(self) -> None:
        """Write all passes of all stages."""
        moving = True
        while moving:
            moving = False
            for number, stage in enumerate(self.stages):
                while stage.at < len(stage.order) and self._try_pass(number, stage):
                    stage.at += 1
                    moving = True
        assert all(stage.at == len(stage.order) for stage in self.stages), "a schedule waits for itself"

    def _try_pass(self, number: int, stage: _Stage) -> bool:
        """Write the next pass of a stage if all that it needs is written."""
        now = stage.order[stage.at]
        which = back, piece, micro_batch = now.back, now.piece, now.micro_batch
        givers = self.targets[piece] if back else self.sources[piece]
        for giver in givers:
            if (back, giver, micro_batch) not in self.done:
                return False
        self._receive(number, stage, which)
        passes = self.passes[piece]
        if not back:
            legs = passes.forward
        else:
            legs = passes.reducing if self.strategy.zero >= 2 or now.last else passes.backward
        for leg in legs:
            self._run(number, stage, leg)
        if self.strategy.zero >= 2:
            # Gradients that are shared out have no place to wait for the end of the step.
            stage.arrived += self._reduce_left(number, stage)
        self._send(number, stage, which)
        self.done.add(which)
        return True

    def _run(self, number: int, stage: _Stage, leg: Leg) -> None:
        if leg.gathers and leg.layer != stage.gathered:
            since = stage.before if self.strategy.prefetch else [*stage.cursor, *stage.arrived]
            for move in leg.gathers:
                stage.arrived.append(self._beside(number, stage, "zero", move, since))
            stage.gathered = leg.layer
        stage.before = list(stage.cursor)
        for move in leg.moves:
            self._in_order(number, stage, move)
        for move in leg.reduces:
            if self.strategy.overlap_gradients:
                self._beside(number, stage, "data", move, [*stage.cursor, *stage.arrived])
            else:
                stage.reductions.append(move)

    def _reduce_left(self, number: int, stage: _Stage) -> list[int]:
        """Reduce the gradients that were not reduced while the backward pass went on."""
        since = [*stage.cursor, *stage.arrived]
        done = [self._beside(number, stage, "data", move, since) for move in stage.reductions]
        stage.reductions = []
        return done

    def _in_order(self, number: int, stage: _Stage, move: Move) -> None:
        """An operation that the stage cannot go on without."""
        stage.cursor = [self.gang.add(move, number, [*stage.cursor, *stage.arrived])]
        stage.arrived = []

    def _beside(self, number: int, stage: _Stage, stream: str, move: Move, since: Iterable[int], peer: int = -1) -> int:
        """An operation beside the computation, behind the last one on its own stream."""
        after = [*since, *([stage.last[stream]] if stream in stage.last else [])]
        stage.last[stream] = self.gang.add(move, number, after, peer)
        return stage.last[stream]

    def _send(self, number: int, stage: _Stage, which: tuple[bool, int, int]) -> None:
        """Hand the result of a pass to the pieces that need it."""
        back, piece, micro_batch = which
        for taker in self.sources[piece] if back else self.targets[piece]:
            peer = self.pieces.stage(taker)
            if peer == number:
                continue  # the order of the stage is enough
            hop = self.hops[back, piece, taker]
            sent = self._beside(number, stage, hop.stream, hop.sent, [*stage.cursor, *stage.arrived], peer)
            self.sent.setdefault((back, taker, micro_batch), []).append((sent, hop))

    def _receive(self, number: int, stage: _Stage, which: tuple[bool, int, int]) -> None:
        """Wait for what was sent to a pass; parts are gathered by the tensor ranks."""
        for sent, hop in self.sent.pop(which, []):
            stage.arrived.append(sent)
            if hop.gathered is not None:
                self._in_order(number, stage, hop.gathered)

    def _hop(self, back: bool, taker: int, elements: int) -> _Hop:
        """How a tensor is handed from a piece to another one."""
        strategy = self.strategy
        sends_parts = strategy.tensor > 1 and (strategy.sequence_parallel or strategy.scatter_gather)
        size = elements * self.element_bytes / strategy.context
        part = size / strategy.tensor if sends_parts else size
        gathered = Move(Act.ALL_GATHER, Scope.TENSOR, size, STREAM["tensor"], "received")
        return _Hop(
            f"{'back' if back else 'ahead'} to {self.pieces.stage(taker)}",
            Move(Act.SEND, Scope.RANK, part, STREAM["pipeline"], "gradients back" if back else "activations"),
            gathered if sends_parts and not strategy.sequence_parallel else None,
        )

    def finish(self) -> None:
        """Write the end of the step: gradients that are left, tied embeddings, the update, weights gathered again."""
        for number, stage in enumerate(self.stages):
            self._reduce_left(number, stage)
        self._tie()
        for number, stage in enumerate(self.stages):
            held = [self.shares[at] for at in self.pieces.layers_of_stage(number)]
            stage.arrived += [stage.last[stream] for stream in ("data", "tied") if stream in stage.last]
            self._in_order(number, stage, self._update(number, held))
            if self.strategy.zero in (1, 2):
                for move in self._gather_updated(held):
                    self._beside(number, stage, "zero", move, stage.cursor)

    def _update(self, number: int, held: list[Share]) -> Move:
        seconds = self.paces[number].update(*updated(self.strategy, held), self.strategy.optimiser)
        return Move(Act.COMPUTE, Scope.RANK, seconds, STREAM["compute"], "update")

    def _gather_updated(self, held: list[Share]) -> Iterable[Move]:
        size = self.element_bytes
        copies = self.strategy.replicas // self.strategy.expert
        for scope, ways, count in (
            (Scope.DATA, self.strategy.replicas, sum(share.parameters for share in held) + tied_copy(held)),
            (Scope.EXPERT_DATA, copies, sum(share.expert_parameters for share in held)),
        ):
            if ways > 1 and count:
                yield Move(Act.ALL_GATHER, scope, count * size, STREAM["zero"], "updated weights")

    def _tie(self) -> None:
        """Sum the gradients of an embedding that two stages hold between the two."""
        held = [[self.shares[at] for at in self.pieces.layers_of_stage(stage)] for stage in range(len(self.stages))]
        for number, shares in enumerate(held):
            copy = tied_copy(shares)
            owner = next((at for at, others in enumerate(held) if any(copy in one.embeddings for one in others)), None)
            if not copy or owner is None:
                continue
            size = copy * gradient_bytes(self.strategy, self.element_bytes)
            move = Move(Act.ALL_REDUCE, Scope.TIED, size, STREAM["data"], "tied embedding")
            both = [self.stages[owner], self.stages[number]]
            after = [at for stage in both for at in [*stage.cursor, *stage.arrived]]
            after += [stage.last["data"] for stage in both if "data" in stage.last]
            tied = self.gang.add(move, owner, after, number)
            for stage in both:
                stage.last["tied"] = tied
