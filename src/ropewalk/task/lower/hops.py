"""How the result of a pass reaches the stage that needs it."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower.moves import STREAM, Move, Scope
from ropewalk.task.step import Act


@dataclass(frozen=True)
class Hop:
    """A send, and what puts its parts together."""

    stream: str
    """Sends to the same stage keep their order, activations and gradients alike: NCCL runs them on one stream."""
    sent: Move
    gathered: Move | None
    """Where parts are sent: what puts them together again among the tensor ranks."""


def hop(back: bool, stage: int, size_bytes: float, strategy: Strategy) -> Hop:
    """How a tensor of this many bytes is handed to a stage."""
    sends_parts = strategy.tensor > 1 and (strategy.sequence_parallel or strategy.scatter_gather)
    size = size_bytes / strategy.context
    part = size / strategy.tensor if sends_parts else size
    gathered = Move(Act.ALL_GATHER, Scope.TENSOR, size, STREAM["tensor"], "received")
    return Hop(
        f"to {stage}",
        Move(Act.SEND, Scope.RANK, part, STREAM["pipeline"], "gradients back" if back else "activations"),
        gathered if sends_parts and not strategy.sequence_parallel else None,
    )
