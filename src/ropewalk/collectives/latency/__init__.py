"""What rounds cost: the α-β time of a schedule, and how few rounds a collective can take at all."""

from ropewalk.collectives.latency.bounds import (
    directed_moore_rounds,
    ported_rounds,
    undirected_moore_rounds,
)
from ropewalk.collectives.latency.cost import LinearTime, pipelined_limit_s, schedule_cost

__all__ = [
    "LinearTime",
    "directed_moore_rounds",
    "pipelined_limit_s",
    "ported_rounds",
    "schedule_cost",
    "undirected_moore_rounds",
]
