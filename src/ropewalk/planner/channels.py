"""What a rank communicates for, sorted by who meets and how: the channels that bulk pricing counts bytes in."""

from __future__ import annotations

from enum import IntEnum

from ropewalk.task.lower.moves import STREAM, Move, Scope
from ropewalk.task.step import Act


class Channel(IntEnum):
    """A kind of collective or send. Those up to `TABLES` stop the computation of a layer."""

    TENSOR_REDUCE = 0
    TENSOR_GATHER = 1
    TENSOR_SCATTER = 2
    CONTEXT_GATHER = 3
    CONTEXT_SCATTER = 4
    HEADS = 5
    """Heads of the whole sequence for parts of it of all heads, and back."""
    EXPERT = 6
    TABLES = 7
    DATA_REDUCE = 8
    DATA_SCATTER = 9
    DATA_GATHER = 10
    EXPERT_REDUCE = 11
    EXPERT_SCATTER = 12
    EXPERT_GATHER = 13
    SEND_ON = 14
    """To the stage behind, the first behind the last."""
    SEND_BACK = 15
    TIED = 16


IN_LAYERS = 8
"""How many channels stop the computation of a layer."""
CHANNELS = len(Channel)

_OF_MOVE: dict[tuple[Scope, Act, int], Channel] = {
    (Scope.TENSOR, Act.ALL_REDUCE, STREAM["tensor"]): Channel.TENSOR_REDUCE,
    (Scope.TENSOR, Act.ALL_GATHER, STREAM["tensor"]): Channel.TENSOR_GATHER,
    (Scope.TENSOR, Act.REDUCE_SCATTER, STREAM["tensor"]): Channel.TENSOR_SCATTER,
    (Scope.CONTEXT, Act.ALL_GATHER, STREAM["context"]): Channel.CONTEXT_GATHER,
    (Scope.CONTEXT, Act.REDUCE_SCATTER, STREAM["context"]): Channel.CONTEXT_SCATTER,
    (Scope.CONTEXT, Act.ALL_TO_ALL, STREAM["context"]): Channel.HEADS,
    (Scope.EXPERT, Act.ALL_TO_ALL, STREAM["expert"]): Channel.EXPERT,
    (Scope.DATA, Act.ALL_TO_ALL, STREAM["tables"]): Channel.TABLES,
    (Scope.DATA, Act.ALL_REDUCE, STREAM["data"]): Channel.DATA_REDUCE,
    (Scope.DATA, Act.REDUCE_SCATTER, STREAM["data"]): Channel.DATA_SCATTER,
    (Scope.DATA, Act.ALL_GATHER, STREAM["zero"]): Channel.DATA_GATHER,
    (Scope.EXPERT_DATA, Act.ALL_REDUCE, STREAM["data"]): Channel.EXPERT_REDUCE,
    (Scope.EXPERT_DATA, Act.REDUCE_SCATTER, STREAM["data"]): Channel.EXPERT_SCATTER,
    (Scope.EXPERT_DATA, Act.ALL_GATHER, STREAM["zero"]): Channel.EXPERT_GATHER,
    (Scope.TIED, Act.ALL_REDUCE, STREAM["data"]): Channel.TIED,
}


def channel_of(move: Move) -> Channel:
    """The channel of a collective."""
    return _OF_MOVE[move.scope, move.act, move.stream]


def move_on(channel: Channel, size_bytes: float = 1.0) -> Move:
    """A collective, or a send, of this channel."""
    if channel in (Channel.SEND_ON, Channel.SEND_BACK):
        return Move(Act.SEND, Scope.RANK, size_bytes, STREAM["pipeline"], channel.name)
    scope, act, stream = next(key for key, known in _OF_MOVE.items() if known is channel)
    return Move(act, scope, size_bytes, stream, channel.name)
