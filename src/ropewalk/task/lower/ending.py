"""How a step ends: gradients that are left, tied embeddings, the update, weights gathered again."""

from __future__ import annotations

from collections.abc import Iterable

from ropewalk.strategy.memory import gradient_bytes, tied_copy, updated
from ropewalk.strategy.shares import Share
from ropewalk.task.lower.moves import STREAM, Move, Scope
from ropewalk.task.lower.writer import Writer
from ropewalk.task.step import Act


def finish(writer: Writer) -> None:
    """Write what comes behind the last passes."""
    for number, stage in enumerate(writer.stages):
        writer.reduce_left(number, stage)
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
    seconds = writer.paces[number].update(*updated(writer.views[number], held), writer.strategy.optimiser)
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
