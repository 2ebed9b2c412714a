"""Iterations of the same jobs at the same moments by the model of the replay, as flows and packet by packet.

All times are over those of a network that never holds anybody up. Three steps lead from the replay to packets. The
replay takes the mean over all offsets of jobs and shares links in equal parts; flows have the offsets of the moment and
share links max-min fairly, round by round; packets have headers, queues, congestion control and pauses as well, also
where a job is alone. A further run has the paths that switches would have hashed flows onto.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError
from ropewalk.progress import Progress
from ropewalk.sim.level import LevelUse
from ropewalk.tenancy.agreement.question import AgreementQuestion
from ropewalk.tenancy.footprint import footprint_of
from ropewalk.tenancy.paths import SwitchNetwork
from ropewalk.tenancy.snapshot import Moment, Snapshot, SnapshotQuestion, moments_of_replay
from ropewalk.tenancy.snapshot import answer as look
from ropewalk.tenancy.snapshot.limits import events_at, fitting_scale, refuse_too_many_transfers
from ropewalk.tenancy.snapshot.question import iterations_of
from ropewalk.tenancy.snapshot.tasks import written_together
from ropewalk.tenancy.snapshot.wires import wires_of
from ropewalk.tenancy.switch_hash import switch_hash

NOTICED, NOTHING = 0.01, 0.001
"""Others slow a job down where they cost it more than the first part; less than the second is nothing."""


@dataclass(frozen=True)
class JobCompared:
    """Mean iteration of one job at one moment, over that on a quiet network."""

    name: str
    gpus: int
    over_links: bool
    """Does it use links between switches?"""
    meets: int
    """Jobs that share a link with it."""
    replay: float
    flow: float
    flow_alone: float
    packet: float
    packet_alone: float
    """Packet by packet with nobody else."""
    switch_hash: float | None
    """Packet by packet, on the paths that switches hash flows onto."""
    paused_by_others: int
    """Pause frames of its links behind which others stood."""

    @property
    def error(self) -> float:
        """By which part the replay's iteration is longer than that of packets."""
        return self.replay / self.packet - 1

    @property
    def slowed_by_pauses_alone(self) -> bool:
        """Do pauses that others caused slow it down, who cost it nothing as flows? That is how pauses spread."""
        quiet = self.flow <= self.flow_alone * (1 + NOTHING)
        return quiet and self.paused_by_others > 0 and self.packet > self.packet_alone * (1 + NOTICED)


@dataclass(frozen=True)
class MomentCompared:
    """All jobs of one moment."""

    at_s: float
    scale: float
    jobs: tuple[JobCompared, ...]
    pauses: int

    @property
    def gpus(self) -> int:
        return sum(job.gpus for job in self.jobs)

    @property
    def over_links(self) -> tuple[JobCompared, ...]:
        return tuple(job for job in self.jobs if job.over_links)


@dataclass(frozen=True, eq=False)
class Agreement:
    """Every moment that was compared."""

    question: AgreementQuestion
    moments: tuple[MomentCompared, ...]
    empty_s: tuple[float, ...]
    """Moments at which no job used a link between switches."""

    @property
    def jobs(self) -> tuple[JobCompared, ...]:
        """Jobs that use links between switches, at all moments."""
        return tuple(job for moment in self.moments for job in moment.over_links)

    def ratios(self, one: str, other: str) -> NDArray[np.float64]:
        """By which part a time of the first kind is longer than one of the second, job by job."""
        pairs = ((getattr(job, one), getattr(job, other)) for job in self.jobs)
        return np.array([a / b - 1 for a, b in pairs if a is not None and b is not None])

    @property
    def steps(self) -> dict[str, NDArray[np.float64]]:
        """The ways between two kinds of times."""
        found = {
            "replay against flows": self.ratios("replay", "flow"),
            "flows against packets": self.ratios("flow", "packet"),
            "replay against packets": self.ratios("replay", "packet"),
        }
        if self.question.port is not None:
            found["replay against packets hashed by switches"] = self.ratios("replay", "switch_hash")
        return found

    def as_json(self) -> dict[str, Any]:
        asked = self.question
        return {
            "plant": asked.plant.name,
            "gpus": asked.plant.gpus,
            "trace": asked.trace,
            "policy": asked.policy.name,
            "transport": asked.use.transport,
            "seed": asked.conditions.seed,
            "iterations": asked.iterations,
            "hop_latency_s": asked.hop_latency_s,
            "port": asked.port,
            "steps": {name: summary_of(values) for name, values in self.steps.items()},
            "slowed_by_pauses_alone": sum(job.slowed_by_pauses_alone for job in self.jobs),
            "paused_by_others": sum(job.paused_by_others > 0 for job in self.jobs),
            "moments": [
                {
                    "at_s": moment.at_s,
                    "scale": moment.scale,
                    "pauses": moment.pauses,
                    "jobs": [asdict(job) | {"error": job.error} for job in moment.jobs],
                }
                for moment in self.moments
            ],
            "empty_s": list(self.empty_s),
        }


