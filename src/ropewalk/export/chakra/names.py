"""How a step is spelled in a trace: acts as types, and the attributes that say exactly what the schema rounds."""

from __future__ import annotations

from ropewalk.export.chakra.schema import CollectiveType
from ropewalk.task.step import Act

COLLECTIVES: dict[Act, CollectiveType] = {
    Act.ALL_REDUCE: CollectiveType.ALL_REDUCE,
    Act.ALL_GATHER: CollectiveType.ALL_GATHER,
    Act.REDUCE_SCATTER: CollectiveType.REDUCE_SCATTER,
    Act.ALL_TO_ALL: CollectiveType.ALL_TO_ALL,
    Act.BROADCAST: CollectiveType.BROADCAST,
    Act.REDUCE: CollectiveType.REDUCE,
    Act.BARRIER: CollectiveType.BARRIER,
}
ACTS: dict[int, Act] = {int(kind): act for act, kind in COLLECTIVES.items()}


def size_factor(act: Act, ranks: int) -> int:
    """Bytes of the step for each byte of `comm_size`: an all-gather counts what one rank contributes."""
    return ranks if act is Act.ALL_GATHER else 1


# Attributes that only ropewalk reads. Times are whole microseconds and sizes whole bytes in the schema.
SECONDS = "ropewalk_seconds"
BYTES = "ropewalk_bytes"
OPERATION = "ropewalk_operation"
STREAM = "ropewalk_stream"
PRIORITY = "ropewalk_priority"
REPEATS = "ropewalk_repeats"
RENDEZVOUS = "ropewalk_rendezvous"
"""On a receive: the sender, too, waits for what this node waits for."""

IMPLIED = "ropewalk_implied"
"""On a receive: whoever waits for this node waits by itself for all that this node waits for."""
CHUNKS = "ropewalk_chunks"
"""On sends and receives of a program: the chunks that move, such as 0-3,8."""
ROUND = "ropewalk_round"
LANE = "ropewalk_lane"
ADDS = "ropewalk_adds"
"""On a receive of a program: the node that follows adds what arrived; otherwise the receive overwrites."""
ARRIVAL = "ropewalk_arrival"
"""On a node that adds: the receive whose arrival it adds."""

# Attributes of the whole file.
PROGRAM = "ropewalk_program"
PROGRAM_CHUNKS = "ropewalk_program_chunks"
BUFFER_CHUNKS = "ropewalk_buffer_chunks"
HOLDS = "ropewalk_holds"
"""The chunks of which this rank brings a part."""
WANTS = "ropewalk_wants"
"""The chunks whose whole sum this rank ends with."""
RANKS = "ropewalk_ranks"
STREAMS = "ropewalk_streams"
FLOPS = "ropewalk_flops"
PHASE = "ropewalk_phase_"
