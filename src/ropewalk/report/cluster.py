"""The page of a replayed trace: every policy beside the others, and the cluster over time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ropewalk.report import quantity
from ropewalk.report.cluster_charts import distribution_chart, means_chart, over_time_chart, reasons_chart
from ropewalk.report.cluster_map import cluster_map
from ropewalk.report.cluster_verdict import (
    COMMON,
    against_common,
    group_rows,
    headline,
    lost_money,
    not_ranked,
    parts_rows,
    schedule_rows,
    time_with_spread,
    with_spread,
)
from ropewalk.report.cluster_words import duration, reason
from ropewalk.report.page import render
from ropewalk.tenancy.compared import IDEAL, Comparison
from ropewalk.tenancy.policies import Policy
from ropewalk.tenancy.record import BEHIND_HEAD, JobRecord
from ropewalk.tenancy.spread import Spread
from ropewalk.tenancy.study import ClusterStudy

GPU_HOUR = 2.0
"""Dollars for an hour of a GPU, unless told otherwise."""
MOST_MEANS = 6
"""Policies whose mean completion the first paragraph tells one by one."""
MOST_WAITING = 20
"""Jobs in the table of those that waited longest."""


@dataclass(frozen=True)
class WaitingRow:
    """A job that waited, and for what."""

    job: JobRecord
    reasons: str


def cluster_page(found: Comparison, gpu_hour: float = GPU_HOUR) -> str:
    """One self-contained HTML page: all seeds in the tables, the first of them over time."""
    study = found.first
    charts = [means_chart(found), distribution_chart(study), over_time_chart(study)]
    reasons = reasons_chart(study)
    if reasons is not None:
        charts.append(reasons)
    shown = _isolated(study)
    return render(
        "cluster.html",
        title=f"{study.trace} on {study.plant.name}",
        charts=charts,
        headline=headline(found),
        lead=lead(found),
        warnings=study.warnings,
        said=study.said,
        facts=_facts(found),
        heads=HEADS if has_deadlines(found) else HEADS[:-1],
        rows=policy_rows(found, gpu_hour),
        parts=parts_rows(found),
        schedule=schedule_rows(found),
        groups=[
            (f"{title} by {what}", head, group_rows(found, by, measure))
            for title, measure in (("Slowdown", "slowdown"), ("Scaling factor", "scaling_factor"))
            for what, head, by in (("size", "GPUs", "by_size"), ("model", "Model", "by_model"))
        ],
        drawing=cluster_map(study),
        waiting_policy=shown,
        waiting=waiting_rows(study, shown),
        refused=[(policy.name, run.refused) for policy, run in study.runs if run.refused],
        duration=duration,
        notes=[*study.notes, *(f"{one}." for one in (*circuits_said(study), *patching_said(study))), *_reading(found)],
    )


def has_deadlines(found: Comparison) -> bool:
    """Has any job a deadline that it could miss?"""
    run = found.first.timelines[0]
    return any(job.deadline_s is not None for job in run.jobs)


def lead(found: Comparison) -> str:
    """The most telling numbers in a sentence or two."""
    started = [one.name for one in found.policies if not found.starts_none(one.name)]
    named = started if len(started) <= MOST_MEANS else [name for name in started if name in _telling(found)]
    means = {name: found.spread(name, "mean_jct_s").mean for name in started}
    parts = [f"{duration(means[name])} under {name}" for name in named]
    others = [
        mean for name, mean in means.items() if name not in named and found.starts_as_many(name, found.verdict.best)
    ]
    if others:
        parts.append(f"{duration(min(others))} to {duration(max(others))} under {len(others)} others")
    plant = found.first.plant
    where = f"{quantity.count(plant.gpus)} GPUs under {quantity.count(plant.leafs)} leafs"
    more = " ".join(one for one in (against_common(found), not_ranked(found)) if one)
    return f"Mean completion on {where}: {', '.join(parts)}." + (f" {more}" if more else "")


def _telling(found: Comparison) -> set[str | None]:
    """Policies whose means are told where there are too many for a sentence."""
    return {found.verdict.best, found.verdict.runner_up, COMMON, IDEAL}


@dataclass(frozen=True)
class PolicyRow:
    """A policy in the table of all of them."""

    policy: Policy
    cells: tuple[tuple[str, float], ...]
    """(what is shown, what it is sorted by)."""
    best: bool


HEADS = (
    "Completion", "99th percentile", "Running", "Waiting", "Slowdown", "p99 slowdown", "Fairness", "Contention",
    "GPUs in use", "Scaling factor", "Lost GPU-hours", "Lost money", "Waits for spines", "Missed deadlines",
)  # fmt: skip


def policy_rows(found: Comparison, gpu_hour: float) -> list[PolicyRow]:
    """Every policy with its numbers, means over all seeds."""
    rows = []
    for policy in found.policies:
        if found.starts_none(policy.name):
            rows.append(PolicyRow(policy, tuple(("–", math.inf) for _ in HEADS), best=False))
            continue

        def of(measure: str, name: str = policy.name) -> Spread:
            return found.spread(name, measure)

        lost = of("lost_to_the_network_gpu_h").mean + of("lost_to_fragmentation_gpu_h").mean
        money = lost_money(found, policy.name, gpu_hour)
        times = ("mean_jct_s", "p99_jct_s", "mean_jrt_s", "mean_jwt_s")
        cells = (
            *((time_with_spread(of(name)), of(name).mean) for name in times),
            (with_spread(of("mean_slowdown")) + "×", of("mean_slowdown").mean),
            (with_spread(of("p99_slowdown"), 2) + "×", of("p99_slowdown").mean),
            (with_spread(of("fairness"), 2), of("fairness").mean),
            *((quantity.percent(of(name).mean), of(name).mean) for name in ("contention_ratio", "gpu_utilisation")),
            (with_spread(of("scaling_factor")), of("scaling_factor").mean),
            (quantity.count(round(lost)), lost),
            (f"${quantity.count(round(money))}", money),
            *((f"{of(name).mean:.4g}", of(name).mean) for name in ("fragmentation_events", "missed_deadlines")),
        )
        rows.append(PolicyRow(policy, cells, policy.name == found.verdict.best))
    return rows


def waiting_rows(study: ClusterStudy, name: str) -> list[WaitingRow]:
    """The jobs that waited longest under a policy, with what they waited for, longest first."""
    run = study.timeline(name)
    jobs = sorted(run.jobs, key=lambda job: (-job.jwt_s, job.name))
    return [WaitingRow(job, _why(job, run.causes_of(job))) for job in jobs[:MOST_WAITING] if job.jwt_s > 0]


def _why(job: JobRecord, causes: Mapping[str, float]) -> str:
    """What blocked jobs, longest first, and how much of it blocked other jobs."""
    listed = sorted(causes.items(), key=lambda pair: -pair[1])
    text = ", ".join(f"{reason(why)} {duration(seconds)}" for why, seconds in listed if seconds)
    behind = job.waited_s.get(BEHIND_HEAD, 0.0)
    return f"{text}; {duration(behind)} of it {reason(BEHIND_HEAD)}" if behind else text


def circuits_said(study: ClusterStudy) -> list[str]:
    """What optical policies did to circuits, in a sentence each."""
    said = []
    for policy in study.policies:
        found = study.circuits(policy)
        if found and found["jobs"]:
            said.append(
                f"{policy.name}: {quantity.count(found['set_up'])} circuits set up for {quantity.count(found['jobs'])} "
                f"jobs, {quantity.count(found['kept'])} reused from earlier jobs, "
                f"{quantity.count(found['torn_down'])} of ended jobs torn down"
            )
    return said


def patching_said(study: ClusterStudy) -> list[str]:
    """What was patched for shards, in a sentence each."""
    said = []
    for policy, run in study.runs:
        done = run.patching
        if done is not None and done.shards:
            ahead = f", {quantity.count(done.ahead)} of them ahead of time" if policy.panels > 1 else ""
            vain = f", {quantity.count(done.in_vain)} in vain" if done.in_vain else ""
            busy = done.robot_s / run.makespan_s if run.makespan_s else 0.0
            said.append(
                f"{policy.name}: {quantity.count(done.cables)} fibres patched for {quantity.count(done.shards)} "
                f"shard{'s' * (done.shards != 1)}{ahead}; a job waits {duration(done.waited_s / done.shards)} for its "
                f"cables, {quantity.count(round(done.waited_gpu_s / 3600))} GPU-hours in all; robots were sent "
                f"{quantity.count(done.orders)} times{vain}, which keeps them busy {quantity.percent(busy)} of the "
                "time if they do one shard after the other"
            )
    return said


def _isolated(study: ClusterStudy) -> str:
    """The policy a reader came for: one that isolates and was asked for, else any that isolates, else the first."""
    isolating = [policy for policy in study.policies if policy.isolates]
    asked_for = [policy for policy in isolating if not policy.compared]
    return (*asked_for, *isolating, *study.policies)[0].name


def _facts(found: Comparison) -> list[tuple[str, str]]:
    plant, run = found.first.plant, found.first.timelines[0]
    sizes = Counter(job.gpus for job in run.jobs)
    common = ", ".join(f"{size} ({count} {'job' if count == 1 else 'jobs'})" for size, count in sizes.most_common(3))
    return [
        ("Cluster", plant.name),
        ("GPUs", f"{quantity.count(plant.gpus)} in {quantity.count(plant.servers)} servers of {plant.gpus_per_server}"),
        (
            "Switches",
            f"{quantity.count(plant.leafs)} leafs, {quantity.count(plant.spines)} spines"
            + (f", {quantity.count(plant.cores)} cores" if plant.cores else ""),
        ),
        ("NIC bandwidth", quantity.bandwidth(plant.nic_bandwidth)),
        ("Leaf-spine cable bandwidth", quantity.bandwidth(plant.link_bandwidth)),
        ("Jobs", f"{quantity.count(len(run.jobs) + len(run.refused))}, largest {max(sizes, default=0)} GPUs"),
        ("Most common sizes in GPUs", common),
        ("Queue", run.queue + (", no backfill" if run.backfill == "none" else f", {run.backfill} backfill")),
        ("Seeds", ", ".join(str(one.seed) for one in found.seeds)),
    ]


def _reading(found: Comparison) -> list[str]:
    """What is assumed."""
    study = found.first
    names = {policy.name for policy in study.policies}
    notes = [
        "Intervals are 95 % intervals of the mean over seeds; differences are taken seed by seed. Other charts, "
        "circuits, cables, the list of waiting jobs and that of jobs that never start are of the first seed.",
        "Lost GPU-hours: excess run time over an uncontended network, and idle GPUs that waiting jobs could have "
        "used by count. Fairness: Jain's index of completion time over uncontended run time.",
        "Scaling factor: time of one GPU over n times the time of n GPUs for the same arithmetic, mean over jobs.",
        "Jobs are rigid: all GPUs at once, from start to finish, never moved.",
        "Contention ratio: share of flows between servers that shared a leaf-spine link with another flow.",
        "Network fragmentation: an attempt to start a job failed only because its leafs had no common free spines.",
    ]
    if any(policy.optical for policy in study.policies):
        notes.append("Optical policies charge a job for its circuits once, at its start; running jobs are not rewired.")
    if any(policy.panels for policy in study.policies):
        notes.append(
            "Shards: a job runs along cables that were patched for it; its slowdown is what servers relay for each "
            "other and the wait for its cables. No other job is on them."
        )
    if "laas" in names:
        notes.append(
            "laas isolates jobs from each other, but flows of one job may still collide: its guarantee is weaker."
        )
    return notes
