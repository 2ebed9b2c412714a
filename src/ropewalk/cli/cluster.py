"""`ropewalk cluster`: how do many jobs share a cluster without slowing each other down?

`ropewalk cluster jobs.csv` replays a trace; everything else has a word of its own after `cluster`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.cluster_comparison import SeedOptions, SharingOptions
from ropewalk.cli.cluster_plant import PlantOptions, plant_of
from ropewalk.cli.cluster_screen import print_warnings
from ropewalk.cli.cluster_tables import print_tables
from ropewalk.cli.cluster_trace import JOBS, ReplayOptions, about_seeds, conditions_of, read_jobs, with_seed
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import (
    JSON,
    PAGE,
    console,
    print_json,
    require_outputs,
    shown_progress,
    write_page,
)
from ropewalk.units import show_percent

if TYPE_CHECKING:
    from ropewalk.tenancy.compared import Comparison


@within_memory
@with_options
def replay_command(
    jobs: Path = JOBS,
    *,
    sharing: SharingOptions,
    seeds: SeedOptions,
    gpu_hour: float = typer.Option(2.0, min=0.0, help="Price of a GPU-hour in dollars, to price lost GPU time."),
    resume: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="Prefix of checkpoint files: the replay is saved while it runs and resumes from them.",
    ),
    details: bool = typer.Option(False, "--details", help="Include every job and the cluster over time in the JSON."),
    json: bool = JSON,
    page: Path | None = PAGE,
    replay: ReplayOptions,
    cluster: PlantOptions,
) -> None:
    """Replay a trace: completion, running and waiting times, and why jobs waited.

    Example: `ropewalk cluster jobs.csv --fabric leaf-spine:64x32x32 --isolate vclos --queue fifo --page cluster.html`
    """
    from ropewalk.tenancy.compared import compare
    from ropewalk.tenancy.question import ClusterQuestion

    require_outputs(page, resume, read=(jobs, cluster.cluster, cluster.fabric))
    policies = sharing.policies()
    plant = plant_of(cluster)
    failing = [f"{text} fails; policy for jobs that lose links: {replay.when_a_link_dies}" for text in replay.fail]

    def ask(seed: int) -> ClusterQuestion:
        asked = with_seed(replay, seed)
        read = read_jobs(jobs, asked, plant, reorder=seeds.reorder and seed != replay.seed)
        notes = (*read.notes, *failing, *about_seeds(seeds.seeds, reorder=seeds.reorder))
        return ClusterQuestion(
            plant, read.jobs, policies, conditions_of(asked, plant), jobs.name, tuple(read.said), tuple(read.warnings),
            notes,
        )  # fmt: skip

    conditions_of(replay, plant)
    stopped = None if resume is None else f"the same command continues from {resume}"
    with shown_progress("reading jobs", stopped) as progress:
        chosen = range(replay.seed, replay.seed + seeds.seeds)
        found = compare(ask, chosen, apart=seeds.apart, progress=progress, checkpoint=resume)
    if page is not None:
        from ropewalk.report.cluster import cluster_page

        write_page(page, cluster_page(found, gpu_hour))
    if json:
        from ropewalk.report.cluster_json import comparison_as_json

        print_json(comparison_as_json(found, gpu_hour=gpu_hour, jobs=details))
    else:
        _print(found, gpu_hour, page)


def _print(found: Comparison, gpu_hour: float, page: Path | None) -> None:
    from ropewalk.report.cluster import circuits_said, patching_said
    from ropewalk.report.cluster_verdict import against_common, headline, not_ranked

    say, study = console().print, found.first
    run = study.timelines[0]
    for sentence in study.said:
        say(sentence, soft_wrap=True)
    print_warnings(study.warnings)
    say(headline(found), style="bold", soft_wrap=True)
    for more in (against_common(found), not_ranked(found)):
        if more is not None:
            say(more, soft_wrap=True)
    backfill = f"{run.backfill} backfill" if run.backfill != "none" else "no backfill"
    seeds = len(found.seeds)
    say(
        f"{study.trace}: {len(run.jobs) + len(run.refused)} jobs on {study.plant.name} ({study.plant.gpus} GPUs), "
        f"{run.queue} queue, {backfill}, {seeds} seed{'s' * (seeds != 1)}",
        soft_wrap=True,
    )
    print_tables(found, gpu_hour)
    _print_waits(found)
    of_seed = f" (seed {found.seeds[0].seed})" if seeds > 1 else ""
    for sentence in (*circuits_said(study), *patching_said(study)):
        say(f"{sentence}{of_seed}", soft_wrap=True)
    for note in study.notes:
        say(f"note: {note}", style="dim", soft_wrap=True)
    if page is None:
        say("add --page cluster.html for the cluster over time, --json for numbers", style="dim")


def _print_waits(found: Comparison) -> None:
    """What jobs waited for, over all seeds, and which of them can never start."""
    from ropewalk.report.cluster_words import duration, reason
    from ropewalk.tenancy.other_sizes import ask_for, sizes_that_start

    say = console().print
    for policy, timeline in found.first.runs:
        waits = found.waits_s(policy.name)
        total = sum(waits.values())
        if total:
            parts = ", ".join(
                f"{reason(why)} {show_percent(seconds / total, 0)}"
                for why, seconds in waits.items()
                if seconds / total >= 0.005
            )
            say(f"{policy.name}: a job waits {duration(total)}: {parts}", soft_wrap=True)
        if timeline.refused:
            first, count = timeline.refused[0], len(timeline.refused)
            advice = ask_for(sizes_that_start(policy.make, policy.plant(found.first.plant), first.gpus))
            say(
                f"{policy.name}: {count} job{'s' * (count != 1)} can never start and {'are' if count != 1 else 'is'} "
                f"excluded above, the first: {first.name}: {first.explanation}{f': {advice}' * bool(advice)}",
                soft_wrap=True,
            )
