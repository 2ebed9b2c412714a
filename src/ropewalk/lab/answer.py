"""What a lab showed: the prediction beside the measurement, run by run and link by link."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.lab.machine import disturbed_said
from ropewalk.lab.parting import Parting, parting
from ropewalk.lab.predict import below_packets
from ropewalk.lab.process import LabRun
from ropewalk.lab.result import FlowTimes, LabPrediction, LinkCurves, Span
from ropewalk.lab.taken import RoutesTaken
from ropewalk.lab.timed import TimedFault
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskKind
from ropewalk.units import show_seconds

MOST_STALLS = 5
MOST_MESSAGES = 40_000
"""Messages per second up to which ranks are not the bottleneck: half of what benchmarks/lab_messages.py measures."""
MOST_BELOW_PACKETS = 0.05
"""The part of all bytes in transfers smaller than a packet from which on their headers matter."""
_PRIORITIES = {
    "real-time": "ranks had real-time priority, ahead of other processes",
    "nice": "ranks had a better nice value than other processes",
    "": "ranks run at normal priority, as this user may not raise it: other processes can delay them",
}


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
    levels: tuple[LabPrediction, ...]
    """The same at every level that was asked for, the flow level first."""
    wire_speed: NDArray[np.float64]
    """Bytes/s of every link in the lab, headers included."""
    predicted_bytes: NDArray[np.float64]
    """Of one run on every link, headers included."""
    runs: tuple[LabRun, ...]
    """All but the first, in which connections warm up."""
    curves: tuple[LinkCurves, ...]
    """What links had sent by when, of every run."""
    sent_bytes: NDArray[np.float64]
    """Of one run, on every link."""
    fair: bool = True
    """Whether flows took turns on links; otherwise packets left in the order in which they came."""
    groups: tuple[tuple[int, ...], ...] = ()
    """The transfers of each group, where several run at once."""
    messages: int = 0
    """That a run sends over its connections."""
    dropped: int = 0
    """Packets that found a queue full, in all runs."""
    retransmitted: int = 0
    """Segments that TCP sent again, in all runs."""
    gone: tuple[str, ...] = ()
    """Links that somebody rewired while it ran."""
    changed: tuple[str, ...] = ()
    """What another command did to links while it ran, in sentences."""
    faults: tuple[TimedFault, ...] = ()
    """What happened to links in every run."""
    taken: RoutesTaken | None = None
    """On which links flows were seen; None where nobody looked."""

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

    @cached_property
    def parting(self) -> Parting:
        """Where prediction and measurement part, and why."""
        return parting(self)

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

    def flows(self) -> list[FlowTimes]:
        """Every transfer, in the order of tasks."""
        graph, routes, names = self.predicted.graph, self.predicted.routes, self.fabric.node_names
        tasks = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
        rows = routes.rows_of(graph, tasks) if len(tasks) else tasks
        first = routes.link_start[routes.path_start]
        return [
            FlowTimes(
                task=task,
                src=names[graph.place[task]],
                dst=names[graph.peer[task]],
                size_bytes=float(graph.amount[task]),
                links=tuple(dict.fromkeys(routes.link[first[row] : first[row + 1]].tolist())),
                predicted={one.level: Span(float(one.start[task]), float(one.end[task])) for one in self.levels},
                measured=Span(self.typical.start[task], self.typical.end[task]),
            )
            for task, row in zip(tasks.tolist(), rows.tolist(), strict=True)
        ]

    @property
    def typical_curves(self) -> LinkCurves:
        """What links had sent by when in the run that is nearest to the median."""
        return self.curves[self.runs.index(self.typical)]

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

    def notes(self, *, advice: bool = True) -> list[str]:
        """What a reader should know about the runs; without `advice` no options of `lab run` that would help."""
        said = self._times_said()
        if (disturbed := disturbed_said([run.machine for run in self.runs])) is not None:
            said.append(disturbed)
        said.append(_PRIORITIES[self.typical.machine.priority])
        rate = self.messages / self.predicted_s
        if rate > MOST_MESSAGES:
            said.append(
                f"{rate:.0f} messages per second are more than the {MOST_MESSAGES} that ranks keep up with"
                + (": give a larger --size or --scale, or a smaller --shrink" if advice else "")
            )
        if (small := below_packets(self.predicted.graph)) > MOST_BELOW_PACKETS:
            said.append(
                f"{100 * small:.0f} % of the bytes are in transfers smaller than a packet, whose headers weigh more "
                "than predicted" + (": give a larger --size, or a smaller --shrink" if advice else "")
            )
        if self.dropped:
            said.append(f"{self.dropped} packets were dropped: TCP retransmitted them, which predictions do not model")
        if self.gone:
            said.append(
                f"circuits changed during the run: {', '.join(self.gone)} are gone; the prediction is for those before"
            )
        if self.changed:
            said.append(
                f"changed by another command during the run: {', '.join(self.changed)}; the prediction is for before"
            )
        said += [f"in every run {fault.said()}" for fault in self.faults]
        if self.typical.stalls:
            said.append(self._stalls_said())
        if self.taken is not None:
            said.append(self.taken.said())
        if self.wrong:
            said.append("the data was wrong: " + "; ".join(self.wrong))
        elif "collective" in self.details:
            said.append("every result was correct")
        return said

    def _times_said(self) -> list[str]:
        """The times of the runs, on the fabric, of groups and at other levels."""
        spread = f"median of {len(self.counted)} runs, spread {100 * self.spread:.1f} %"
        said = [spread if len(self.counted) > 1 else "one measured run, so its spread is unknown"]
        if self.real_seconds != 1:
            real = " and ".join(show_seconds(one * self.real_seconds) for one in (self.predicted_s, self.measured_s))
            said.append(f"at fabric bandwidth (1:{1 / self.real_seconds:g}): {real}")
        if "step_s" in self.details:
            said.append(self._step_said())
        if len(self.groups) > 1:
            times = ", ".join(
                f"group {at} {show_seconds(expected)} and {show_seconds(seen)}"
                for at, (expected, seen) in enumerate(self.group_times())
            )
            said.append(f"predicted and measured: {times}")
        for one in self.levels[1:]:
            error = self.measured_s / one.seconds - 1
            said.append(f"level {one.level} predicts {show_seconds(one.seconds)} ({100 * error:+.1f} %)")
        return said

    def _step_said(self) -> str:
        step = show_seconds(self.details["step_s"])
        if self.details["steps"] == 1:
            return f"without packet headers the step is simulated at {step}"
        whole = f"the {self.details['steps']} steps are simulated at {show_seconds(self.details['steps_s'])}"
        return f"without packet headers {whole}, and one between others at {step}"

    def _stalls_said(self) -> str:
        graph, names = self.predicted.graph, self.fabric.node_names
        stalls = sorted(self.typical.stalls, key=lambda stall: stall[1] - stall[2])
        said = [
            f"{names[graph.place[task]]} to {names[graph.peer[task]]} "
            f"from {show_seconds(since)} to {show_seconds(until)}"
            for task, since, until in stalls[:MOST_STALLS]
        ]
        more = "" if len(stalls) <= MOST_STALLS else f" and {len(stalls) - MOST_STALLS} more"
        return f"stalled transfers, longest first: {', '.join(said)}{more}"

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
            "retransmitted_segments": self.retransmitted,
            "faults": [fault.said() for fault in self.faults],
            "changed": list(self.changed),
            "stalls": [
                {"task": task, "since_s": since, "until_s": until} for task, since, until in self.typical.stalls
            ],
            "parting": self.parting.as_json(),
            "routes": None if self.taken is None else self.taken.as_json(),
            "runs": [
                {"seconds": run.seconds, "disturbed": run.machine.disturbed(), "softirq_s": run.machine.softirq_s,
                 "delay_s": run.machine.delay_s, "steal_s": run.machine.steal_s, "own_s": run.machine.own_s,
                 "priority": run.machine.priority} for run in self.runs
            ],
            "levels": {
                one.level: {"seconds": one.seconds, "error": self.measured_s / one.seconds - 1} for one in self.levels
            },
            **self._json_of_links(),
            "flows": [
                {"task": one.task, "src": one.src, "dst": one.dst, "bytes": one.size_bytes,
                 "links": [self.fabric.link_name(link) for link in one.links],
                 "predicted": {level: [span.start_s, span.end_s] for level, span in one.predicted.items()},
                 "measured": [one.measured.start_s, one.measured.end_s]}
                for one in self.flows()
            ],
        }  # fmt: skip

    def _json_of_links(self) -> dict[str, Any]:
        """Links with what they had sent by when: instants stand once for each level and for the measurement."""
        curves = {one.level: one.curves for one in self.levels} | {"measured": self.typical_curves}
        return {
            "instants_s": {name: one.at_s.tolist() for name, one in curves.items()},
            "links": [
                {"link": row.name, "predicted_bytes": row.predicted_bytes, "sent_bytes": row.sent_bytes,
                 "sent_by_instant": {name: one.of_link(row.link) for name, one in curves.items()}}
                for row in self.links()
            ],
        }  # fmt: skip
