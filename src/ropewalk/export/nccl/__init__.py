"""What NCCL reads: rings as graph files, tables for its tuner, variables for its environment."""

from ropewalk.export.nccl.advice import algorithm_advice, graph_advice, tuner_advice
from ropewalk.export.nccl.graph import (
    RingChannel,
    RingGraph,
    orders_of,
    read_ring_graph,
    ring_graphs,
    write_ring_graphs,
)
from ropewalk.export.nccl.rings import channel_speed, ring_orders
from ropewalk.export.nccl.tuner import TunerRow, read_tuner, to_csv, tuner_rows, write_tuner

__all__ = [
    "RingChannel",
    "RingGraph",
    "TunerRow",
    "algorithm_advice",
    "channel_speed",
    "graph_advice",
    "orders_of",
    "read_ring_graph",
    "read_tuner",
    "ring_graphs",
    "ring_orders",
    "to_csv",
    "tuner_advice",
    "tuner_rows",
    "write_ring_graphs",
    "write_tuner",
]
