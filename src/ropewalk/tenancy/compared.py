"""One trace under several policies and seeds, with the network and the queue kept apart.

A policy chooses servers and links, and it says how flows find their paths. How long jobs take under it has two parts:
what its placement costs where the network never holds anybody up (scheduling), and what the network adds to
that, also by circuits, cables and rules that jobs wait for (network). Both are against packed servers on an ideal
network. Beside them stands what each network does to the running times of jobs that stand where and when they stood
on the ideal one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ropewalk.progress import Progress
from ropewalk.tenancy.frozen import frozen_slowdowns
from ropewalk.tenancy.measures import MEASURES, JobGroup, by_model, by_size, pooled
from ropewalk.tenancy.placements.table import PACKED
from ropewalk.tenancy.policies import POLICIES, Policy
from ropewalk.tenancy.question import ClusterQuestion
from ropewalk.tenancy.spread import Spread, sooner
from ropewalk.tenancy.study import ClusterStudy, answer
from ropewalk.tenancy.timeline import Timeline

IDEAL = "ideal"
UNDISTURBED = 1 + 1e-9
"""A replay in which nobody is slowed down more than this is what it would be on an ideal network."""
REFUSED = "refused_jobs"
NEARLY = 5e-4
"""Below this part two means are the same."""
Numbers = Mapping[str, float]
"""Measure -> value."""
Ask = Callable[[int], ClusterQuestion]
"""The question of one seed."""


@dataclass(frozen=True)
class OneSeed:
    """What was seen with one seed."""

    seed: int
    policies: Mapping[str, Numbers]
    by_size: Mapping[str, Sequence[JobGroup]]
    by_model: Mapping[str, Sequence[JobGroup]]
    waits_s: Mapping[str, Mapping[str, float]]
    """Policy -> what a job waits for on average, by cause."""
    on_ideal: Mapping[str, float]
    """Mean completion of jobs placed as a policy places them, on a network that never holds anybody up; of policies
    that start all jobs that packed servers start, because means over different jobs cannot be compared."""
    packed_on_ideal: float | None
    same_schedule: Mapping[str, Spread]
    """Routing -> slowdown of jobs that stand as packed on the ideal network: (mean, 99th of 100)."""


@dataclass(frozen=True)
class Verdict:
    """Which policy that anybody can have completes jobs soonest, and whether that is more than chance."""

    best: str
    runner_up: str | None = None
    gain: Spread | None = None
    """By which part the best is below the runner-up, seed by seed."""
    as_fast: tuple[str, ...] = ()
    """Policies, the runner-up first, that are as fast as the best with every seed."""
    unranked: tuple[str, ...] = ()
    """Policies that can never start some jobs that others start: their means are over other jobs."""

    @property
    def is_level(self) -> bool:
        """Is there no difference beyond the spread? Not asked of a single seed."""
        gain = self.gain
        return gain is not None and len(gain.values) > 1 and (not gain.excludes_zero or gain.mean < NEARLY)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every policy's replays of the same trace."""

    first: ClusterStudy
    """The first seed, with every job."""
    seeds: tuple[OneSeed, ...]

    @property
    def policies(self) -> tuple[Policy, ...]:
        return self.first.policies

    def spread(self, policy: str, measure: str) -> Spread:
        """A number of a policy over all seeds."""
        return Spread(tuple(one.policies[policy][measure] for one in self.seeds))

    def gain(self, policy: str, other: str, measure: str = "mean_jct_s") -> Spread:
        """By which part a number of one policy is below that of another."""
        return sooner(self.spread(policy, measure).values, self.spread(other, measure).values)

    def by_size(self, policy: str) -> list[JobGroup]:
        """Jobs of all seeds by their size."""
        return pooled([one.by_size[policy] for one in self.seeds])

    def by_model(self, policy: str) -> list[JobGroup]:
        """Jobs of all seeds by what they train."""
        return pooled([one.by_model[policy] for one in self.seeds])

    def waits_s(self, policy: str) -> dict[str, float]:
        """What a job waits for on average over all seeds, the longest first."""
        causes = dict.fromkeys(why for one in self.seeds for why in one.waits_s[policy])
        means = {why: sum(one.waits_s[policy].get(why, 0.0) for one in self.seeds) / len(self.seeds) for why in causes}
        return dict(sorted(means.items(), key=lambda pair: -pair[1]))

    def starts_as_many(self, policy: str, other: str) -> bool:
        """Are the means of two policies over equally many jobs of every seed?"""
        return self.spread(policy, REFUSED).values == self.spread(other, REFUSED).values

    def starts_none(self, policy: str) -> bool:
        """Can no job of any seed ever start under a policy? Then its times and slowdowns mean nothing."""
        run = self.first.timeline(policy)
        return not run.jobs and min(self.spread(policy, REFUSED).values) >= len(run.refused) > 0

    def network_part(self, policy: str) -> Spread | None:
        """By which part jobs complete later than if no link had held anybody up, placed alike."""
        return self._later(lambda one: (one.policies[policy]["mean_jct_s"], one.on_ideal.get(policy)))

    def scheduling_part(self, policy: str) -> Spread | None:
        """By which part jobs complete later than packed ones, both on an ideal network."""
        return self._later(lambda one: (one.on_ideal.get(policy), one.packed_on_ideal))

    def both_parts(self, policy: str) -> Spread | None:
        """By which part jobs complete later than packed ones on an ideal network."""
        return self._later(
            lambda one: (one.policies[policy]["mean_jct_s"], one.packed_on_ideal if policy in one.on_ideal else None)
        )

    def same_schedule(self, routing: str) -> tuple[Spread, Spread] | None:
        """(mean, 99th of 100) of slowdowns under a network when everybody stands as packed on the ideal one."""
        seen = [one.same_schedule.get(routing) for one in self.seeds]
        if any(one is None for one in seen):
            return None
        values = [one.values for one in seen if one is not None]
        return Spread(tuple(value[0] for value in values)), Spread(tuple(value[1] for value in values))

    @cached_property
    def verdict(self) -> Verdict:
        """The best that anybody can have, and the one behind it, of those that start most jobs.

        Seeds count alike, however long their jobs take: ranked are geometric means, as differences are ratios.
        """
        buildable = [one.name for one in self.policies if one.buildable]
        if not buildable:
            return Verdict(self.policies[0].name)
        refused = {name: self.spread(name, REFUSED).mean for name in buildable}
        ranked = [name for name in buildable if refused[name] == min(refused.values())]
        unranked = tuple(name for name in buildable if name not in ranked)
        best, *others = sorted(ranked, key=lambda name: (self._geometric_mean(name), ranked.index(name)))
        if not others:
            return Verdict(best, unranked=unranked)
        gains = {name: self.gain(best, name) for name in others}
        as_fast = tuple(name for name, gain in gains.items() if max(abs(gain.mean), gain.half_width) < NEARLY)
        return Verdict(best, others[0], gains[others[0]], as_fast if others[0] in as_fast else (), unranked)

    def _geometric_mean(self, policy: str) -> float:
        values = np.array(self.spread(policy, "mean_jct_s").values)
        return float(np.exp(np.log(values).mean())) if (values > 0).all() else 0.0

    def _later(self, pair: Callable[[OneSeed], tuple[float | None, float | None]]) -> Spread | None:
        pairs = [pair(one) for one in self.seeds]
        if any(value is None or not base for value, base in pairs):
            return None
        return Spread(tuple(value / base - 1 for value, base in pairs if value is not None and base))


