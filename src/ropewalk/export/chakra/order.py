"""The numbers of nodes decide the schedule: simulators of traces start what is ready in the order of its number.

So operations are numbered by when they could start if communication took no time, which puts what is needed first
first, for every rank alike: two ranks that meet in several collectives then start them in the same order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.task.step import Act, Step


def numbers(step: Step) -> NDArray[np.int64]:
    """A number from 1 on for each operation: by earliest start, then depth, priority and place in the step.

    An operation always has a higher number than those it waits for.
    """
    seconds = np.where(step.act == Act.COMPUTE, step.amount, 0.0).tolist()
    start_of, dep = step.dep_start.tolist(), step.dep.tolist()
    start, depth = [0.0] * step.operations, [0] * step.operations
    for operation in range(step.operations):
        earliest, deepest = 0.0, 0
        for waited in dep[start_of[operation] : start_of[operation + 1]]:
            earliest = max(earliest, start[waited] + seconds[waited])
            deepest = max(deepest, depth[waited] + 1)
        start[operation], depth[operation] = earliest, deepest
    order = np.lexsort((np.arange(step.operations), step.priority, np.array(depth, np.int64), np.array(start)))
    number = np.zeros(step.operations, np.int64)
    number[order] = np.arange(1, step.operations + 1)
    return number
