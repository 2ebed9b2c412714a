"""What the machine did while a job ran: whether something else took the cores that a lab needs for itself."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ropewalk.units import show_percent

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MOST_STOLEN, MOST_DELAYED, LEAST_IDLE = 0.01, 0.02, 0.10
"""Parts of a run beyond which its time is not that of the network."""
MOST_DELAYED_AHEAD = 0.25
"""The same of delays, where ranks are ahead of all others: many short ones, while the network carries on."""


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
    priority: str = ""
    """How ranks ran ahead of other processes: `real-time`, `nice` or not at all."""
    wakes: float = 0
    """How often ranks got a core."""
    chain: int = 0
    """Tasks of the longest chain of the job: so many delays can add up to a later end."""

    def disturbed(self) -> str | None:
        """Why the time of this run is not to be trusted; None where the machine had enough left.

        >>> MachineUse(2.0, 2, 0.0, 0.001, 0.2, 0.3, 3.0).disturbed()
        >>> MachineUse(2.0, 2, 0.0, 0.5, 0.2, 0.3, 3.0).disturbed()
        'ranks waited 25 % of the run for a core'
        >>> [MachineUse(2.0, 2, 0.0, 0.001, 0.2, 0.3, 0.0, priority).disturbed() for priority in ("", "real-time")]
        ['no core was idle', None]
        """
        if self.delay_s > (MOST_DELAYED_AHEAD if self.priority == "real-time" else MOST_DELAYED) * self.wall_s:
            return f"ranks waited {show_percent(self.delay_s / self.wall_s, 0)} of the run for a core"
        if (late := self.chain * self.delay_s / max(self.wakes, 1.0)) > MOST_DELAYED * self.wall_s:
            return f"ranks waited about {show_percent(late / self.wall_s, 0)} of the run for cores"
        if self.steal_s > MOST_STOLEN * self.wall_s * self.cores:
            return f"other virtual machines took {100 * self.steal_s / (self.wall_s * self.cores):.1f} % of the cores"
        if self.own_s > (1 - LEAST_IDLE) * self.wall_s:
            return "ranks kept a core busy"
        if self.own_s + self.softirq_s > (1 - LEAST_IDLE) * self.wall_s * self.cores:
            return "ranks and packets kept all cores busy"
        if not self.priority and self.idle_s < LEAST_IDLE * self.wall_s * self.cores:
            return "no core was idle"
        return None


def disturbed_said(runs: Sequence[MachineUse]) -> str | None:
    """How many runs the machine disturbed, why, and what that means for the others; None where it disturbed none.

    >>> quiet, busy = (MachineUse(2.0, 2, 0.0, 0.001, 0.2, 0.3, idle) for idle in (3.0, 0.0))
    >>> disturbed_said([quiet, quiet])
    >>> disturbed_said([quiet, busy])
    'the machine disturbed 1 of 2 runs (no core was idle), which is left out'
    >>> disturbed_said([busy])
    'the machine disturbed 1 of 1 run (no core was idle), so no run can be trusted: repeat it on an idle machine'
    """
    reasons = [why for run in runs if (why := run.disturbed()) is not None]
    if not reasons:
        return None
    left_out = f"which {'is' if len(reasons) == 1 else 'are'} left out"
    void = left_out if len(reasons) < len(runs) else "so no run can be trusted: repeat it on an idle machine"
    return (
        f"the machine disturbed {len(reasons)} of {len(runs)} run{'' if len(runs) == 1 else 's'} ({reasons[0]}), {void}"
    )


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
        _, waited, wakes = map(int, Path("/proc/self/schedstat").read_text().split())
    except OSError:
        waited = wakes = 0  # a kernel that does not count them
    return {
        "wall_s": time.perf_counter(),
        "steal_s": steal,
        "delay_s": waited * 1e-9,
        "wakes": wakes,
        "softirq_s": softirq,
        "own_s": time.process_time(),
        "idle_s": idle + waiting,
    }
