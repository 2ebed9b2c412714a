"""The page of a replayed trace: every policy beside the others, and the cluster over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ropewalk.report import quantity
from ropewalk.report.cluster_charts import distribution_chart, means_chart, over_time_chart, reasons_chart
from ropewalk.report.cluster_map import cluster_map
from ropewalk.report.cluster_words import duration, reason
from ropewalk.report.page import render
from ropewalk.tenancy.policies import POLICIES, routings
from ropewalk.tenancy.record import BEHIND_HEAD, JobRecord
from ropewalk.tenancy.study import ClusterStudy

COMMON, IDEAL = "ecmp", "ideal"
"""What isolation is compared with first, and never."""
MOST_WAITING = 20
"""Jobs in the table of those that waited longest."""


@dataclass(frozen=True)
class WaitingRow:
    """A job that waited, and for what."""

    job: JobRecord
    reasons: str


def cluster_page(study: ClusterStudy) -> str:
    """One self-contained HTML page."""
    charts = [means_chart(study), distribution_chart(study), over_time_chart(study)]
    reasons = reasons_chart(study)
    if reasons is not None:
        charts.append(reasons)
    runs = study.runs
    shown = _isolated(study)
    return render(
        "cluster.html",
        title=f"{study.trace} on {study.plant.name}",
        charts=charts,
        headline=headline(study),
        lead=lead(study),
        warnings=study.warnings,
        facts=_facts(study),
        runs=runs,
        best=min(run.mean_jct_s for run in study.timelines),
        drawing=cluster_map(study),
        waiting_policy=shown,
        waiting=waiting_rows(study, shown),
        refused=[(policy.name, run.refused) for policy, run in runs if run.refused],
        duration=duration,
        notes=[*study.notes, *(f"{one}." for one in circuits_said(study)), *_reading(study)],
    )


def headline(study: ClusterStudy) -> str:
    """What isolation does to completion times, against ECMP where both were replayed."""
    names = [policy.name for policy in study.policies]
    isolated = _isolated(study)
    base = next((name for name in (COMMON, *routings()) if name in names and name != IDEAL), None)
    if base is None or not POLICIES[isolated].isolates:
        run = study.timelines[0]
        return f"{quantity.count(len(run.jobs))} jobs complete in {duration(run.mean_jct_s)} on average"
    gain = 1 - study.timeline(isolated).mean_jct_s / study.timeline(base).mean_jct_s
    if abs(gain) < 5e-4:
        return f"Under {isolated}, jobs take as long as under {base}"
    change = f"{quantity.percent(abs(gain))} {'sooner' if gain > 0 else 'later'}"
    return f"Under {isolated}, jobs complete {change} than under {base}"


def lead(study: ClusterStudy) -> str:
    """The most telling numbers in a sentence."""
    parts = [f"{duration(run.mean_jct_s)} under {policy.name}" for policy, run in study.runs]
    plant = study.plant
    where = f"{quantity.count(plant.gpus)} GPUs under {quantity.count(plant.leafs)} leafs"
    return f"Mean completion on {where}: {', '.join(parts)}."


def waiting_rows(study: ClusterStudy, name: str) -> list[WaitingRow]:
    """The jobs that waited longest under a policy, with what they waited for, longest first."""
    run = study.timeline(name)
    jobs = sorted(run.jobs, key=lambda job: (-job.jwt_s, job.name))
    return [WaitingRow(job, _why(job, run.causes_of(job))) for job in jobs[:MOST_WAITING] if job.jwt_s > 0]


def _why(job: JobRecord, causes: Mapping[str, float]) -> str:
    """What stood in the way, longest first, and how much of it was in the way of somebody else."""
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
                f"jobs, {quantity.count(found['kept'])} more found in place from jobs before, "
                f"{quantity.count(found['torn_down'])} of ended jobs torn down"
            )
    return said


def _isolated(study: ClusterStudy) -> str:
    """The policy a reader came for: one that isolates and was asked for, else any that isolates, else the first."""
    isolating = [policy for policy in study.policies if policy.isolates]
    asked_for = [policy for policy in isolating if not policy.compared]
    return (*asked_for, *isolating, *study.policies)[0].name


def _facts(study: ClusterStudy) -> list[tuple[str, str]]:
    plant, run = study.plant, study.timelines[0]
    sizes = Counter(job.gpus for job in run.jobs)
    common = ", ".join(f"{size} ({count} jobs)" for size, count in sizes.most_common(3))
    return [
        ("Cluster", plant.name),
        ("GPUs", f"{quantity.count(plant.gpus)} in {quantity.count(plant.servers)} servers of {plant.gpus_per_server}"),
        ("Switches", f"{quantity.count(plant.leafs)} leafs, {quantity.count(plant.spines)} spines"),
        ("Speed of a NIC", quantity.bandwidth(plant.nic_bandwidth)),
        ("Speed of a leaf-spine cable", quantity.bandwidth(plant.link_bandwidth)),
        ("Jobs", f"{quantity.count(len(run.jobs) + len(run.refused))}, largest {max(sizes, default=0)} GPUs"),
        ("Most common sizes in GPUs", common),
        ("Queue", run.queue + (", no backfill" if run.backfill == "none" else f", {run.backfill} backfill")),
        ("Seed", str(run.seed)),
    ]


def _reading(study: ClusterStudy) -> list[str]:
    """What is assumed."""
    names = {policy.name for policy in study.policies}
    notes = [
        "Jobs are rigid: all GPUs at once, from start to finish, never moved.",
        "Contention ratio: flows that found another flow on a leaf-spine link of theirs, of all flows between servers.",
        "Network fragmentation: a try to start a job that failed only because no spines were common to its leafs.",
    ]
    if any(policy.optical for policy in study.policies):
        notes.append("Optical policies charge a job with circuits once, when it starts; running jobs are not rewired.")
    if "laas" in names:
        notes.append("laas keeps jobs apart, but rounds inside one job may still meet: its guarantee is weaker.")
    return notes
