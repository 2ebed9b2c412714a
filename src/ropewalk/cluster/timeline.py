"""What became of every job, and the cluster over time: enough to draw every figure without running anything again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.cluster.allocation import Allocation

BEHIND_HEAD = "behind-the-head"
"""A job that was not tried because one before it in the queue could not start."""
LONG_WAIT_S = 10.0
"""A job has waited when it started later than this after it came: the authors' waiting ratio."""


@dataclass(frozen=True)
class JobRecord:
    """One job of a replay."""

    name: str
    gpus: int
    arrival_s: float
    start_s: float
    """Of its last start, where a failure has sent it back into the queue."""
    finish_s: float
    quiet_s: float
    """How long it would have run alone on a network without collisions, on the GPUs it had last."""
    allocation: Allocation
    waited_s: Mapping[str, float]
    """Seconds of waiting by reason: the values of `Reason`, or `BEHIND_HEAD`."""
    flows: float
    """Flows that it sent, counted per round and iteration."""
    met_flows: float
    """Of these the ones that found another flow on one of their leaf-spine links."""
    deadline_s: float | None = None
    restarts: int = 0
    starts: tuple[tuple[float, float], ...] = ()
    """(start, end) of every stretch in which it ran; one unless it was stopped by a failure."""

    @property
    def jct_s(self) -> float:
        """Completion: from arrival to finish."""
        return self.finish_s - self.arrival_s

    @property
    def jrt_s(self) -> float:
        """Running: the sum of its stretches."""
        return sum(end - start for start, end in self.starts) if self.starts else self.finish_s - self.start_s

    @property
    def jwt_s(self) -> float:
        """Waiting: what of its completion was not running."""
        return max(0.0, self.jct_s - self.jrt_s) if len(self.starts) > 1 else self.start_s - self.arrival_s

    @property
    def main_reason(self) -> str | None:
        """What it waited for longest; None where it did not wait."""
        if not any(self.waited_s.values()):
            return None
        return max(self.waited_s, key=lambda reason: (self.waited_s[reason], reason))


@dataclass(frozen=True)
class Refusal:
    """A job that cannot start on this plant under this policy even when everything is free."""

    name: str
    gpus: int
    arrival_s: float
    explanation: str


