"""The page of a snapshot: the jobs of one moment beside each other and alone, who meets whom, what packets did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from ropewalk.report import quantity
from ropewalk.report.cluster_snapshot_charts import by_slowdown, course_chart, places_chart, slowdown_chart
from ropewalk.report.cluster_words import duration
from ropewalk.report.packet_charts import network_section
from ropewalk.report.page import render
from ropewalk.tenancy.rounds import MOST_PATTERNS, is_thinned_out
from ropewalk.tenancy.snapshot import JobSeen, Snapshot

NOTICED = 5e-4
"""Slowdowns below this part are none."""
MOST_PAIRS = 40


@dataclass(frozen=True)
class JobRow:
    """A job in the table."""

    job: JobSeen
    shares_with: str
    pauses: int
    marks: int
    drops: int
    paused_by: str


@dataclass(frozen=True)
class PairRow:
    """Two jobs that use the same links."""

    first: str
    second: str
    links: int
    first_paused: int
    """Pause frames behind which the second stood."""
    second_paused: int


def snapshot_page(found: Snapshot, warnings: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """One self-contained HTML page."""
    section = network_section(found.run)
    charts = [slowdown_chart(found), course_chart(found), places_chart(found), *section.charts]
    return render(
        "cluster_snapshot.html",
        title=f"{found.moment.plant.name} {found.moment.taken}",
        charts=charts,
        headline=headline(found),
        lead=lead(found),
        warnings=warnings,
        facts=[*_facts(found), *section.facts],
        rows=[_row(found, job) for job in by_slowdown(found)],
        pairs=pair_rows(found),
        packets=found.meetings.packets is not None,
        network=section,
        duration=duration,
        notes=[*notes, *remarks(found), *_reading(found)],
    )


def headline(found: Snapshot) -> str:
    """Who is slowed down most, or that nobody is."""
    slowest = found.slowest
    if len(found.jobs) == 1:
        return f"{slowest.name} runs alone: {duration(slowest.iteration_s)} per iteration"
    if slowest.slowdown < 1 + NOTICED:
        return f"No job slows another one down under {found.moment.policy.name}"
    slowed = sum(job.slowdown >= 1 + NOTICED for job in found.jobs)
    return (
        f"{slowest.name} takes {quantity.times(slowest.slowdown)} as long as alone; {slowed} of {len(found.jobs)} jobs "
        f"{'is' if slowed == 1 else 'are'} slowed down by others"
    )


def lead(found: Snapshot) -> str:
    """Which moment, how many jobs, at which level."""
    plant, jobs = found.moment.plant, found.jobs
    used = sum(job.gpus for job in jobs)
    chosen = "" if found.question.jobs is None else ", chosen by name"
    scaled = "" if found.question.scale == 1 else f"; times and bytes scaled by {found.question.scale:g}"
    return (
        f"{found.moment.taken[0].upper()}{found.moment.taken[1:]}: {len(jobs)} {'job' if len(jobs) == 1 else 'jobs'} "
        f"on {quantity.count(used)} of {quantity.count(plant.gpus)} GPUs of {plant.name}{chosen}, "
        f"{quantity.count(found.together.transfers)} transfers at level {found.run.level}{scaled}."
    )


def remarks(found: Snapshot) -> list[str]:
    """What a reader should know about the numbers of this snapshot."""
    said = []
    thinned = [
        job.name
        for job in found.jobs
        if any(is_thinned_out(one.collective, one.group_size(job.gpus)) for one in job.tenant.footprint.work.exchanges)
    ]
    if thinned:
        said.append(
            f"Of the all-to-all of {', '.join(thinned[:3])}{', …' if len(thinned) > 3 else ''}, {MOST_PATTERNS} rounds "
            "represent all rounds, as in the replay; all bytes are sent."
        )
    if found.question.scale != 1 and found.run.packet is not None:
        said.append(
            "Scaled-down exchanges are short against round trips and buffers: congestion control has less time to "
            "settle, and buffers fill less, than in whole iterations."
        )
    return said


def pair_rows(found: Snapshot) -> list[PairRow]:
    """Jobs that use the same links, those with most pause frames and links first."""
    shared, seen = found.meetings.shared, found.meetings.packets
    rows = [
        PairRow(
            found.jobs[a].name,
            found.jobs[b].name,
            int(shared[a, b]),
            0 if seen is None else int(seen.paused[a, b]),
            0 if seen is None else int(seen.paused[b, a]),
        )
        for a, b in combinations(range(len(found.jobs)), 2)
        if shared[a, b]
    ]
    return sorted(rows, key=lambda row: (-row.first_paused - row.second_paused, -row.links))[:MOST_PAIRS]


def _row(found: Snapshot, number: int) -> JobRow:
    names, seen = [job.name for job in found.jobs], found.meetings.packets
    links = found.meetings.neighbours(number, names)
    with_whom = ", ".join(f"{name} ({quantity.count(count)})" for name, count in links.items())
    if seen is None:
        return JobRow(found.jobs[number], with_whom, 0, 0, 0, "")
    frames = seen.paused_by(number, names)
    by_whom = ", ".join(
        f"{'itself' if name == names[number] else name} ({quantity.count(count)})" for name, count in frames.items()
    )
    pauses, marks, drops = (int(column[number]) for column in (seen.nic_pauses, seen.marks, seen.drops))
    return JobRow(found.jobs[number], with_whom, pauses, marks, drops, by_whom)


def _facts(found: Snapshot) -> list[tuple[str, str]]:
    plant, moment = found.moment.plant, found.moment
    return [
        ("Cluster", plant.name),
        ("Policy", moment.policy.name),
        ("Jobs", quantity.count(len(found.jobs))),
        ("GPUs in the snapshot", quantity.count(sum(job.gpus for job in found.jobs))),
        ("NIC bandwidth", quantity.bandwidth(plant.nic_bandwidth)),
        ("Leaf-spine cable bandwidth", quantity.bandwidth(plant.link_bandwidth)),
        ("Transfers", quantity.count(found.together.transfers)),
        ("Iterations counted", quantity.count(sum(len(job.beside_s) for job in found.jobs))),
        ("Seed", str(moment.seed)),
        *([] if found.run.transport else [("Level", found.run.level)]),
    ]


def _reading(found: Snapshot) -> list[str]:
    notes = [
        f"Policy {found.moment.policy.name}: {found.moment.policy.about}.",
        "Every job starts its next iteration when its current one ends.",
        "Rounds of a collective end with a barrier; exchanges of a job follow each other.",
    ]
    if found.meetings.packets is not None:
        notes.append(
            "Paused by: pause frames that stopped a link of the job while the other job used that link or the next "
            "one on its path. A frame caused by several jobs counts for each."
        )
        notes.append("Marks and drops count all packets on the links that a job uses.")
    return notes
