"""The best order of sums on one network that may put a sum aside for a more urgent one: largest tail first.

Jackson's preemptive rule: at every moment work on the sum, of those that have begun to exist, behind which the most
computing waits. No schedule ends earlier, and the value has a witness: some set of sums for which the smallest head,
all their seconds and the smallest tail add up to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.arrays import Floats, Ints
from ropewalk.errors import GraphError
from ropewalk.overlap._jackson import largest_tail_first
from ropewalk.overlap.heads_tails import Sums
from ropewalk.overlap.link import Link


@dataclass(frozen=True, eq=False)
class Preemptive:
    """What the network works on when; piece i is of job `job[i]`, from `begin_s[i]` to `end_s[i]`."""

    done_s: Floats
    """By job."""
    value_s: float
    """The latest of done and tail."""
    job: Ints
    begin_s: Floats
    end_s: Floats


def preemptive_jobs(head_s: ArrayLike, seconds: ArrayLike, tail_s: ArrayLike) -> Preemptive:
    """The best preemptive schedule of plain jobs.

    >>> best = preemptive_jobs([0, 1, 3], [4, 2, 1], [1, 5, 4])
    >>> best.value_s, best.done_s.tolist()
    (8.0, [7.0, 3.0, 4.0])
    """
    head, work, tail = _three_columns(head_s, seconds, tail_s)
    order = np.argsort(head, kind="stable")
    count = len(head)
    done = np.zeros(count)
    job, begin, end = np.zeros(2 * count, np.int64), np.zeros(2 * count), np.zeros(2 * count)
    room = np.zeros(count, np.int64), np.zeros(count)
    value, pieces = largest_tail_first(head[order], work[order], tail[order], count, *room, done, job, begin, end)
    by_job = np.empty(count)
    by_job[order] = done
    return Preemptive(by_job, value, order[job[:pieces]], begin[:pieces], end[:pieces])


def preemptive_optimum(sums: Sums, link: Link) -> Preemptive:
    """The best preemptive schedule of sums that each start up once, however often they are put aside."""
    return preemptive_jobs(sums.head_s, link.start_up_s + sums.size_bytes / link.throughput, sums.tail_s)


def _three_columns(head_s: ArrayLike, seconds: ArrayLike, tail_s: ArrayLike) -> tuple[Floats, Floats, Floats]:
    head, work, tail = (np.asarray(column, np.float64) for column in (head_s, seconds, tail_s))
    if not head.ndim == 1 or head.shape != work.shape or head.shape != tail.shape:
        raise GraphError(f"{head.size} heads, {work.size} times and {tail.size} tails: give one of each for every job")
    for label, column in (("head", head), ("time", work), ("tail", tail)):
        if not (np.isfinite(column).all() and (column >= 0).all()):
            raise GraphError(f"a {label} is negative or not finite: give 0 or more seconds")
    return head, work, tail
