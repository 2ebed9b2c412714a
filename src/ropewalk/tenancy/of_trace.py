"""Jobs of a trace as something that can run: what a log leaves open is filled in by published shares of communication.

A job that says what it trains and for how many steps, or how its model is split, is lowered as `ropewalk simulate`
would: see `modelled.py`. A log
only says how long a job ran and at best what it trained. The rest is computed back as the authors of vClos do it: a
model and a batch have a published share of communication; the bytes are what the collective moves in that part of the
duration on a quiet network; computing is the rest, and nothing overlaps, because the shares are of exposed time. Jobs
whose model is not known get one from the published mix, drawn by their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np

from ropewalk.device.held import held_to
from ropewalk.errors import ClusterError, Findings, InputError
from ropewalk.strategy import derive
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.collectives import collective_named
from ropewalk.tenancy.footprint import footprint_of
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.modelled import Model, work_of_model
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.paths import Network, ideal
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.traces import Mix, TraceJob
from ropewalk.tenancy.work import Exchange, Work

ALL_REDUCE = "hierarchical-ring"
"""Where a trace does not say: rings inside servers and from server to server, as libraries run them."""
ALL_TO_ALL = "all-to-all"
DEVICE = "h200"
"""What models are priced on unless a job says otherwise."""

SHARES: dict[str, dict[int, float]] = {
    "vgg16": {4: 0.25, 8: 0.23, 16: 0.16, 32: 0.10, 64: 0.07, 96: 0.04},
    "resnet50": {16: 0.04, 32: 0.05, 64: 0.04, 96: 0.03, 128: 0.02},
    "resnet101": {16: 0.05, 32: 0.05, 64: 0.04, 96: 0.02},
    "bert": {16: 0.12, 32: 0.08},
}
"""Part of an iteration spent in the all-reduce, by samples a GPU: the constants of the vClos authors' simulator."""
EXPERT_SHARES: dict[str, tuple[float, float]] = {
    "pangu": (0.0737, 0.258),
    "llama_7b": (0.069, 0.255),
    "llama2_7b": (0.011, 0.052),
    "llama2_13b": (0.0017, 0.058),
    "gpt2_13b": (0.047, 0.145),
}
"""Parts of an iteration spent in (all-reduce, all-to-all), from the same place; smaller exchanges are left out."""
RELATIVES = {
    "vgg19": "vgg16", "vgg11": "vgg16", "alexnet": "vgg16", "resnet18": "resnet50", "resnet34": "resnet50",
    "resnet152": "resnet101", "shufflenet_v2_x1_0": "resnet50", "gpt2": "bert", "roberta": "bert",
    "transformer": "bert",
}  # fmt: skip
"""Models of other traces, by the published one that they resemble most."""


def jobs_of(
    traced: Sequence[TraceJob],
    plant: Plant,
    *,
    seed: int = 0,
    iteration_s: float | None = None,
    subject: str = "jobs of the trace",
) -> list[Job]:
    """The jobs as this plant would run them; what cannot be filled in is reported for all of them together.

    `iteration_s` is a quiet iteration of jobs whose trace has iterations and no durations.

    >>> from ropewalk.tenancy.plant import plant
    >>> traced = TraceJob("a", gpus=8, arrival_s=0.0, duration_s=100.0, iterations=100, model="vgg16", batch=16)
    >>> (job,) = jobs_of([traced], plant("leaf-spine:2x4x4", gpus_per_server=2))
    >>> round(job.work.compute_s, 3), job.work.exchanges[0].collective
    (0.84, 'hierarchical-ring')
    """
    findings = Findings(ClusterError, subject)
    filler = _Filler(plant, seed, iteration_s)
    found = []
    for number, job in enumerate(traced):
        try:
            found.append(filler.job(number, job))
        except InputError as problem:
            findings.add(f"job {job.name!r}: {problem}")
    findings.raise_if_any()
    return found


def shares_of(model: str, batch: int | None) -> dict[str, float] | None:
    """Collective -> part of a quiet iteration, of a model that is known; the nearest published batch counts.

    >>> shares_of("vgg19", 20)
    {'hierarchical-ring': 0.16}
    """
    known = model.lower()
    known = RELATIVES.get(known, known)
    if known in EXPERT_SHARES:
        return dict(zip((ALL_REDUCE, ALL_TO_ALL), EXPERT_SHARES[known], strict=True))
    if known not in SHARES:
        return None
    by_batch = SHARES[known]
    nearest = min(by_batch, key=lambda one: (abs(one - (batch or 32)), one))
    return {ALL_REDUCE: by_batch[nearest]}


