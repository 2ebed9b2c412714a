"""Jobs of a trace as something that can run: what a log leaves open is filled in, as `trains.py` says.

A log only says how long a job ran and at best what it trained. For models whose share of communication is published the
rest is computed back as the authors of vClos do it: the bytes are what the collective moves in that part of the
duration on a quiet network; computing is the rest, and nothing overlaps, because the shares are of exposed time. Other
models are lowered to a step that is simulated on a quiet network (`stepped.py`), split as the job says, as its plan
says, or as the planner finds best for its GPUs. Where the log says how long a step took, computing is as long as that.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ropewalk.device.held import held_to
from ropewalk.errors import ClusterError, Findings, InputError
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.collectives import collective_named
from ropewalk.tenancy.decided import Decided, by_degrees, by_plan, by_planner
from ropewalk.tenancy.footprint import footprint_of
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.paths import SwitchNetwork, ideal
from ropewalk.tenancy.pattern_file import read_pattern
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.published_shares import ALL_REDUCE, ALL_TO_ALL, shares_of
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.stepped import work_of_step
from ropewalk.tenancy.traces import Mix, TraceJob
from ropewalk.tenancy.trains import Trains, renamed, trains
from ropewalk.tenancy.work import Iteration, JobExchange

DEVICE = "h200"
"""What models are priced on unless a job says otherwise."""
CLOSE = 1e-9


def jobs_of(
    traced: Sequence[TraceJob],
    plant: Plant,
    *,
    seed: int = 0,
    iteration_s: float | None = None,
    mix: Mix | None = None,
    model_as: Mapping[str, str] | None = None,
    folder: Path = Path(),
    subject: str = "jobs of the trace",
) -> list[Job]:
    """The jobs as this plant would run them; what cannot be filled in is reported for all of them together.

    `iteration_s` is a quiet iteration of jobs whose trace has iterations and no durations. Jobs that name no model are
    drawn from the `mix`, and refused without one; `model_as` takes models for others; files that jobs name are found
    from the `folder`.

    >>> from ropewalk.tenancy.plant import plant
    >>> traced = TraceJob("a", gpus=8, arrival_s=0.0, duration_s=100.0, iterations=100, model="vgg16", batch=16)
    >>> (job,) = jobs_of([traced], plant("leaf-spine:2x4x4", gpus_per_server=2))
    >>> round(job.work.compute_s, 3), job.work.exchanges[0].collective
    (0.84, 'hierarchical-ring')
    """
    named = renamed(traced, model_as or {}, folder)
    findings = Findings(ClusterError, subject)
    _refuse_nameless(named, iteration_s, mix, findings)
    filler = _Filler(plant, seed, iteration_s, mix or Mix())
    found = []
    for number, job in enumerate(named):
        try:
            found.append(filler.job(number, job))
        except InputError as problem:
            findings.add(f"job {job.name!r}: {problem}")
    findings.raise_if_any()
    return found


def _refuse_nameless(jobs: Sequence[TraceJob], iteration_s: float | None, mix: Mix | None, findings: Findings) -> None:
    nameless = sum(trains(job, iteration_s) is Trains.DRAWN for job in jobs)
    if mix is None and nameless:
        findings.add(
            f"{nameless:,} of {len(jobs):,} jobs do not name a model: fill in model or communication_share, or choose "
            "a mix with --mix published"
        )
        findings.raise_if_any()


def gpu_of_job(job: TraceJob) -> str:
    """The GPU that the model of a job is priced on, held to its published power limit unless its name says another."""
    return held_to(job.device or DEVICE)


@dataclass(eq=False)
class _Filler:
    """Fills in what a trace leaves open."""

    plant: Plant
    seed: int
    iteration_s: float | None
    mix: Mix
    _second_per_byte: dict[tuple[int, str], float] = field(default_factory=dict)
    _steps: dict[tuple[Hashable, ...], tuple[Decided, Iteration]] = field(default_factory=dict)
    _places: dict[int, Allocation] = field(default_factory=dict)

    def job(self, number: int, job: TraceJob) -> Job:
        way, label, split = trains(job, self.iteration_s), job.model or "", ""
        if way in (Trains.PLAN, Trains.STEP):
            decided, work = self._step(job, way)
            label, split = (decided.model, decided.strategy.said())
            iterations, work = self._as_long_as(job, work)
        elif way is Trains.PATTERN:
            iterations, work = self._as_long_as(job, self._pattern(job))
        else:
            iterations, quiet_s = self._iterations(job)
            shares = {} if way is Trains.NOTHING else self._shares(number, job)
            work = self._told(job) or self._work(job, quiet_s, shares)
            if way is Trains.DRAWN:
                label = self._drawn(number, job)[1]
        return Job(
            name=job.name,
            gpus=job.gpus,
            arrival_s=job.arrival_s,
            iterations=iterations,
            work=work,
            deadline_s=job.deadline_s,
            expected_s=job.expected_s,
            model=label,
            trains=way.value,
            split=split,
        )

    def _step(self, job: TraceJob, way: Trains) -> tuple[Decided, Iteration]:
        """What is decided about a job whose model is lowered to a step, and the step."""
        if job.model is None:
            raise ClusterError("its split is given but its model is not: fill in model")
        collective = None if job.collective is None else _checked(job.collective)
        asked = (job.model, job.gpus, job.batch, job.tensor, job.pipeline, job.expert, job.device, collective)
        if asked not in self._steps:
            decided = by_plan(Path(job.model), job.gpus) if way is Trains.PLAN else self._decided(job.model, job)
            self._steps[asked] = decided, work_of_step(decided, self._place(job.gpus), self.plant, collective)
        return self._steps[asked]

    def _decided(self, model: str, job: TraceJob) -> Decided:
        degrees = {"tensor": job.tensor, "pipeline": job.pipeline, "expert": job.expert}
        if any(degrees.values()) or job.gpus == 1:
            return by_degrees(model, job.gpus, degrees, job.batch, gpu_of_job(job))
        return by_planner(model, job.gpus, self.plant, job.batch, gpu_of_job(job))

    def _pattern(self, job: TraceJob) -> Iteration:
        pattern = read_pattern(Path(str(job.model)))
        return pattern.work(
            job.gpus, lambda exchange: self._quiet_s(Iteration(0.0, (exchange,)), job.gpus), self.plant.nic_bandwidth
        )

    def _as_long_as(self, job: TraceJob, work: Iteration) -> tuple[float, Iteration]:
        """(iterations, work): as many as are told, or as fit the duration; with both, an iteration as long as told."""
        if job.duration_s is None:
            if job.iterations is None:
                raise ClusterError("it has neither a duration nor iterations: fill in one of the two")
            return job.iterations, work
        if job.iterations is None:
            return max(1, round(job.duration_s / self._quiet_s(work, job.gpus))), work
        return job.iterations, self._fitted(job, work, job.duration_s / job.iterations)

    def _fitted(self, job: TraceJob, work: Iteration, wanted_s: float) -> Iteration:
        """The same exchanges with so much computing, hidden behind or not, that a quiet iteration takes this long."""

        def with_computing(part: float) -> Iteration:
            exchanges = (replace(one, overlap_s=one.overlap_s * part, after_s=one.after_s * part)
                         for one in work.exchanges)  # fmt: skip
            busy_s = None if work.busy_s is None else work.busy_s * part
            return Iteration(work.compute_s * part, tuple(exchanges), busy_s)

        spare_s = wanted_s - self._quiet_s(work, job.gpus)
        if spare_s >= 0:
            busy_s = None if work.busy_s is None else work.busy_s + spare_s
            return replace(work, compute_s=work.compute_s + spare_s, busy_s=busy_s)
        if self._quiet_s(with_computing(0.0), job.gpus) > wanted_s * (1 + CLOSE):
            raise ClusterError(
                f"an iteration took {wanted_s:g} s, but its exchanges alone take longer at the speed of these NICs: "
                "leave duration_s or iterations empty, or name a faster network (--bandwidth)"
            )
        low, high = 0.0, 1.0
        while high - low > CLOSE:
            middle = (low + high) / 2
            low, high = (middle, high) if self._quiet_s(with_computing(middle), job.gpus) < wanted_s else (low, middle)
        return with_computing(high)

    def _quiet_s(self, work: Iteration, gpus: int) -> float:
        network = SwitchNetwork(self.plant, self.plant.cables, lambda: np.zeros(0), 0)
        return footprint_of(work, self._place(gpus), network, ideal).quiet_iteration_s

    def _iterations(self, job: TraceJob) -> tuple[float, float]:
        """(iterations, seconds of a quiet one)."""
        if job.duration_s is not None:
            iterations = job.iterations or max(1, round(job.duration_s / (self.iteration_s or 1.0)))
            return iterations, job.duration_s / iterations
        if job.iterations is not None and self.iteration_s is not None:
            return job.iterations, self.iteration_s
        if job.iterations is not None and job.compute_s is not None:
            return job.iterations, job.compute_s
        raise ClusterError(
            "it has no duration: add duration_s or compute_s, or give the time of an iteration (--iteration-time)"
        )

    def _told(self, job: TraceJob) -> Iteration | None:
        """Work that the trace spells out itself."""
        if job.compute_s is None or job.volume_bytes is None:
            return None
        if job.gpus == 1 or not job.volume_bytes:
            return Iteration(job.compute_s)
        return Iteration(job.compute_s, (JobExchange(_checked(job.collective or ALL_REDUCE), float(job.volume_bytes)),))

    def _drawn(self, number: int, job: TraceJob) -> tuple[str, str, int | None]:
        collective, (model, batch) = self.mix.draw(self.seed, number, job.gpus)
        return collective, model, batch

    def _shares(self, number: int, job: TraceJob) -> Mapping[str, float]:
        if job.gpus == 1:
            return {}
        if job.communication_share is not None:
            return {_checked(job.collective or ALL_REDUCE): job.communication_share}
        found = None if job.model is None else shares_of(job.model, job.batch)
        if found is None:
            collective, model, batch = self._drawn(number, job)
            found = shares_of(model, batch)
            assert found is not None
            if job.collective is None and collective != ALL_TO_ALL:
                found = {_checked(collective): sum(found.values())}
        if job.collective is not None and job.collective not in found:
            found = {_checked(job.collective): sum(found.values())}
        return found

    def _work(self, job: TraceJob, quiet_s: float, shares: Mapping[str, float]) -> Iteration:
        exchanges = tuple(
            JobExchange(collective, share * quiet_s / self._seconds_a_byte(job.gpus, collective))
            for collective, share in shares.items()
            if share
        )
        return Iteration(quiet_s * (1 - sum(shares.values())), exchanges)

    def _seconds_a_byte(self, gpus: int, collective: str) -> float:
        """What a collective of so many GPUs takes for each byte on a network that holds nothing up."""
        if (gpus, collective) not in self._second_per_byte:
            alone = Iteration(0.0, (JobExchange(collective, 1.0),))
            self._second_per_byte[gpus, collective] = self._quiet_s(alone, gpus)
        return self._second_per_byte[gpus, collective]

    def _place(self, gpus: int) -> Allocation:
        if gpus not in self._places:
            found = gpus_only(Occupancy(self.plant), "alone", gpus)
            if isinstance(found, Waiting):
                raise ClusterError(f"it cannot run on {self.plant.name}: {found.explanation}")
            self._places[gpus] = found
        return self._places[gpus]


def _checked(collective: str) -> str:
    collective_named(collective)
    return collective