def summary_of(values: NDArray[np.float64]) -> dict[str, float]:
    """Mean, mean size, tenths and largest size of differences."""
    if not len(values):
        return {"jobs": 0.0}
    low, high = np.percentile(values, [10, 90])
    return {
        "jobs": float(len(values)),
        "mean": float(values.mean()),
        "mean_size": float(np.abs(values).mean()),
        "p10": float(low),
        "p90": float(high),
        "largest_size": float(np.abs(values).max()),
    }


def answer(question: AgreementQuestion, progress: Progress | None = None) -> Agreement:
    """Simulate every moment of the replay as flows and packet by packet."""
    question.check()
    found, empty = [], []
    times = sorted(question.times_s)
    replayed = moments_of_replay(
        question.policy, question.plant, question.jobs, question.conditions, times, trace=question.trace
    )
    for number, (at_s, moment) in enumerate(zip(times, replayed, strict=True)):
        if progress is not None:
            progress(number, len(times), f"the moment at {at_s:,.0f} s")
        if any(len(tenant.footprint.links) for tenant in moment.tenants):
            found.append(_compared(question, at_s, moment))
        else:
            empty.append(at_s)
    if not found:
        raise ClusterError(_nothing_above(question, len(times)))
    return Agreement(question, tuple(found), tuple(empty))


def _nothing_above(question: AgreementQuestion, moments: int) -> str:
    """No job sends over links between switches: there is nothing of which replay and packets could differ."""
    plant, when = question.plant, "at that moment" if moments == 1 else f"at any of {moments} moments"
    if not plant.spines:
        return f"{plant.name} has no links between switches, so jobs never share one: compare on a fabric with spines"
    return (
        f"no job of {question.trace} uses a link between switches {when}: take others (--at, --moments), or a "
        "--fabric with smaller leafs"
    )


def _compared(question: AgreementQuestion, at_s: float, moment: Moment) -> MomentCompared:
    scale = _scale(question, moment)
    packets = _seen(question, moment, question.use, scale)
    flows = _seen(question, moment, LevelUse("flow"), scale)
    hashed = None if question.port is None else _seen(question, rehashed(moment, question.port), question.use, scale)
    facts = packets.run.packet
    return MomentCompared(
        at_s, scale, tuple(_jobs(packets, flows, hashed)), 0 if facts is None else int(facts.link_pauses.sum())
    )


def _seen(question: AgreementQuestion, moment: Moment, use: LevelUse, scale: float) -> Snapshot:
    return look(SnapshotQuestion(moment, use, question.iterations, scale, hop_latency_s=question.hop_latency_s))


def _jobs(packets: Snapshot, flows: Snapshot, hashed: Snapshot | None) -> Iterator[JobCompared]:
    names, seen = [job.name for job in packets.jobs], packets.meetings.packets
    others: Iterable[Any] = hashed.jobs if hashed is not None else [None] * len(names)
    for number, (packet, flow, other) in enumerate(zip(packets.jobs, flows.jobs, others, strict=True)):
        quiet_s = packet.tenant.footprint.quiet_iteration_s
        paused = {} if seen is None else seen.paused_by(number, names)
        yield JobCompared(
            name=packet.name,
            gpus=packet.gpus,
            over_links=bool(len(packet.tenant.footprint.links)),
            meets=len(packets.meetings.neighbours(number, names)),
            replay=packet.assumed.iteration_s / quiet_s,
            flow=flow.iteration_s / quiet_s,
            flow_alone=flow.alone_s / quiet_s,
            packet=packet.iteration_s / quiet_s,
            packet_alone=packet.alone_s / quiet_s,
            switch_hash=None if other is None else other.iteration_s / quiet_s,
            paused_by_others=sum(frames for name, frames in paused.items() if name != packet.name),
        )


def rehashed(moment: Moment, port: int) -> Moment:
    """The same jobs where they stand, on the paths that switches hash flows to this port onto."""
    plant = moment.plant
    network = SwitchNetwork(plant, plant.cables, lambda: np.zeros(0), moment.seed)
    return replace(
        moment,
        tenants=tuple(
            replace(
                tenant,
                footprint=footprint_of(tenant.footprint.work, tenant.allocation, network, switch_hash(port)),
            )
            for tenant in moment.tenants
        ),
    )


def _scale(question: AgreementQuestion, moment: Moment) -> float:
    """The scale of the question, refused where it has too many packets; without one, the largest that fits."""
    refuse_too_many_transfers(moment, question.iterations)
    wires = wires_of(moment, question.hop_latency_s)
    together = written_together(wires, moment.tenants, iterations_of(moment, question.iterations))
    if question.scale is not None:
        events = events_at(question.scale, together, question.use)
        if events <= question.use.most_events:
            return question.scale
        raise ClusterError(
            f"packets {moment.taken} would take about {events:.1e} events, more than {question.use.most_events:.1e}: "
            "leave out --scale, and every moment has the largest that fits"
        )
    scale = fitting_scale(together, question.use)
    if scale is None:
        raise ClusterError(
            f"packets {moment.taken} would take more than {question.use.most_events:.0e} events even scaled by a "
            "millionth: give a smaller trace, or more --most-events"
        )
    return scale
