"""How the result of a pass reaches the stage that needs it."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.task.lower.moves import STREAM, Move, Scope
from ropewalk.task.step import Act


@dataclass(frozen=True)
class Hop:
    """A send, and what puts its parts together."""

    sent: Move
    gathered: Move | None
    """Where parts are sent: what puts them together again among the tensor ranks."""


def hop(back: bool, size_bytes: float, giver: Strategy, taker: Strategy, *, split: bool) -> Hop:
    """How a tensor of this many bytes is handed to a stage with the degrees of `taker` by one with those of `giver`.

    Sends to the same stage keep their order, activations and gradients alike: NCCL runs them on one stream.

    `split` says that these bytes are those of all replicas together, of which each holds its part. Between stages of
    different shapes, and between seats, a send is of all these bytes: its messages have their shares of them
    (`roster`).
    """
    if giver.grain == SERVER:
        scope = Scope.BACK if back else Scope.RANK
        return Hop(Move(Act.SEND, scope, size_bytes, STREAM["pipeline"], _label(back)), None)
    sends_parts = taker.tensor > 1 and (taker.sequence_parallel or taker.scatter_gather)
    size = size_bytes / (taker.data if split else taker.context)
    sent = size / taker.tensor if sends_parts else size
    if (giver.data, giver.tensor) != (taker.data, taker.tensor):
        sent = size_bytes
    gathered = Move(Act.ALL_GATHER, Scope.TENSOR, size, STREAM["tensor"], "received")
    return Hop(
        Move(Act.SEND, Scope.RANK, sent, STREAM["pipeline"], _label(back)),
        gathered if sends_parts and not taker.sequence_parallel else None,
    )


def _label(back: bool) -> str:
    return "gradients back" if back else "activations"
