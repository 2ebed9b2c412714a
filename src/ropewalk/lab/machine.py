"""What the machine did while a job ran: whether something else took the cores that a lab needs for itself."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MOST_STOLEN, MOST_DELAYED, LEAST_IDLE = 0.01, 0.02, 0.10
"""Parts of a run beyond which its time is not that of the network."""


@dataclass(frozen=True)
class MachineUse:
    """Seconds of CPU time during a run, of all cores together; `wall_s` is the run itself."""

    wall_s: float
    cores: int
    steal_s: float
    """Taken by other machines on the same hardware."""
    delay_s: float
    """In which the ranks were ready to run and waited for a core."""
    softirq_s: float
    """Spent by the kernel on packets."""
    own_s: float
    """Spent by the ranks."""
    idle_s: float

    def disturbed(self) -> str | None:
        """Why the time of this run is not to be trusted; None where the machine had enough left.

        >>> MachineUse(2.0, 2, 0.0, 0.001, 0.2, 0.3, 3.0).disturbed()
        >>> MachineUse(2.0, 2, 0.0, 0.5, 0.2, 0.3, 3.0).disturbed()
        'ranks waited 25 % of the run for a core'
        """
        if self.delay_s > MOST_DELAYED * self.wall_s:
            return f"ranks waited {self.delay_s / self.wall_s:.0%} of the run for a core".replace("%", " %")
        if self.steal_s > MOST_STOLEN * self.wall_s * self.cores:
            return f"other machines took {self.steal_s / (self.wall_s * self.cores):.0%} of the cores".replace(
                "%", " %"
            )
        if self.idle_s < LEAST_IDLE * self.wall_s * self.cores:
            return "no core was idle"
        return None


class Watch:
    """Looks at the counters of the kernel when it is made, and again when asked."""

    def __init__(self) -> None:
        self._before = _counters()

    def seen(self) -> dict[str, float]:
        """The fields of a `MachineUse`."""
        passed = {name: value - self._before[name] for name, value in _counters().items()}
        return {**passed, "cores": len(os.sched_getaffinity(0))}


def _counters() -> dict[str, float]:
    cpu = [int(value) * _TICK_S for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    _, _, _, idle, waiting, _, softirq, steal = cpu
    try:
        delay = int(Path("/proc/self/schedstat").read_text().split()[1]) * 1e-9
    except OSError:
        delay = 0.0  # a kernel that does not count it
    return {
        "wall_s": time.perf_counter(),
        "steal_s": steal,
        "delay_s": delay,
        "softirq_s": softirq,
        "own_s": time.process_time(),
        "idle_s": idle + waiting,
    }