@dataclass(eq=False)
class _Filler:
    """Fills in what a trace leaves open."""

    plant: Plant
    seed: int
    iteration_s: float | None
    mix: Mix = field(default_factory=Mix)
    _second_per_byte: dict[tuple[int, str], float] = field(default_factory=dict)
    _lowered_works: dict[tuple[Hashable, ...], Work] = field(default_factory=dict)
    _places: dict[int, Allocation] = field(default_factory=dict)

    def job(self, number: int, job: TraceJob) -> Job:
        if is_lowered(job, self.iteration_s):
            iterations, work = self._lowered(job)
        else:
            iterations, quiet_s = self._iterations(job)
            work = self._told(job) or self._work(job, quiet_s, self._shares(number, job))
        return Job(
            name=job.name,
            gpus=job.gpus,
            arrival_s=job.arrival_s,
            iterations=iterations,
            work=work,
            deadline_s=job.deadline_s,
            expected_s=job.expected_s,
        )

    def _lowered(self, job: TraceJob) -> tuple[float, Work]:
        """(iterations, work) of a job whose model is lowered to a step; a duration is as many steps as fit."""
        if job.model is None:
            raise ClusterError("it says how its model is split and not which one it is: fill in model")
        if (job.iterations is None) == (job.duration_s is None):
            raise ClusterError("its model says how long a step takes: give either iterations or duration_s")
        asked = (job.model, job.gpus, job.batch, job.tensor, job.pipeline, job.expert, job.device, job.collective)
        if asked not in self._lowered_works:
            self._lowered_works[asked] = lowered_work(job)
        work = self._lowered_works[asked]
        if job.iterations is not None:
            return job.iterations, work
        assert job.duration_s is not None
        network = Network(self.plant, self.plant.cables, lambda: np.zeros(0), 0)
        quiet_s = footprint_of(work, self._place(job.gpus), network, ideal).quiet_iteration_s
        return max(1, round(job.duration_s / quiet_s)), work

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
            "it has no duration: add duration_s or compute_s, or tell how long an iteration takes (--iteration-time)"
        )

    def _told(self, job: TraceJob) -> Work | None:
        """Work that the trace spells out itself."""
        if job.compute_s is None or job.volume_bytes is None:
            return None
        if job.gpus == 1 or not job.volume_bytes:
            return Work(job.compute_s)
        return Work(job.compute_s, (Exchange(_checked(job.collective or ALL_REDUCE), float(job.volume_bytes)),))

    def _shares(self, number: int, job: TraceJob) -> Mapping[str, float]:
        if job.gpus == 1:
            return {}
        if job.communication_share is not None:
            return {_checked(job.collective or ALL_REDUCE): job.communication_share}
        found = None if job.model is None else shares_of(job.model, job.batch)
        if found is None:
            collective, (model, batch) = self.mix.draw(self.seed, number, job.gpus)
            found = shares_of(model, batch)
            assert found is not None
            if job.collective is None and collective != ALL_TO_ALL:
                found = {_checked(collective): sum(found.values())}
        if job.collective is not None and job.collective not in found:
            found = {_checked(job.collective): sum(found.values())}
        return found

    def _work(self, job: TraceJob, quiet_s: float, shares: Mapping[str, float]) -> Work:
        exchanges = tuple(
            Exchange(collective, share * quiet_s / self._seconds_a_byte(job.gpus, collective))
            for collective, share in shares.items()
            if share
        )
        return Work(quiet_s * (1 - sum(shares.values())), exchanges)

    def _seconds_a_byte(self, gpus: int, collective: str) -> float:
        """What a collective of so many GPUs takes for each byte on a network that holds nothing up."""
        if (gpus, collective) not in self._second_per_byte:
            network = Network(self.plant, self.plant.cables, lambda: np.zeros(0), 0)
            alone = footprint_of(Work(0.0, (Exchange(collective, 1.0),)), self._place(gpus), network, ideal)
            self._second_per_byte[gpus, collective] = alone.quiet_iteration_s
        return self._second_per_byte[gpus, collective]

    def _place(self, gpus: int) -> Allocation:
        if gpus not in self._places:
            found = gpus_only(Occupancy(self.plant), "alone", gpus)
            if isinstance(found, Waiting):
                raise ClusterError(f"it cannot run on {self.plant.name}: {found.explanation}")
            self._places[gpus] = found
        return self._places[gpus]


def lowered_work(job: TraceJob) -> Work:
    """One step of the model of a job, split as it says, with `batch` samples on every copy."""
    degrees = {"tensor": job.tensor, "pipeline": job.pipeline, "expert": job.expert}
    copies = max(1, job.gpus // ((job.tensor or 1) * (job.pipeline or 1)))
    batch = job.batch or job.pipeline or 1  # a pipeline needs a sample for every stage to be worth its name
    model = Model(
        str(job.model),
        batch,
        derive(job.gpus, degrees, batch=batch * copies),
        device=gpu_of_job(job),
        all_reduce=_checked(job.collective or ALL_REDUCE),
    )
    return work_of_model(model, job.gpus)


def is_lowered(job: TraceJob, iteration_s: float | None) -> bool:
    """Does it say what it trains, and nothing that would be easier to go by?"""
    timed = job.duration_s is not None or job.compute_s is not None or iteration_s is not None
    return job.is_split or (job.model is not None and not timed)


def gpu_of_job(job: TraceJob) -> str:
    """The GPU that the model of a job is priced on, held to its published power limit unless its name says another."""
    return held_to(job.device or DEVICE)


def is_drawn(job: TraceJob) -> bool:
    """Does a job of a log get its model, and with it its communication, from the published mix?"""
    told = job.communication_share is not None or job.volume_bytes is not None
    known = job.model is not None and shares_of(job.model, job.batch) is not None
    return job.gpus > 1 and job.duration_s is not None and not (told or known or job.is_split)


def unknown_models(jobs: Iterable[TraceJob]) -> dict[str, tuple[int, list[str]]]:
    """Models that jobs name and whose communication nobody published: how many jobs each, and names that come near.

    >>> unknown_models([TraceJob("a", gpus=8, arrival_s=0.0, duration_s=9.0, model="vgg-16")])
    {'vgg-16': (1, ['vgg16', 'vgg19'])}
    """
    named = Counter(job.model for job in jobs if job.model is not None and is_drawn(job))
    published = (*SHARES, *EXPERT_SHARES, *RELATIVES)
    return {
        name: (count, get_close_matches(name.lower(), published, n=2, cutoff=0.7))
        for name, count in named.most_common()
    }


def _checked(collective: str) -> str:
    collective_named(collective)
    return collective
