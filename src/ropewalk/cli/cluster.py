"""`ropewalk cluster`: how do many jobs share a cluster without slowing each other down?

`ropewalk cluster jobs.csv` replays a trace; everything else has a word of its own after `cluster`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ropewalk.cli.cluster_explain import explain_command
from ropewalk.cli.cluster_make import generate_command, size_command
from ropewalk.cli.cluster_plant import PlantOptions, plant_of
from ropewalk.cli.cluster_screen import print_warnings
from ropewalk.cli.cluster_snapshot import snapshot_command
from ropewalk.cli.cluster_state import allocate_command, rules_command
from ropewalk.cli.cluster_trace import JOBS, ReplayOptions, conditions_of, read_jobs
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import (
    JSON,
    PAGE,
    console,
    print_json,
    print_whole,
    require_outputs,
    shown_progress,
    write_page,
)
from ropewalk.cli.tables import DescribedCommand

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.tenancy.study import ClusterStudy

REPLAY = "replay"
HELP = ("-h", "--help")


class ReplayByDefault(TyperGroup):
    """A group whose first word may be left out: `ropewalk cluster jobs.csv` is `ropewalk cluster replay jobs.csv`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in HELP:
            args = [REPLAY, *args]
        return super().parse_args(ctx, args)


cluster_app = typer.Typer(
    name="cluster",
    cls=ReplayByDefault,
    no_args_is_help=True,
    help="Many jobs on one leaf-spine cluster: `ropewalk cluster jobs.csv` replays a trace under ECMP, source routing, "
    "vClos and OCS-vClos, and an ideal network.",
    context_settings={"help_option_names": list(HELP)},
    rich_markup_mode="markdown",
)


@with_options
def replay_command(
    jobs: Path = JOBS,
    isolate: str = typer.Option(
        "vclos", help="Policies that isolate jobs: {policies.isolates}, none; several with commas."
    ),
    routing: str | None = typer.Option(
        None, help="Policies under which jobs share links: {policies.shares}; several with commas."
    ),
    compare: bool = typer.Option(True, help="Also replay {policies.compared}."),
    resume: Path | None = typer.Option(
        None, metavar="FILE", help="Keep the replay in files named like this while it runs, and continue from them."
    ),
    details: bool = typer.Option(False, "--details", help="In the JSON, also every job and the cluster over time."),
    json: bool = JSON,
    page: Path | None = PAGE,
    *,
    replay: ReplayOptions,
    cluster: PlantOptions,
) -> None:
    """Completion, running and waiting times of a whole trace, and why jobs waited.

    Example: `ropewalk cluster jobs.csv --fabric leaf-spine:64x32x32 --isolate vclos --queue fifo --page cluster.html`
    """
    from ropewalk.tenancy.policies import policies_named
    from ropewalk.tenancy.question import ClusterQuestion
    from ropewalk.tenancy.study import answer

    require_outputs(page, resume)
    policies = policies_named(
        not_empty(split(isolate), "--isolate"), None if routing is None else split(routing), compare=compare
    )
    plant = plant_of(cluster)
    conditions = conditions_of(replay, plant)
    stopped = "nothing was written" if resume is None else f"the same command continues from {resume}"
    with shown_progress("reading jobs", stopped) as progress:
        read = read_jobs(jobs, replay, plant)
        failing = [f"{text} fails; jobs that lose links: {replay.when_a_link_dies}" for text in replay.fail]
        question = ClusterQuestion(
            plant, read.jobs, policies, conditions, jobs.name, tuple(read.warnings), (*read.notes, *failing)
        )
        found = answer(question, progress, checkpoint=resume)
    if page is not None:
        from ropewalk.report.cluster import cluster_page

        write_page(page, cluster_page(found))
    if json:
        print_json(found.as_json(jobs=details))
    else:
        _print(found, page)


def _print(found: ClusterStudy, page: Path | None) -> None:
    from ropewalk.report.cluster import circuits_said, headline
    from ropewalk.report.cluster_words import duration, reason

    say = console().print
    run = found.timelines[0]
    print_warnings(found.warnings)
    say(headline(found), style="bold", soft_wrap=True)
    backfill = f"{run.backfill} backfill" if run.backfill != "none" else "no backfill"
    say(
        f"{found.trace}: {len(run.jobs) + len(run.refused)} jobs on {found.plant.name} ({found.plant.gpus} GPUs), "
        f"{run.queue} queue, {backfill}",
        soft_wrap=True,
    )
    print_whole(_table(found))
    for policy, timeline in found.runs:
        waits = sorted(timeline.waiting_causes().items(), key=lambda pair: -pair[1])
        total = sum(seconds for _, seconds in waits)
        if total:
            parts = ", ".join(
                f"{reason(why)} {seconds / total:.0%}" for why, seconds in waits if seconds / total >= 0.005
            )
            say(f"{policy.name}: a job waits {duration(total / len(timeline.jobs))}: {parts}", soft_wrap=True)
        if timeline.refused:
            first = timeline.refused[0]
            say(
                f"{policy.name}: {len(timeline.refused)} jobs can never start and are in no number above, the first: "
                f"{first.name}: {first.explanation}",
                soft_wrap=True,
            )
    for sentence in circuits_said(found):
        say(sentence, soft_wrap=True)
    for note in found.notes:
        say(f"note: {note}", style="dim", soft_wrap=True)
    if page is None:
        say("add --page cluster.html for the cluster over time, --json for numbers", style="dim")


def _table(found: ClusterStudy) -> Table:
    from rich import box
    from rich.table import Table

    from ropewalk.report.cluster_words import duration

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in ("policy", "jct", "p99 jct", "jrt", "jwt", "slowdown", "contended", "gpus", "no spines"):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    best = min(run.mean_jct_s for run in found.timelines)
    for policy, run in found.runs:
        times = [duration(value) for value in (run.mean_jct_s, run.p99_jct_s, run.mean_jrt_s, run.mean_jwt_s)]
        parts = (f"{run.mean_slowdown:.3f}", f"{run.contention_ratio:.1%}", f"{run.gpu_utilisation:.1%}")
        table.add_row(
            policy.name, *times, *parts, str(run.network_fragmentation_events),
            style="bold" if run.mean_jct_s == best else None,
        )  # fmt: skip
    return table


cluster_app.command(REPLAY, cls=DescribedCommand)(replay_command)
cluster_app.command("snapshot", cls=DescribedCommand)(snapshot_command)
cluster_app.command("allocate", cls=DescribedCommand)(allocate_command)
cluster_app.command("explain", cls=DescribedCommand)(explain_command)
cluster_app.command("rules", cls=DescribedCommand)(rules_command)
cluster_app.command("generate", cls=DescribedCommand)(generate_command)
cluster_app.command("size", cls=DescribedCommand)(size_command)
