"""The page of a training step: how long it takes, why, and what every GPU does meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ropewalk.report import quantity
from ropewalk.report.drawing import draw
from ropewalk.report.link_classes import by_utilisation
from ropewalk.report.link_spread import spread_chart
from ropewalk.report.packet_charts import network_section
from ropewalk.report.page import render
from ropewalk.report.rank_groups import RankGroups, rank_groups
from ropewalk.report.step_bars import MemoryBar, breakdown_chart, memory_chart
from ropewalk.report.step_timeline import MOST_GPUS, step_timeline
from ropewalk.report.step_words import bottleneck_in_words, reason
from ropewalk.report.trace_charts import utilisation_chart
from ropewalk.sim.step import StepRun, StepStatistics

MOST_PARTS = 30
MOST_LINKS = 10
MOST_DRAWN_NODES = 5_000


def step_page(
    run: StepRun,
    found: StepStatistics,
    *,
    subject: str,
    eyebrow: str = "Training step",
    facts: Sequence[tuple[str, str]] = (),
    stage_of_rank: NDArray[np.int64] | None = None,
    memory: Sequence[MemoryBar] = (),
    notes: Sequence[str] = (),
) -> str:
    """One self-contained HTML page for a step; `subject` is what was trained where: `gpt2 on 8 GPUs`."""
    fabric, groups = run.trace.routes.fabric, rank_groups(run, found, stage_of_rank)
    section = network_section(run.network)
    charts = [
        breakdown_chart(found, groups),
        memory_chart(memory) if memory else None,
        utilisation_chart(run.trace, MOST_LINKS),
        spread_chart(fabric, found.link_utilisation),
        *section.charts,
    ]
    drawn = fabric.links and fabric.nodes <= MOST_DRAWN_NODES
    span = max(found.step_time_s, 1e-300)
    return render(
        "step.html",
        title=f"{subject}: {quantity.seconds(found.step_time_s)} per step",
        charts=[chart for chart in charts if chart],
        eyebrow=eyebrow,
        headline=headline(subject, found),
        lead=reason(found),
        network=bottleneck_in_words(found),
        facts=[*step_facts(found), *facts, *section.facts],
        packets=section,
        timeline=step_timeline(run, drawn_ranks(groups)),
        path=[(part, part.seconds / span) for part in found.path_by_sort[:MOST_PARTS]],
        path_parts=len(found.path_by_sort),
        path_shares=[(purpose, seconds / span) for purpose, seconds in found.path_by_purpose_s.items()],
        fabric=fabric,
        drawing=draw(fabric, by_utilisation(found.link_utilisation, fit=True)) if drawn else None,
        notes=list(notes),
    )


def drawn_ranks(groups: Sequence[RankGroups]) -> RankGroups:
    """The finest partition that a timeline has room for: it shows more than a mean over GPUs that differ."""
    few = [group for group in groups if len(group.names) <= MOST_GPUS]
    return few[-1] if few else groups[0]


def headline(subject: str, found: StepStatistics) -> str:
    taken = f"A step of {subject} takes {quantity.seconds(found.step_time_s)}"
    return taken if found.mfu is None else f"{taken}, at {quantity.percent(found.mfu)} MFU"


def step_facts(found: StepStatistics) -> list[tuple[str, str]]:
    """The numbers that every step has: (name, value with its unit)."""
    facts = [
        ("Step time", quantity.seconds(found.step_time_s)),
        ("Compute", _with_share(found, found.compute_s)),
        ("Exposed communication", _with_share(found, found.exposed_communication_s)),
        ("Bubble", _with_share(found, found.bubble_s)),
        ("All communication", _with_share(found, found.communication_s)),
    ]
    if found.mfu is not None:
        facts.append(("Model flops utilisation", quantity.percent(found.mfu)))
    if found.tokens_per_s is not None:
        facts.append(("Tokens per second", quantity.rate(found.tokens_per_s)))
    if found.samples_per_s is not None:
        facts.append(("Samples per second", quantity.rate(found.samples_per_s)))
    if found.bottleneck is not None:
        facts.append(("Bottleneck link", found.bottleneck.name.replace("->", " → ")))
    return facts


def _with_share(found: StepStatistics, seconds: float) -> str:
    return f"{quantity.seconds(seconds)} ({quantity.percent(seconds / max(found.step_time_s, 1e-300))})"
