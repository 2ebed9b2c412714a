"""Passes on the gradients of a step: fuse, split, order, prioritise, limit, stream, repeat; each a pure function.

`gradients_in` lifts the gradients out of a step, passes rewrite how they are launched, `woven` puts them back. Lowering
runs them on one rank of every stage (`task.lower.launching`), before that is copied for all ranks.
"""

from ropewalk.task.passes.credit import credit
from ropewalk.task.passes.fuse import fuse
from ropewalk.task.passes.gradients import Gradients, TensorArrival, gradients_in
from ropewalk.task.passes.launched_once import launched_once
from ropewalk.task.passes.pack import pack
from ropewalk.task.passes.prioritise import by_consumer, in_launch_order, prioritise
from ropewalk.task.passes.repetition import cross_barrier, with_barrier
from ropewalk.task.passes.split import split
from ropewalk.task.passes.stream import stream
from ropewalk.task.passes.weave import Woven, woven

__all__ = [
    "Gradients",
    "TensorArrival",
    "Woven",
    "by_consumer",
    "credit",
    "cross_barrier",
    "fuse",
    "gradients_in",
    "in_launch_order",
    "launched_once",
    "pack",
    "prioritise",
    "split",
    "stream",
    "with_barrier",
    "woven",
]
