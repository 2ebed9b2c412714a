"""A few iterations of all jobs of a moment, simulated together and each alone: who slows whom, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.progress import Count, Progress, counting
from ropewalk.sim.level import LevelRun, LevelUse, run_at_level
from ropewalk.tenancy.rates import JobPace
from ropewalk.tenancy.snapshot.limits import refuse_too_many_events, refuse_too_many_transfers
from ropewalk.tenancy.snapshot.meetings import Meetings, meetings_of
from ropewalk.tenancy.snapshot.question import SnapshotQuestion, iterations_of
from ropewalk.tenancy.snapshot.tasks import Together, written_together
from ropewalk.tenancy.snapshot.tenant import Moment, Tenant
from ropewalk.tenancy.snapshot.wires import Wires, wires_of


@dataclass(frozen=True, eq=False)
class JobSeen:
    """One job of a snapshot."""

    tenant: Tenant
    leafs: tuple[str, ...]
    alone_s: float
    """Mean iteration with nobody else on the network."""
    beside_s: NDArray[np.float64]
    """Iterations beside the others, those that ran while all jobs did."""
    assumed: JobPace
    """What the model of the replay says."""
    ends_s: NDArray[np.float64]
    """When it began, then the end of every iteration."""

    @property
    def name(self) -> str:
        return self.tenant.name

    @property
    def gpus(self) -> int:
        return self.tenant.allocation.size

    @property
    def iteration_s(self) -> float:
        """Mean iteration beside the others."""
        return float(self.beside_s.mean())

    @property
    def slowdown(self) -> float:
        return self.iteration_s / self.alone_s

    @property
    def assumed_slowdown(self) -> float:
        return self.assumed.iteration_s / self.tenant.footprint.alone_iteration_s


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a moment looks like from inside the network."""

    question: SnapshotQuestion
    moment: Moment
    """As simulated: with the chosen jobs, scaled."""
    jobs: tuple[JobSeen, ...]
    run: LevelRun
    together: Together
    meetings: Meetings

    @property
    def slowest(self) -> JobSeen:
        """The job that the others slow down most."""
        return max(self.jobs, key=lambda job: job.slowdown)

    def as_json(self) -> dict[str, Any]:
        moment, asked = self.moment, self.question
        return {
            "plant": moment.plant.name,
            "gpus": moment.plant.gpus,
            "moment": moment.taken,
            "policy": moment.policy.name,
            "routing": moment.policy.routing,
            "seed": moment.seed,
            "iterations": asked.iterations,
            "scale": asked.scale,
            "hop_latency_s": asked.hop_latency_s,
            **self.run.as_json(),
            "transfers": self.together.transfers,
            "jobs": [self._job_as_json(number, job) for number, job in enumerate(self.jobs)],
        }

    def _job_as_json(self, number: int, job: JobSeen) -> dict[str, Any]:
        names = [one.name for one in self.jobs]
        return {
            "name": job.name,
            "gpus": job.gpus,
            "leafs": list(job.leafs),
            "stage": job.tenant.allocation.stage,
            "alone_s": job.alone_s,
            "iteration_s": job.iteration_s,
            "iterations_s": job.beside_s.tolist(),
            "slowdown": job.slowdown,
            "replay_iteration_s": job.assumed.iteration_s,
            "replay_slowdown": job.assumed_slowdown,
            "shares_links_with": self.meetings.neighbours(number, names),
            "packets": None if self.meetings.packets is None else self.meetings.packets.as_json(number, names),
        }


def answer(question: SnapshotQuestion, progress: Progress | None = None) -> Snapshot:
    """Simulate the jobs of a moment together, then each alone at the same level."""
    question.check()
    moment = question.moment if question.jobs is None else question.moment.of_jobs(question.jobs)
    moment = moment.scaled(question.scale)
    refuse_too_many_transfers(moment, question.iterations)
    counts = iterations_of(moment, question.iterations)
    wires = wires_of(moment, question.hop_latency_s)
    together = written_together(wires, moment.tenants, counts)
    refuse_too_many_events(together, question)
    run = _run(together, question.use, moment.seed, counting(progress, "all jobs"))
    alone = replace(question.use, level=run.level)
    ends = together.ends_s(run.trace.end)
    window = max(float(end[0]) for end in ends), min(float(end[-1]) for end in ends)
    jobs = tuple(
        JobSeen(
            tenant,
            tuple(moment.plant.leaf_names[leaf] for leaf in tenant.allocation.leafs),
            _alone_s(
                wires, tenant, question.iterations, alone, moment.seed, counting(progress, f"{tenant.name} alone")
            ),
            _inside(end, *window),
            pace,
            end,
        )
        for tenant, end, pace in zip(moment.tenants, ends, moment.assumed(), strict=True)
    )
    return Snapshot(question, moment, jobs, run, together, meetings_of(together, run.packet, len(jobs)))


def _run(tasks: Together, use: LevelUse, seed: int, progress: Count | None) -> LevelRun:
    return run_at_level(tasks.graph, tasks.routes, use, seed=seed, symmetry=False, progress=progress)


def _alone_s(
    wires: Wires, tenant: Tenant, iterations: int, use: LevelUse, seed: int,
    progress: Count | None,
) -> float:  # fmt: skip
    tasks = written_together(wires, [replace(tenant, start_s=0.0)], [iterations])
    (end,) = tasks.ends_s(_run(tasks, use, seed, progress).trace.end)
    return float(end[-1]) / iterations


def _inside(ends_s: NDArray[np.float64], first_s: float, last_s: float) -> NDArray[np.float64]:
    """Seconds of the iterations between two moments; where none fits, of those that begin between them."""
    begin, end = ends_s[:-1], ends_s[1:]
    close = 1e-9 * last_s
    began = begin >= first_s - close
    whole = began & (end <= last_s + close)
    chosen = whole if whole.any() else began & (begin < last_s)
    return np.asarray((end - begin)[chosen], np.float64)
