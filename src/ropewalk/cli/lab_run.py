"""`ropewalk lab run`: a collective or the step of a plan on a lab, the prediction beside the measurement."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import refuse
from ropewalk.cli.lab_options import BuildOptions
from ropewalk.cli.lab_screen import print_run
from ropewalk.cli.lists import split
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.places import NAMED, host_named, plan_named
from ropewalk.cli.screen import JSON, PAGE, print_json, require_outputs, shown_progress, write_page
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.collectives.act import Act
    from ropewalk.fabric import Fabric
    from ropewalk.lab.answer import LabAnswer
    from ropewalk.lab.job import LabWork
    from ropewalk.lab.question import LabQuestion
    from ropewalk.lab.request import LabRequest

WHAT = "What is run"
COLLECTIVE = typer.Option(
    None,
    "--collective",
    "-c",
    help="How hosts exchange: {collectives}.  [default: the step of a plan, else ring]",
    rich_help_panel=WHAT,
)
ACT = typer.Option(
    "allreduce", help="What they do: allreduce, allgather, reducescatter, alltoall, …", rich_help_panel=WHAT
)
SIZE = typer.Option("4MB", "--size", "-s", help="Bytes in the buffer of a rank.", rich_help_panel=WHAT)
GROUP = typer.Option(
    [],
    "--group",
    "-g",
    help="Hosts of a group, h0,h1,h2; given again, groups run at once.  [default: all hosts]",
    rich_help_panel=WHAT,
)
SEGMENTS = typer.Option(
    1, min=1, help="Pieces that follow each other down the trees of a forest.", rich_help_panel=WHAT
)
SHRINK = typer.Option(
    None, min=1.0, help="Divide bytes and seconds of the step of a plan by this.", rich_help_panel=WHAT
)
REPEATS = typer.Option(5, help="Runs that count; one before them warms connections up.", rich_help_panel=WHAT)


@dataclass(frozen=True)
class RunOptions:
    """What is run, and how often."""

    collective: str | None
    act: str
    size: str
    group: list[str]
    segments: int
    shrink: float | None
    repeats: int

    @property
    def names_a_collective(self) -> bool:
        return self.collective is not None or bool(self.group)

    def question(self) -> LabQuestion:
        """The collective; its groups are still to be found on the fabric."""
        from ropewalk.lab.question import LabQuestion

        asked = LabQuestion(
            self.collective or "ring", act_named(self.act), units.size(self.size), self.repeats, self.segments
        )
        asked.check()
        return asked

    def groups(self, fabric: Fabric) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(host_named(fabric, text) for text in split(one)) for one in self.group)


@with_options
def run_command(
    named: str | None = typer.Argument(None, metavar="[FABRIC]", help=NAMED + " Built for this run alone."),
    *,
    what: RunOptions,
    place: ClusterOptions,
    build: BuildOptions,
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Run a collective between hosts, or the step of a plan, over TCP: the prediction beside the measurement.

    On the lab that is up: `ropewalk lab run --collective ring --size 4MB`

    On a lab for this run alone: `ropewalk lab run torus:4x4 --bandwidth 20Mbps --collective hips --page lab.html`

    The training step of a plan: `ropewalk lab run plan.json --shrink 10 --page lab.html`
    """
    require_outputs(page, read=(named, place.cluster))
    question = what.question()
    if named is None and place.cluster is None:
        given = {**build.typed(), **place.typed(), "--shrink": what.shrink}
        refuse([word for word, value in given.items() if value is not None], "the lab that is up has decided it")
        found = _on_lab(build.name, question, what)
    else:
        request = build.request(named, place)
        found = _on_new_lab(request, _work(named, request, question, what), what.repeats)
    if page is not None:
        from ropewalk.report.lab import lab_page

        write_page(page, lab_page(found))
    if json:
        print_json(found.as_json())
    else:
        print_run(found)
    if found.wrong:
        raise typer.Exit(1)


def _on_lab(name: str, question: LabQuestion, what: RunOptions) -> LabAnswer:
    """A collective on a lab that is up."""
    from ropewalk.lab.collective import collective_work
    from ropewalk.lab.lifecycle import lent, opened, routes_in
    from ropewalk.lab.measure import measured

    with opened(name) as (state, lab), shown_progress() as progress:
        question = replace(question, groups=what.groups(lab.network.fabric))
        work = collective_work(lab.network, routes_in(state, lab.network), question)
        with lent(name) if work.brings_routes else nullcontext():
            return measured(lab, state.routing, work, what.repeats, rates=dict(state.slowed), progress=progress)


def _on_new_lab(request: LabRequest, work: LabWork, repeats: int) -> LabAnswer:
    """Work on a lab that is made for it and gone afterwards."""
    from ropewalk.lab.lab import built
    from ropewalk.lab.measure import measured

    with built(request.network, request.tables()) as lab, shown_progress() as progress:
        return measured(lab, request.routing, work, repeats, progress=progress)


def _work(named: str | None, request: LabRequest, question: LabQuestion, what: RunOptions) -> LabWork:
    """The step of a plan, or a collective on the fabric that was named."""
    plan = plan_named(named)
    if plan is None or what.names_a_collective:
        from ropewalk.lab.collective import collective_work

        refuse(["--shrink"] if what.shrink else [], "only steps of plans shrink: give --size")
        asked = replace(question, groups=what.groups(request.network.fabric))
        return collective_work(request.network, request.routes, asked)
    from ropewalk.lab.step import step_work

    return step_work(request.network, plan, what.shrink or 1.0)


def act_named(text: str) -> Act:
    from ropewalk.collectives.act import EXCHANGES, Act

    if text not in [act.key for act in EXCHANGES]:
        raise InputError(f"unknown act {text!r}: use one of {', '.join(act.key for act in EXCHANGES)}")
    return Act.of_key(text)
