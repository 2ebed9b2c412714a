"""Passes on the gradients of a step: fuse, split, order, prioritise, limit, stream, repeat; each a pure function.

`lowered_apart` lifts the gradients out of a lowered step, passes rewrite how they are launched, `woven` puts them back:

>>> from ropewalk.task.passes.data_parallel import two_ranks
>>> woven(cross_barrier(split(fuse(two_ranks([4, 8, 2]), [[2, 1], [0]]), 5), 2)).step.ranks
2
"""

from ropewalk.task.passes.apart import gradients_of_layers, lowered_apart
from ropewalk.task.passes.credit import credit
from ropewalk.task.passes.fuse import fuse
from ropewalk.task.passes.gradients import Arrival, Gradients, gradients_in
from ropewalk.task.passes.launched_once import launched_once
from ropewalk.task.passes.pack import pack
from ropewalk.task.passes.prioritise import by_consumer, by_tail, in_launch_order, prioritise
from ropewalk.task.passes.repetition import cross_barrier, with_barrier
from ropewalk.task.passes.sequence import sequence
from ropewalk.task.passes.split import split
from ropewalk.task.passes.stream import stream
from ropewalk.task.passes.weave import Woven, woven

__all__ = [
    "Arrival",
    "Gradients",
    "Woven",
    "by_consumer",
    "by_tail",
    "credit",
    "cross_barrier",
    "fuse",
    "gradients_in",
    "gradients_of_layers",
    "in_launch_order",
    "launched_once",
    "lowered_apart",
    "pack",
    "prioritise",
    "sequence",
    "split",
    "stream",
    "with_barrier",
    "woven",
]
