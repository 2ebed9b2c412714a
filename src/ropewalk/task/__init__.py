"""One training step as a graph of tasks."""

from ropewalk.task.compose import parallel, sequence
from ropewalk.task.graph import Sketch, TaskGraph, TaskKind, make_graph
from ropewalk.task.lockstep import Arrows, Lockstep, lockstep, unroll, write_out

__all__ = [
    "Arrows",
    "Lockstep",
    "Sketch",
    "TaskGraph",
    "TaskKind",
    "lockstep",
    "make_graph",
    "parallel",
    "sequence",
    "unroll",
    "write_out",
]
