"""What became of every job, and the cluster over time: enough to draw every figure without running anything again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.record import Blocked, JobRecord, Refusal
from ropewalk.tenancy.shards.ahead import Patching

LONG_WAIT_S = 10.0
"""A job has waited when it started later than this after it came: the authors' waiting ratio."""


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
    blocked: tuple[Blocked, ...]
    """Every try to start the head of the queue that failed, in order."""
    patching: Patching | None = None
    """What was patched for jobs, where their servers are behind patch panels."""
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
        """Tries to start that failed only because no spines were common to its leafs."""
        return sum(one.for_spines_alone for one in self.blocked)

    def job(self, name: str) -> JobRecord | None:
        """What became of a job; None where it is not there, or was refused."""
        return next((one for one in self.jobs if one.name == name), None)

    def head_at(self, when_s: float) -> JobRecord | None:
        """The head of the queue that could not start, at a moment; None where nobody was held up."""
        last = next((one for one in reversed(self.blocked) if one.at_s <= when_s), None)
        head = None if last is None else self.job(last.job)
        if head is None or head.finish_s <= when_s or head.place_at(when_s) is not None:
            return None
        return head

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

    def waiting_causes(self) -> dict[str, float]:
        """Job-seconds of waiting by what the head of the queue lacked meanwhile, which holds up all behind it."""
        time_s, queued = self.curves.time_s, self.curves.queued_jobs
        return self._caused(time_s[:-1], np.diff(time_s) * queued[:-1])

    def causes_of(self, job: JobRecord) -> dict[str, float]:
        """Seconds that one job waited by what the head of the queue, be it itself or another, lacked meanwhile."""
        ends = [job.arrival_s, *(edge for one in job.stretches for edge in (one.start_s, one.end_s))]
        tries = np.array([one.at_s for one in self.blocked])
        total: dict[str, float] = {}
        for begin, end in zip(ends[0::2], ends[1::2], strict=False):
            cuts = np.unique(np.concatenate([[begin], tries[(tries > begin) & (tries < end)], [end]]))
            for cause, seconds in self._caused(cuts[:-1], np.diff(cuts)).items():
                total[cause] = total.get(cause, 0.0) + seconds
        return dict(sorted(total.items()))

    def _caused(self, since_s: NDArray[np.float64], amount: NDArray[np.float64]) -> dict[str, float]:
        """Amounts by the reason of the last failed try at or before each moment."""
        if not self.blocked:
            return {}
        last = np.searchsorted([one.at_s for one in self.blocked], since_s, side="right") - 1
        total: dict[str, float] = {}
        for number, value in zip(last.tolist(), amount.tolist(), strict=True):
            if number >= 0 and value:
                cause = self.blocked[number].reason
                total[cause] = total.get(cause, 0.0) + value
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
            "waiting_causes_s": self.waiting_causes(),
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
            "patching": None if self.patching is None else self.patching.as_document(),
            **self.summary(),
            "records": [job.as_document() for job in self.jobs],
            "refused": [vars(refusal) for refusal in self.refused],
            "blocked": [vars(one) for one in self.blocked],
            "curves": {name: steps.tolist() for name, steps in vars(self.curves).items()},
        }

    def as_json(self) -> str:
        """The document as text; the same replay gives the same bytes."""
        return json.dumps(self.as_document(), indent=1, sort_keys=True) + "\n"
