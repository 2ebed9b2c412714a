"""Ranks of the second kind: a process per host that runs collectives of torch.distributed over Gloo.

Gloo makes its own connections, so its flows take the first path of every pair and share one queue per link. Only ends
of whole collectives are seen; the prediction is the flow level for what Gloo sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import LabError
from ropewalk.execute.local_ranks import LocalRanks
from ropewalk.lab.answer import LinkBytes
from ropewalk.lab.gloo_ranks import RankRun, enter, run
from ropewalk.lab.gloo_tasks import RUNS, gloo_tasks, whole_items
from ropewalk.lab.job import ITEM_BYTES
from ropewalk.lab.lab import Lab
from ropewalk.lab.machine import MachineUse, disturbed_said
from ropewalk.lab.measure import speeds
from ropewalk.lab.predict import flow_level, payload_share
from ropewalk.lab.process import needs_user_namespace
from ropewalk.lab.question import LabQuestion
from ropewalk.progress import Progress, silent
from ropewalk.routing import Routes
from ropewalk.routing.routes import single_paths, starts
from ropewalk.task import TaskKind
from ropewalk.units import show_seconds, show_size

GLOO = "gloo"


@dataclass(frozen=True)
class GlooRun:
    """One run: the seconds of every group, and what the machine did meanwhile."""

    seconds: tuple[float, ...]
    machine: MachineUse
    wrong: tuple[int, ...]
    """Ranks that ended with wrong numbers."""


@dataclass(frozen=True, eq=False)
class GlooAnswer:
    """A collective of torch.distributed on a lab, beside the prediction."""

    what: str
    details: dict[str, Any]
    fabric_name: str
    real_seconds: float
    predicted: tuple[float, ...]
    """Seconds of every group."""
    runs: tuple[GlooRun, ...]
    rows: tuple[LinkBytes, ...]
    """Links that were to carry something, the fullest first."""

    @property
    def predicted_s(self) -> float:
        return max(self.predicted)

    @property
    def counted(self) -> tuple[GlooRun, ...]:
        """Runs that the machine did not disturb, or all of them where it disturbed all."""
        return tuple(one for one in self.runs if one.machine.disturbed() is None) or self.runs

    @property
    def measured(self) -> tuple[float, ...]:
        """Median seconds of every group."""
        return tuple(float(median(times)) for times in zip(*(one.seconds for one in self.counted), strict=True))

    @property
    def measured_s(self) -> float:
        return float(median(max(one.seconds) for one in self.counted))

    @property
    def error(self) -> float:
        return self.measured_s / self.predicted_s - 1

    @property
    def wrong(self) -> tuple[int, ...]:
        return tuple(sorted({rank for one in self.runs for rank in one.wrong}))

    def links(self) -> list[LinkBytes]:
        return list(self.rows)

    def headline(self) -> str:
        return (
            f"{self.what} on {self.fabric_name}: predicted {show_seconds(self.predicted_s)}, "
            f"measured {show_seconds(self.measured_s)} ({100 * self.error:+.1f} %)"
        )

    def notes(self) -> list[str]:
        """What a reader should know about the runs."""
        many = f"median of {len(self.counted)} runs" if len(self.counted) > 1 else "one measured run"
        said = [f"{many}; Gloo runs {self.details['runs']}"]
        if self.real_seconds != 1:
            real = " and ".join(show_seconds(one * self.real_seconds) for one in (self.predicted_s, self.measured_s))
            said.append(f"at fabric bandwidth (1:{1 / self.real_seconds:g}): {real}")
        if len(self.predicted) > 1:
            times = ", ".join(
                f"group {at} {show_seconds(one)} and {show_seconds(two)}"
                for at, (one, two) in enumerate(zip(self.predicted, self.measured, strict=True))
            )
            said.append(f"predicted and measured: {times}")
        if (disturbed := disturbed_said([one.machine for one in self.runs])) is not None:
            said.append(disturbed)
        wrong = ", ".join(map(str, self.wrong))
        said.append(f"the data was wrong on ranks {wrong}" if wrong else "every result was correct")
        return said

    def as_json(self) -> dict[str, Any]:
        return {
            "fabric": self.fabric_name,
            "ranks": GLOO,
            **self.details,
            "real_seconds_per_second": self.real_seconds,
            "predicted_s": self.predicted_s,
            "measured_s": self.measured_s,
            "error": self.error,
            "group_seconds": [
                {"predicted_s": one, "measured_s": two} for one, two in zip(self.predicted, self.measured, strict=True)
            ],
            "data_is_right": not self.wrong,
            "runs": [{"seconds": list(one.seconds), "disturbed": one.machine.disturbed()} for one in self.runs],
            "links": [
                {"link": row.name, "predicted_bytes": row.predicted_bytes, "sent_bytes": row.sent_bytes}
                for row in self.rows
            ],
        }


def measured_gloo(
    lab: Lab,
    routes: Routes | None,
    question: LabQuestion,
    *,
    rates: dict[int, int] | None = None,
    progress: Progress = silent,
) -> GlooAnswer:
    """Predict what Gloo sends, and let a process on every host run it."""
    if routes is None:
        raise LabError("Gloo chooses its own ports, so hashed paths cannot be predicted: give --routing shortest")
    if needs_user_namespace():
        raise LabError(
            "Gloo's processes enter the namespaces of their hosts: run as root with CAP_SYS_ADMIN and "
            "CAP_NET_ADMIN, or leave --ranks out"
        )
    network = lab.network
    groups = question.groups or (tuple(range(network.fabric.hosts)),)
    graph, tasks = gloo_tasks(question.act, groups, question.size_bytes)
    known = first_paths(routes)
    fabric = replace(known.fabric, bandwidth=speeds(network, rates or {}), latency=0 * known.fabric.latency)
    known = replace(known, fabric=fabric)
    progress(0, None, "predicting")
    trace, _ = flow_level(network, graph, known)
    runs, sent = _runs(lab, question, groups, progress)
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    expected = known.link_bytes(known.rows_of(graph, transfer), graph.amount[transfer]) / payload_share(network)
    size = max(ITEM_BYTES * whole_items(question.size_bytes, len(one)) for one in groups)
    names = [[network.fabric.node_names[host] for host in one] for one in groups]
    many = f" in {len(groups)} groups" if len(groups) > 1 else ""
    return GlooAnswer(
        what=f"Gloo's {question.act.words} of {show_size(size)}{many}",
        details={"act": question.act.key, "size_bytes": size, "groups": names, "runs": RUNS[question.act]},
        fabric_name=network.fabric.name,
        real_seconds=1 / network.scale,
        predicted=tuple(float(trace.end[one].max()) for one in tasks),
        runs=runs,
        rows=_rows(lab, expected, sent),
    )


def first_paths(routes: Routes) -> Routes:
    """The same pairs, each on the first of its paths alone: those of the addresses that hosts have first."""
    first = routes.path_start[:-1]
    hops = np.diff(routes.link_start)[first]
    links = [routes.link[routes.link_start[path] : routes.link_start[path + 1]] for path in first.tolist()]
    flat = np.concatenate(links) if links else routes.link
    return single_paths(routes.fabric, routes.pair_src, routes.pair_dst, starts(hops), flat)


def _rows(lab: Lab, expected: NDArray[np.float64], sent: NDArray[np.float64]) -> tuple[LinkBytes, ...]:
    name = lab.network.fabric.link_name
    used = sorted(np.flatnonzero(expected).tolist(), key=lambda link: (-expected[link], link))
    return tuple(LinkBytes(link, name(link), float(expected[link]), float(sent[link])) for link in used)


def _runs(
    lab: Lab, question: LabQuestion, groups: Sequence[Sequence[int]], progress: Progress
) -> tuple[tuple[GlooRun, ...], NDArray[np.float64]]:
    """One run to warm connections up, then those that count; bytes of one of them on every link."""
    hosts = [host for group in groups for host in group]
    first = np.cumsum([0, *map(len, groups)]).tolist()
    ranks_of = tuple(tuple(range(low, low + len(group))) for low, group in zip(first, groups, strict=False))
    with LocalRanks(len(hosts)) as processes:
        processes.call(enter, [(lab.namespace(host), ranks_of) for host in hosts])
        runs = []
        for number in range(question.repeats + 1):
            progress(number, question.repeats + 1, f"run {number} of {question.repeats}" if number else "warming up")
            if number == 1:
                before = lab.counters()
            arguments = [
                (question.act.key, whole_items(question.size_bytes, len(group))) for group in groups for _ in group
            ]
            runs.append(_one(processes.call(run, arguments), ranks_of))
        after = lab.counters()
    sent = np.zeros(lab.network.fabric.links)
    for link, counted in after.items():
        sent[link] = (counted.sent_bytes - before[link].sent_bytes) / question.repeats
    return tuple(runs[1:]), sent


def _one(seen: Sequence[RankRun], ranks_of: Sequence[Sequence[int]]) -> GlooRun:
    """The run as all ranks saw it: a group is done when its last rank is."""
    seconds = tuple(
        max(seen[rank].ended for rank in ranks) - min(seen[rank].began for rank in ranks) for ranks in ranks_of
    )
    longest = max(seen, key=lambda one: one.machine["delay_s"]).machine
    return GlooRun(seconds, MachineUse(**longest), tuple(rank for rank, one in enumerate(seen) if not one.right))
