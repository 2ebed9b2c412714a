"""`ropewalk cluster agreement`: how far are the rates of a replay from flows and from packets?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_plant import PlantOptions, plant_of
from ropewalk.cli.cluster_screen import print_warnings
from ropewalk.cli.cluster_trace import JOBS, ReplayOptions, conditions_of, read_jobs
from ropewalk.cli.idle_options import given
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.packet_options import PacketChoices
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

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.tenancy.agreement import Agreement
    from ropewalk.tenancy.policies import Policy

MOMENTS = typer.Option(6, min=1, help="How many moments, evenly spread from the first arrival to the last.")
AT = typer.Option(None, help="The moments themselves, with commas: 5000s,9000s.")
ROUTING = typer.Option("ecmp", help="The policy under which jobs share links: {policies.shares}.")
PLACEMENT = typer.Option("packed", help="How jobs get their servers: {placements}.")
ITERATIONS = typer.Option(2, min=1, help="Of the job whose iterations are longest; the others continue meanwhile.")
SCALE = typer.Option(
    None, help="Multiplies times and bytes of all jobs, such as 0.001; unless given, the largest that fits 3e7 events."
)
HOP_LATENCY = typer.Option("0us", help="Latency of a NIC's link and of a cable, such as 1us; the replay has none.")
PORT = typer.Option(
    100,
    help="UDP port of the flows whose paths are hashed as switches do it (MurmurHash3); another one is another draw.",
)


@dataclass(frozen=True)
class ComparedOptions:
    """What was typed about the moments and how to look at them."""

    moments: int
    at: str | None
    routing: str
    placement: str
    iterations: int
    scale: float | None
    hop_latency: str
    port: int

    def policy(self) -> Policy:
        from ropewalk.tenancy.policies import policies_named

        (policy,) = policies_named([], [self.routing], compare=False, placement=[self.placement])
        return policy


@with_options
def agreement_command(
    context: typer.Context,
    jobs: Path = JOBS,
    json: bool = JSON,
    page: Path | None = PAGE,
    *,
    compared: ComparedOptions,
    replay: ReplayOptions,
    cluster: PlantOptions,
    packets: PacketChoices,
) -> None:
    """Compare the replay's rates with flow and packet simulations of the same jobs at several moments.

    Example: `ropewalk cluster agreement jobs.csv --moments 6 --fabric leaf-spine:16x16x16 --page agreement.html`

    With pauses instead of congestion control, and small buffers: `ropewalk cluster agreement jobs.csv --transport
    rdma-pfc --buffer 2MB`
    """
    from ropewalk.tenancy.agreement import AgreementQuestion, answer, evenly_spread
    from ropewalk.tenancy.agreement.question import EVENTS, HASHED

    require_outputs(page)
    policy = compared.policy()
    use = packets.use("packet")
    if not given(context, ("most_events",)):
        use = replace(use, most_events=EVENTS)
    plant = plant_of(cluster)
    hashes = policy.routing in HASHED and not replay.fail
    with shown_progress("reading jobs") as progress:
        conditions = conditions_of(replay, plant)
        read = read_jobs(jobs, replay, plant)
        times = (
            evenly_spread(read.jobs, compared.moments)
            if compared.at is None
            else [units.seconds(one) for one in not_empty(split(compared.at), "--at")]
        )
        question = AgreementQuestion(
            policy, plant, read.jobs, times, conditions, use, compared.iterations, compared.scale,
            units.seconds(compared.hop_latency), compared.port if hashes else None, jobs.name,
        )  # fmt: skip
        found = answer(question, progress)
    if page is not None:
        from ropewalk.report.cluster_agreement import agreement_page

        write_page(page, agreement_page(found, read.warnings, [*read.said, *read.notes]))
    if json:
        print_json({**found.as_json(), "jobs_train": read.said, "warnings": read.warnings, "notes": read.notes})
    else:
        print_warnings(read.warnings)
        _print(found, [*read.said, *read.notes], page)


def _print(found: Agreement, notes: list[str], page: Path | None) -> None:
    from ropewalk.report.cluster_agreement import headline, lead, remarks

    say = console().print
    say(headline(found), style="bold", soft_wrap=True)
    say(lead(found), soft_wrap=True)
    print_whole(_steps(found))
    say("mean iteration of jobs that use links between switches, over that on a quiet network:", soft_wrap=True)
    print_whole(_moments(found))
    for sentence in remarks(found):
        say(sentence, soft_wrap=True)
    for note in notes:
        say(f"note: {note}", style="dim", soft_wrap=True)
    if page is None:
        say("add --page agreement.html for charts, --json for every job", style="dim")


def _plain_table(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table


def _steps(found: Agreement) -> Table:
    from ropewalk.report.cluster_agreement import step_rows

    table = _plain_table("", "mean", "mean size", "10th percentile", "90th", "largest")
    for row in step_rows(found):
        table.add_row(*row)
    return table


def _moments(found: Agreement) -> Table:
    from ropewalk.report.cluster_agreement import MOMENT_HEADS, moment_rows

    table = _plain_table(*MOMENT_HEADS)
    for row in moment_rows(found):
        table.add_row(*row)
    return table