@dataclass(frozen=True, eq=False)
class Curves:
    """The cluster over time, as steps: from `time_s[i]` on."""

    time_s: NDArray[np.float64]
    used_gpus: NDArray[np.int64]
    queued_jobs: NDArray[np.int64]
    wanted_gpus: NDArray[np.int64]
    """Used, and those of queued jobs in their order until one does not fit by number: what could be used if only the
    number of GPUs counted."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """The replay of a trace."""

    plant: str
    plant_gpus: int
    policy: str
    """Name of the allocator."""
    routing: str
    queue: str
    backfill: str
    seed: int
    jobs: tuple[JobRecord, ...]
    """In the order of the trace."""
    refused: tuple[Refusal, ...]
    curves: Curves
    fragmentation: tuple[tuple[str, float], ...]
    """(job, time) of every try to start that failed for want of common spines alone."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Everything else that one needs to get the same bytes again."""

    @cached_property
    def _columns(self) -> dict[str, NDArray[np.float64]]:
        return {
            name: np.array([getattr(job, f"{name}_s") for job in self.jobs], np.float64)
            for name in ("jct", "jrt", "jwt")
        }

    def times(self, kind: str) -> NDArray[np.float64]:
        """`jct`, `jrt` or `jwt` of all jobs, in seconds."""
        return self._columns[kind]

    def mean(self, kind: str) -> float:
        return float(self._columns[kind].mean()) if self.jobs else 0.0

    def percentile(self, kind: str, percent: float) -> float:
        return float(np.percentile(self._columns[kind], percent)) if self.jobs else 0.0

    @property
    def mean_jct_s(self) -> float:
        return self.mean("jct")

    @property
    def p99_jct_s(self) -> float:
        return self.percentile("jct", 99)

    @property
    def mean_jrt_s(self) -> float:
        return self.mean("jrt")

    @property
    def mean_jwt_s(self) -> float:
        return self.mean("jwt")

    @property
    def makespan_s(self) -> float:
        """From the first arrival to the last finish."""
        if not self.jobs:
            return 0.0
        return max(job.finish_s for job in self.jobs) - min(job.arrival_s for job in self.jobs)

    @property
    def waiting_ratio(self) -> float:
        """Part of the jobs that waited longer than 10 s."""
        return float((self._columns["jwt"] > LONG_WAIT_S).mean()) if self.jobs else 0.0

    @property
    def contention_ratio(self) -> float:
        """Flows that found another flow on a link of theirs, over all flows."""
        flows = sum(job.flows for job in self.jobs)
        return sum(job.met_flows for job in self.jobs) / flows if flows else 0.0

    @property
    def mean_slowdown(self) -> float:
        """Running time over the time on a quiet network, mean of all jobs."""
        return float(np.mean([job.jrt_s / job.quiet_s for job in self.jobs])) if self.jobs else 1.0

    @property
    def gpu_utilisation(self) -> float:
        """GPU-seconds in use over all there were from the first arrival to the last finish."""
        return self._over_time(self.curves.used_gpus) / self.plant_gpus

    @property
    def network_fragmentation_events(self) -> int:
        return len(self.fragmentation)

    @property
    def utilisation_of_wanted(self) -> float:
        """Used GPUs over those that number alone would allow, over time: 1 where isolation leaves nothing idle."""
        wanted = self._over_time(self.curves.wanted_gpus)
        return self._over_time(self.curves.used_gpus) / wanted if wanted else 1.0

    @property
    def missed_deadlines(self) -> int:
        return sum(job.deadline_s is not None and job.finish_s > job.deadline_s for job in self.jobs)

    def waiting_reasons(self) -> dict[str, float]:
        """Job-seconds of waiting by reason, the reasons by name."""
        total: dict[str, float] = {}
        for job in self.jobs:
            for reason, seconds in job.waited_s.items():
                total[reason] = total.get(reason, 0.0) + seconds
        return dict(sorted(total.items()))

    def _over_time(self, steps: NDArray[np.int64]) -> float:
        """Mean over time of a step curve."""
        width = np.diff(self.curves.time_s)
        total = float(width.sum())
        return float((steps[:-1] * width).sum()) / total if total > 0 else 0.0

    def summary(self) -> dict[str, Any]:
        """The replay in a few numbers."""
        return {
            "jobs": len(self.jobs),
            "refused_jobs": len(self.refused),
            "mean_jct_s": self.mean_jct_s,
            "p50_jct_s": self.percentile("jct", 50),
            "p99_jct_s": self.p99_jct_s,
            "mean_jrt_s": self.mean_jrt_s,
            "p50_jrt_s": self.percentile("jrt", 50),
            "p99_jrt_s": self.percentile("jrt", 99),
            "mean_jwt_s": self.mean_jwt_s,
            "p50_jwt_s": self.percentile("jwt", 50),
            "p99_jwt_s": self.percentile("jwt", 99),
            "makespan_s": self.makespan_s,
            "waiting_ratio": self.waiting_ratio,
            "contention_ratio": self.contention_ratio,
            "mean_slowdown": self.mean_slowdown,
            "gpu_utilisation": self.gpu_utilisation,
            "utilisation_of_wanted": self.utilisation_of_wanted,
            "network_fragmentation_events": self.network_fragmentation_events,
            "missed_deadlines": self.missed_deadlines,
            "waiting_reasons_s": self.waiting_reasons(),
        }

    def as_document(self) -> dict[str, Any]:
        """Everything, as plain lists and numbers."""
        return {
            "plant": self.plant,
            "plant_gpus": self.plant_gpus,
            "policy": self.policy,
            "routing": self.routing,
            "queue": self.queue,
            "backfill": self.backfill,
            "seed": self.seed,
            "settings": dict(self.settings),
            **self.summary(),
            "records": [_record(job) for job in self.jobs],
            "refused": [vars(refusal) for refusal in self.refused],
            "fragmentation": [list(event) for event in self.fragmentation],
            "curves": {name: steps.tolist() for name, steps in vars(self.curves).items()},
        }

    def as_json(self) -> str:
        """The document as text; the same replay gives the same bytes."""
        return json.dumps(self.as_document(), indent=1, sort_keys=True) + "\n"


def _record(job: JobRecord) -> dict[str, Any]:
    return {
        "name": job.name,
        "gpus": job.gpus,
        "arrival_s": job.arrival_s,
        "start_s": job.start_s,
        "finish_s": job.finish_s,
        "quiet_s": job.quiet_s,
        "jct_s": job.jct_s,
        "jrt_s": job.jrt_s,
        "jwt_s": job.jwt_s,
        "stage": job.allocation.stage,
        "leafs": list(job.allocation.leafs),
        "spines": list(job.allocation.spines),
        "gpu_list": list(job.allocation.gpus),
        "waited_s": dict(job.waited_s),
        "main_reason": job.main_reason,
        "flows": job.flows,
        "met_flows": job.met_flows,
        "deadline_s": job.deadline_s,
        "restarts": job.restarts,
        "starts": [list(stretch) for stretch in job.starts],
    }
