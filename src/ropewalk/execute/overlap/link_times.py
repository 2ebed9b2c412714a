"""What an all-reduce takes on the links that are there: start-up and bytes a second, fitted to measured times."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ropewalk.errors import DeviceError
from ropewalk.overlap.link import Link

SIZES = tuple(1 << power for power in range(12, 23, 2))
"""4 KiB to 4 MiB."""

MOST_IN_A_ROW = 64

MOST_REPEATS = 8
"""Before a network whose all-reduces do not get slower as they grow is reported as one that cannot be measured."""


@dataclass(frozen=True)
class LinkTimes:
    """Seconds of one all-reduce by its bytes, smallest first; of many in a row, the share of one."""

    size_bytes: tuple[int, ...]
    seconds: tuple[float, ...]

    def link(self) -> Link:
        """Speed by the two largest sizes, which decide about a step; start-up by the mean of what is left of all.

        A line through all sizes would be too steep or too flat at its far end: what a queue lets pass at once after a
        pause makes short operations faster than the line.
        """
        size, seconds = np.array(self.size_bytes, np.float64), np.array(self.seconds)
        per_byte = float((seconds[-1] - seconds[-2]) / (size[-1] - size[-2]))
        if per_byte <= 0:
            raise DeviceError(
                f"all-reduces of {size[-1]:g} bytes took no longer than those of {size[-2]:g}: measure larger ones, or "
                "on an idle machine"
            )
        return Link(bandwidth=1 / per_byte, start_up_s=max(0.0, float((seconds - size * per_byte)[:-1].mean())))


def measured_all_reduces(
    group: Any, *, sizes: Sequence[int] = SIZES, window: int = 1, row_bytes: int = 4 << 20, runs: int = 3
) -> LinkTimes:
    """Time rows of all-reduces with so many of them on their way at once; every rank of the group calls it.

    Rows are long, so that what links let pass at once after a pause does not count. A row takes as long as it took its
    slowest rank, so that all ranks get the same times. Where something else on the machine made the largest size look
    no slower than the one below it, both are timed again, and the median is of all their runs.
    """

    def timed(size: int) -> list[float]:
        count = min(MOST_IN_A_ROW, -(-row_bytes // size))
        return [_row_seconds(group, size, count, window) / count for _ in range(runs + 1)][1:]

    taken = [timed(size) for size in sizes]
    for _ in range(MOST_REPEATS):
        if np.median(taken[-1]) > np.median(taken[-2]):
            break
        for place in (-2, -1):
            taken[place] += timed(sizes[place])
    return LinkTimes(tuple(sizes), tuple(float(np.median(several)) for several in taken))


def _row_seconds(group: Any, size: int, count: int, window: int) -> float:
    """Seconds of so many all-reduces in a row, by the clock of the slowest rank."""
    import torch
    import torch.distributed as dist

    buffer = [torch.zeros(size // 4) for _ in range(window)]
    dist.barrier(group)
    start = time.perf_counter()
    under_way: deque[Any] = deque()
    for number in range(count):
        if len(under_way) == window:
            under_way.popleft().wait()
        under_way.append(dist.all_reduce(buffer[number % window], group=group, async_op=True))
    while under_way:
        under_way.popleft().wait()
    slowest = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)
    return float(slowest)
