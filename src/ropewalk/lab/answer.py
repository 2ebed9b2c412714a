"""What a lab showed: the prediction beside the measurement, run by run and link by link."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.lab.commands import burst_bytes
from ropewalk.lab.process import LabRun
from ropewalk.sim.trace import Trace
from ropewalk.units import show_seconds

MOST_FREE = 0.02
"""Part of its bytes that a link may pass faster than its speed before a reader is told."""
MOST_MESSAGES = 5_000
"""Messages per second up to which the process of the ranks is not the bottleneck."""


@dataclass(frozen=True, eq=False)
class LinkBytes:
    """Bytes of one run on one link, headers included."""

    link: int
    name: str
    predicted_bytes: float
    sent_bytes: float
    """What the counters of the kernel saw, acknowledgements included."""


@dataclass(frozen=True, eq=False)
class LabAnswer:
    """One piece of work on one lab. Times are those of the lab; a second of it is `real_seconds` on the fabric."""

    what: str
    details: dict[str, Any]
    fabric: Fabric
    """With what headers leave of the speeds of the lab."""
    real_seconds: float
    routing: str
    predicted: Trace
    """The flow level, on what headers leave of every link."""
    wire_speed: NDArray[np.float64]
    """Bytes/s of every link in the lab, headers included."""
    predicted_bytes: NDArray[np.float64]
    """Of one run on every link, headers included."""
    runs: tuple[LabRun, ...]
    """All but the first, in which connections warm up."""
    sent_bytes: NDArray[np.float64]
    """Of one run, on every link."""
    groups: tuple[tuple[int, ...], ...] = ()
    """The transfers of each group, where several run at once."""
    messages: int = 0
    """That a run sends over its connections."""
    dropped: int = 0
    """Packets that found a queue full, in all runs."""

    @property
    def predicted_s(self) -> float:
        return self.predicted.makespan

    @cached_property
    def trusted(self) -> tuple[LabRun, ...]:
        """Runs that the machine did not disturb."""
        return tuple(run for run in self.runs if run.machine.disturbed() is None)

    @property
    def counted(self) -> tuple[LabRun, ...]:
        """The runs that the median is of: those that are trusted, or all of them where none is."""
        return self.trusted or self.runs

    @property
    def measured_s(self) -> float:
        return float(median(run.seconds for run in self.counted))

    @property
    def typical(self) -> LabRun:
        """The run that is nearest to the median."""
        return min(self.counted, key=lambda run: abs(run.seconds - self.measured_s))

    @property
    def spread(self) -> float:
        """From the fastest to the slowest run, as a part of the median."""
        seconds = [run.seconds for run in self.counted]
        return (max(seconds) - min(seconds)) / self.measured_s

    @property
    def error(self) -> float:
        """Measured over predicted, less one."""
        return self.measured_s / self.predicted_s - 1

    @property
    def wrong(self) -> tuple[str, ...]:
        """What was wrong with the data of any run."""
        return tuple(dict.fromkeys(one for run in self.runs for one in run.wrong))

    def links(self) -> list[LinkBytes]:
        """Every link that was to carry something, the fullest first."""
        used = np.flatnonzero(self.predicted_bytes)
        rows = [
            LinkBytes(
                link, self.fabric.link_name(link), float(self.predicted_bytes[link]), float(self.sent_bytes[link])
            )
            for link in used.tolist()
        ]
        return sorted(rows, key=lambda row: (-row.predicted_bytes, row.link))

    def free_share(self) -> float:
        """The part of the bytes of the fullest link that its token bucket, full at the start, lets pass at once."""
        time_of = self.predicted_bytes / self.wire_speed
        fullest = int(np.argmax(time_of))
        if not self.predicted_bytes[fullest]:
            return 0.0
        bucket = burst_bytes(round(8 * float(self.wire_speed[fullest])))
        return min(1.0, bucket / float(self.predicted_bytes[fullest]))

    def group_times(self) -> list[tuple[float, float]]:
        """When the last transfer of each group ended, as predicted and as the median of the runs that count."""
        chosen = [list(tasks) for tasks in self.groups]
        ends = [[max(run.end[task] for task in tasks) for run in self.counted] for tasks in chosen]
        predicted = [float(self.predicted.end[tasks].max()) for tasks in chosen]
        return [(expected, float(median(seen))) for expected, seen in zip(predicted, ends, strict=True)]

    def headline(self) -> str:
        """The answer in a sentence."""
        sign = f"{100 * self.error:+.1f} %"
        return (
            f"{self.what} on {self.fabric.name}: predicted {show_seconds(self.predicted_s)}, "
            f"measured {show_seconds(self.measured_s)} ({sign})"
        )

    def notes(self) -> list[str]:
        """What a reader should know about the runs."""
        said = [f"median of {len(self.counted)} runs, spread {100 * self.spread:.1f} %"]
        if self.real_seconds != 1:
            real = " and ".join(show_seconds(one * self.real_seconds) for one in (self.predicted_s, self.measured_s))
            said.append(f"at the speeds of the fabric (1:{1 / self.real_seconds:g}): {real}")
        if "step_s" in self.details:
            said.append(f"without headers of packets the step is simulated at {show_seconds(self.details['step_s'])}")
        if len(self.groups) > 1:
            times = ", ".join(
                f"group {at} {show_seconds(expected)} and {show_seconds(seen)}"
                for at, (expected, seen) in enumerate(self.group_times())
            )
            said.append(f"predicted and measured: {times}")
        disturbed = len(self.runs) - len(self.trusted)
        if disturbed:
            reason = next(why for run in self.runs if (why := run.machine.disturbed()) is not None)
            void = (
                "and are left out" if self.trusted else "so none of them can be trusted: repeat it on a quiet machine"
            )
            said.append(f"the machine disturbed {disturbed} of {len(self.runs)} runs ({reason}), {void}")
        if (free := self.free_share()) > MOST_FREE:
            said.append(
                f"full buckets let the fullest link pass {100 * free:.0f} % of its bytes at once, so times are up to "
                "as much too short: run more bytes"
            )
        rate = self.messages / self.predicted_s
        if rate > MOST_MESSAGES:
            said.append(
                f"{rate:.0f} messages per second are more than the {MOST_MESSAGES} that ranks keep up with: give a "
                "larger --size or --scale, or a smaller --shrink"
            )
        if self.dropped:
            said.append(f"{self.dropped} packets were dropped: TCP sent them again, which no prediction knows")
        if self.wrong:
            said.append("the data was wrong: " + "; ".join(self.wrong))
        elif "collective" in self.details:
            said.append("every sum was right")
        return said

    def as_json(self) -> dict[str, Any]:
        return {
            "fabric": self.fabric.name,
            **self.details,
            "routing": self.routing,
            "real_seconds_per_second": self.real_seconds,
            "predicted_s": self.predicted_s,
            "measured_s": self.measured_s,
            "error": self.error,
            "spread": self.spread,
            "group_seconds": [{"predicted_s": one, "measured_s": two} for one, two in self.group_times()],
            "data_is_right": not self.wrong,
            "dropped_packets": self.dropped,
            "runs": [
                {"seconds": run.seconds, "disturbed": run.machine.disturbed(), "softirq_s": run.machine.softirq_s,
                 "delay_s": run.machine.delay_s, "steal_s": run.machine.steal_s} for run in self.runs
            ],
            "links": [
                {"link": row.name, "predicted_bytes": row.predicted_bytes, "sent_bytes": row.sent_bytes}
                for row in self.links()
            ],
        }  # fmt: skip
