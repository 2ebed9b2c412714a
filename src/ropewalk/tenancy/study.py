"""One trace under several policies: the same jobs, the same plant, one replay for each policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropewalk.errors import ClusterError
from ropewalk.files import is_there
from ropewalk.progress import Progress
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.sequence import changes_of, turned
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import SHARED, Policy
from ropewalk.tenancy.question import ClusterQuestion
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.timeline import Timeline


@dataclass(frozen=True, eq=False)
class ClusterStudy:
    """Every policy's replay of the same jobs."""

    plant: Plant
    trace: str
    """What the jobs are called: a file, or the recipe of a synthetic trace."""
    policies: tuple[Policy, ...]
    timelines: tuple[Timeline, ...]
    said: tuple[str, ...] = ()
    """What the jobs train and how that was found."""
    warnings: tuple[str, ...] = ()
    """What makes the numbers differ from what was meant, probably."""
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[tuple[Policy, Timeline], ...]:
        """Every policy with its replay."""
        return tuple(zip(self.policies, self.timelines, strict=True))

    def timeline(self, name: str) -> Timeline:
        return self.timelines[[policy.name for policy in self.policies].index(name)]

    def circuits(self, policy: Policy) -> dict[str, int] | None:
        """Circuits that were set up, found in place, and torn down for others; None where a policy has none."""
        plant = policy.plant(self.plant)
        if not isinstance(plant, OpticalPlant | CoreOpticalPlant | PodOpticalPlant):
            return None
        return turned(changes_of(plant, self.timeline(policy.name).jobs))

    def as_json(self, *, jobs: bool = False) -> dict[str, Any]:
        """Numbers of every policy; with `jobs` also what became of every job, and the cluster over time."""
        first = self.timelines[0]
        return {
            "plant": self.plant.name,
            "gpus": self.plant.gpus,
            "trace": self.trace,
            "queue": first.queue,
            "backfill": first.backfill,
            "seed": first.seed,
            "kinds": {
                policy.name: {"isolation": policy.name if policy.isolates else SHARED, "routing": policy.routing}
                | (timeline.as_document() if jobs else timeline.summary())
                | {"circuits": self.circuits(policy), "patching": timeline.patching and timeline.patching.as_document()}
                for policy, timeline in self.runs
            },
            "jobs_train": list(self.said),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


def answer(
    question: ClusterQuestion, progress: Progress | None = None, *, checkpoint: Path | None = None
) -> ClusterStudy:
    """Replay the jobs once for every policy. With a checkpoint, a replay that was stopped continues where it was.

    Each policy has a file of its own, named after the checkpoint and the policy.
    """
    plant, conditions = question.plant, question.conditions
    refused = {policy.name: policy.applies(conditions.failures, plant) for policy in question.policies}
    policies = [policy for policy in question.policies if refused[policy.name] is None]
    left_out = [f"policy {name} {reason}" for name, reason in refused.items() if reason is not None]
    if not policies:
        raise ClusterError(f"{'; '.join(left_out)}: {conditions.remedy(question.policies[0], plant)}")
    timelines = []
    for number, policy in enumerate(policies):
        file = None if checkpoint is None else checkpoint_of(checkpoint, policy)
        timelines.append(
            replay(
                policy.plant(plant, conditions.circuit_delay_s, conditions.patch_delay_s),
                question.jobs,
                allocate=policy.make,
                rules=conditions.rules(policy.routing),
                failures=conditions.failures,
                policy=policy.name,
                progress=_of_all(progress, number, len(policies)),
                checkpoint=file,
                resume=file is not None and is_there(file),
            )
        )
    notes = (*question.notes, *(f"{one}: it is left out" for one in left_out))
    told = question.said, question.warnings, notes
    return ClusterStudy(plant, question.trace, tuple(policies), tuple(timelines), *told)


def checkpoint_of(base: Path, policy: Policy) -> Path:
    """Where the replay of one policy is kept while it runs.

    >>> from ropewalk.tenancy.policies import POLICIES
    >>> str(checkpoint_of(Path("run.json"), POLICIES["vclos"]))
    'run.vclos.json'
    """
    return base.with_name(f"{base.stem}.{policy.name}{base.suffix}")


def _of_all(progress: Progress | None, number: int, count: int) -> Progress | None:
    """How far one of several replays of the same jobs is, as part of all of them."""
    if progress is None:
        return None
    return lambda done, total, now: progress(number * (total or 0) + done, count * (total or 0), now)


def state_at(
    policy: Policy,
    plant: Plant,
    timeline: Timeline,
    when_s: float,
    *,
    without: str | None = None,
    failures: Sequence[Failure] = (),
) -> Occupancy:
    """Who held what at a moment of a replay, also of jobs that a failure sent elsewhere later; and what was dead."""
    state = policy.occupancy(plant)
    held = [(job, place) for job in timeline.jobs if (place := job.place_at(when_s)) is not None]
    for _, place in sorted(held, key=lambda pair: (pair[0].arrival_s, pair[0].name)):
        if place.job != without:
            state.place(place)
    for failure in failures:
        if failure.at_s <= when_s < failure.until_s:
            state.drain(failure.parts)
    return state
