"""The cluster after every event: GPUs in use, jobs in line, and GPUs in use if only their number counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Curve:
    """Columns, one entry an event; several at one moment are steps of no width."""

    time_s: list[float] = field(default_factory=list)
    used_gpus: list[int] = field(default_factory=list)
    queued_jobs: list[int] = field(default_factory=list)
    wanted_gpus: list[int] = field(default_factory=list)

    def draw(self, now_s: float, used: int, free: int, waiting: Iterable[int], queued: int) -> None:
        """`waiting` are the GPUs that jobs in line ask for, in their order; those count until one does not fit.

        >>> curve = Curve()
        >>> curve.draw(0.0, used=6, free=4, waiting=[1, 2, 2, 1], queued=4)
        >>> curve.wanted_gpus
        [9]
        """
        wanted = used
        for gpus in waiting:
            if gpus > free:
                break
            free -= gpus
            wanted += gpus
        self.time_s.append(now_s)
        self.used_gpus.append(used)
        self.queued_jobs.append(queued)
        self.wanted_gpus.append(wanted)