def compare(
    ask: Ask,
    seeds: Sequence[int],
    *,
    apart: bool = True,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Comparison:
    """Replay the jobs of every seed under every policy; `apart`: and on an ideal network, to tell the parts.

    With a checkpoint, replays that were stopped continue where they were.
    """
    found: list[OneSeed] = []
    first: ClusterStudy | None = None
    for number, seed in enumerate(seeds):
        question = ask(seed)
        file = checkpoint if checkpoint is None or number == 0 else _of_seed(checkpoint, seed)
        study = answer(question, _said(progress, number, len(seeds)), checkpoint=file)
        found.append(_one_seed(seed, question, study, apart=apart))
        first = study if first is None else first
    assert first is not None, "there is a first seed"
    return Comparison(first, tuple(found))


def of_one(study: ClusterStudy, seed: int = 0) -> Comparison:
    """A single study as a comparison: nothing is known of its spread, nor of its parts."""
    return Comparison(study, (_seen(seed, study),))


def _seen(seed: int, study: ClusterStudy) -> OneSeed:
    """Every policy's numbers, without the parts of its delay."""
    runs = [(policy.name, run) for policy, run in study.runs]
    return OneSeed(
        seed,
        policies={name: {one.name: one.of(run) for one in MEASURES} for name, run in runs},
        by_size={name: by_size(run) for name, run in runs},
        by_model={name: by_model(run) for name, run in runs},
        waits_s={name: _per_job(run) for name, run in runs},
        on_ideal={},
        packed_on_ideal=None,
        same_schedule={},
    )


def _per_job(run: Timeline) -> dict[str, float]:
    return {why: seconds / len(run.jobs) for why, seconds in run.waiting_causes().items()}


def _one_seed(seed: int, question: ClusterQuestion, study: ClusterStudy, *, apart: bool) -> OneSeed:
    seen = _seen(seed, study)
    if not apart:
        return seen
    packed = _replayed(question, POLICIES[IDEAL], study)
    on_ideal = {
        policy.name: packed.mean_jct_s if policy.placement == PACKED else _on_ideal(question, policy, run).mean_jct_s
        for policy, run in study.runs
        if len(run.refused) == len(packed.refused)
    }
    routings = dict.fromkeys(policy.routing for policy in study.policies if policy.shares)
    plant, conditions = question.plant, question.conditions
    frozen = {
        name: Spread(_mean_and_tail(frozen_slowdowns(plant, question.jobs, packed, name, conditions.seed)))
        for name in routings
        if not conditions.failures
    }
    return replace(seen, on_ideal=on_ideal, packed_on_ideal=packed.mean_jct_s, same_schedule=frozen)


def _on_ideal(question: ClusterQuestion, policy: Policy, run: Timeline) -> Timeline:
    """The replay of a policy's placements where no link holds anybody up, and none must be set up first."""
    if policy.routing == IDEAL or max((job.slowdown for job in run.jobs), default=1.0) <= UNDISTURBED:
        return run
    ready = replace(question.conditions, circuit_delay_s=0.0, patch_delay_s=0.0, rule_delay_s=0.0)
    return _replayed(replace(question, conditions=ready), replace(policy, routing=IDEAL))


def _replayed(question: ClusterQuestion, policy: Policy, study: ClusterStudy | None = None) -> Timeline:
    if study is not None and policy.name in {one.name for one in study.policies}:
        return study.timeline(policy.name)
    return answer(replace(question, policies=[policy])).timelines[0]


def _mean_and_tail(slowdowns: list[float]) -> tuple[float, float]:
    return (float(np.mean(slowdowns)), float(np.percentile(slowdowns, 99))) if slowdowns else (1.0, 1.0)


def _of_seed(base: Path, seed: int) -> Path:
    return base.with_name(f"{base.stem}.seed{seed}{base.suffix}")


def _said(progress: Progress | None, number: int, count: int) -> Progress | None:
    """How far one of several seeds is, as part of all of them."""
    if progress is None or count == 1:
        return progress
    return lambda done, total, now: progress(
        number * (total or 0) + done, count * (total or 0), f"seed {number + 1} of {count}, {now}"
    )
