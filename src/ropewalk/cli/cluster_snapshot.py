"""`ropewalk cluster snapshot`: the jobs that run at one moment, simulated together at any level."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli import step_options
from ropewalk.cli.cluster_plant import ISOLATE_OF_STATE, PlantOptions, plant_for, read_state
from ropewalk.cli.cluster_screen import print_warnings, some
from ropewalk.cli.cluster_state import policy_for
from ropewalk.cli.cluster_trace import JOBS, ReplayOptions, conditions_of, read_jobs
from ropewalk.cli.idle_options import given, refuse
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.packet_options import PacketChoices, refuse_without_packets
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
from ropewalk.errors import ClusterError, Findings, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.progress import Progress
    from ropewalk.sim.level import LevelUse
    from ropewalk.tenancy.job import Job
    from ropewalk.tenancy.occupancy import Occupancy
    from ropewalk.tenancy.plant import Plant
    from ropewalk.tenancy.policies import Policy
    from ropewalk.tenancy.question import Conditions
    from ropewalk.tenancy.snapshot import Moment, Snapshot, SnapshotQuestion
    from ropewalk.tenancy.work import Iteration

OF_REPLAYS = (
    "at", "queue", "backfill", "backfill_rule", "first", "largest", "prepare", "load", "fail", "when_a_link_dies",
    "circuit_delay", "patch_delay",
)  # fmt: skip
"""Options about how jobs came to run, which a state leaves out of account."""
MOST_ROWS = 24
"""Of the table on the screen: the jobs that are slowed down most."""

AT = typer.Option(None, help="Point in time of the replay, such as 5000s.")
STATE = typer.Option(
    None,
    metavar="FILE",
    help="Instead of --at: a state file (JSON) with the current allocations; JOBS then says what each job does.",
)
ISOLATE = ISOLATE_OF_STATE
ROUTING = typer.Option(
    None, help="With --isolate none: routing of jobs that share links: {policies.shares}.  [default: ecmp]"
)
ONLY = typer.Option(None, "--jobs", metavar="NAMES", help="Only these jobs (comma-separated).")
LEVEL = step_options.LEVEL
ITERATIONS = typer.Option(
    3, min=1, help="Iterations of the job with the longest iteration; the others keep running meanwhile."
)
SCALE = typer.Option(
    1.0, help="Multiplies times and bytes of all jobs: 0.01 makes packet-level runs a hundred times shorter."
)
HOP_LATENCY = typer.Option("0us", help="Latency of a NIC's link and of a cable, such as 1us.")


@dataclass(frozen=True)
class MomentOptions:
    """What was typed about the moment."""

    at: str | None
    state: Path | None
    isolate: str | None
    routing: str | None

    def check(self, context: typer.Context) -> None:
        if (self.at is None) == (self.state is None):
            raise InputError(
                "a snapshot shows one point in time: give either --at TIME, such as --at 5000s, or --state FILE"
            )
        if self.state is not None:
            refuse(given(context, OF_REPLAYS), "a state file lists the running jobs itself: leave it out")

    def policy(self) -> Policy:
        """An isolating policy, or one under which jobs share links."""
        from ropewalk.tenancy.policies import policies_named

        asked = policy_for(self.isolate, self.state)
        if self.routing is None:
            return asked
        if not asked.shares:
            raise InputError(
                f"--routing is for jobs that share links, and {asked.name} isolates them: add --isolate none"
            )
        (policy,) = policies_named([], [self.routing], compare=False)
        return policy


@dataclass(frozen=True)
class LookOptions:
    """What was typed about how to look at it."""

    level: str
    iterations: int
    only: str | None
    scale: float
    hop_latency: str

    def question(self, moment: Moment, use: LevelUse) -> SnapshotQuestion:
        from ropewalk.tenancy.snapshot import SnapshotQuestion

        only = None if self.only is None else tuple(not_empty(split(self.only), "--jobs"))
        return SnapshotQuestion(moment, use, self.iterations, self.scale, only, units.seconds(self.hop_latency))


@within_memory
@with_options
def snapshot_command(
    context: typer.Context,
    jobs: Path = JOBS,
    json: bool = JSON,
    page: Path | None = PAGE,
    *,
    which: MomentOptions,
    look: LookOptions,
    replay: ReplayOptions,
    cluster: PlantOptions,
    packets: PacketChoices,
) -> None:
    """Simulate the jobs of one moment together and alone: who slows whom, and by how much.

    Example: `ropewalk cluster snapshot jobs.csv --at 5000s --isolate none --level flow --fabric leaf-spine:16x16x16`

    At packet level: `ropewalk cluster snapshot jobs.csv --at 5000s --isolate none --level packet --scale 0.001 --page
    moment.html`
    """
    from ropewalk.tenancy.snapshot import answer

    require_outputs(page, read=(jobs, cluster.cluster, cluster.fabric))
    refuse_without_packets(context, (look.level,))
    use = packets.use(look.level)
    which.check(context)
    plant = plant_for(cluster, which.state)
    with shown_progress("reading jobs") as progress:
        conditions = conditions_of(replay, plant)
        read = read_jobs(jobs, replay, plant)
        found = answer(look.question(_moment(which, plant, read.jobs, jobs, conditions, progress), use), progress)
    if page is not None:
        from ropewalk.report.cluster_snapshot import snapshot_page

        write_page(page, snapshot_page(found, read.warnings, [*read.said, *read.notes]))
    if json:
        print_json({**found.as_json(), "jobs_train": read.said, "warnings": read.warnings, "notes": read.notes})
    else:
        print_warnings(read.warnings)
        _print(found, [*read.said, *read.notes], page)


def _moment(
    which: MomentOptions, plant: Plant, jobs: list[Job], path: Path, conditions: Conditions,
    progress: Progress,
) -> Moment:  # fmt: skip
    """Who runs then: in a replay up to the moment, or in the state."""
    from ropewalk.tenancy.snapshot import moment_of_replay, moment_of_state

    policy = which.policy()
    if which.at is None:
        state = read_state(policy, plant, which.state)
        return moment_of_state(policy, state, _works(state, jobs, path), conditions.seed)
    until_s = units.seconds(which.at)
    return moment_of_replay(policy, plant, jobs, conditions, until_s, trace=path.name, progress=progress)


def _works(state: Occupancy, jobs: list[Job], path: Path) -> dict[str, Iteration]:
    """What jobs do, as a table says it that agrees with the state about their sizes."""
    findings = Findings(ClusterError, f"jobs {path}")
    for job in jobs:
        held = state.jobs.get(job.name)
        if held is not None and held.size != job.gpus:
            findings.add(f"{job.name} has {job.gpus} GPUs here and {held.size} in the state: write {held.size}")
    findings.raise_if_any()
    return {job.name: job.work for job in jobs}


def _print(found: Snapshot, notes: list[str], page: Path | None) -> None:
    from ropewalk.report.cluster_snapshot import headline, lead, remarks

    say = console().print
    say(headline(found), style="bold", soft_wrap=True)
    say(lead(found), soft_wrap=True)
    print_whole(_table(found))
    if len(found.jobs) > MOST_ROWS:
        say(f"and {len(found.jobs) - MOST_ROWS} more jobs, not slowed down further; --json lists all", style="dim")
    for sentence in (*found.run.sentences(), *remarks(found)):
        say(sentence, soft_wrap=True)
    for note in notes:
        say(f"note: {note}", style="dim", soft_wrap=True)
    if page is None:
        say("add --page moment.html for charts, --json for numbers", style="dim")


def _table(found: Snapshot) -> Table:
    from rich import box
    from rich.table import Table

    from ropewalk.report.cluster_words import duration

    seen = found.meetings.packets
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    names = ["job", "gpus", "leafs", "alone", "beside", "slowdown", "replay says", "shares links with"]
    if seen is not None:
        names += ["pauses", "marks", "drops", "paused by"]
    words = {"job", "shares links with", "paused by"}
    for name in names:
        table.add_column(name, justify="left" if name in words else "right", no_wrap=True)
    jobs = [job.name for job in found.jobs]
    shown = sorted(range(len(jobs)), key=lambda number: (-round(found.jobs[number].slowdown, 9), number))
    for number in shown[:MOST_ROWS]:
        job = found.jobs[number]
        cells = [
            job.name, str(job.gpus), str(len(job.leafs)), duration(job.alone_s), duration(job.iteration_s),
            f"{job.slowdown:.3f}", f"{job.assumed_slowdown:.3f}", some(list(found.meetings.neighbours(number, jobs))),
        ]  # fmt: skip
        if seen is not None:
            by = [f"{name} {frames}" for name, frames in seen.paused_by(number, jobs).items()]
            cells += [str(count[number]) for count in (seen.nic_pauses, seen.marks, seen.drops)] + [some(by)]
        table.add_row(*cells, style="bold" if job is found.slowest and job.slowdown > 1.0005 else None)
    return table
