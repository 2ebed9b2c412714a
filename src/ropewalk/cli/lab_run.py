"""`ropewalk lab run`: a collective or the step of a plan on a lab, the prediction beside the measurement."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import refuse
from ropewalk.cli.lab_gloo import gloo_run
from ropewalk.cli.lab_options import BuildOptions, scale_named
from ropewalk.cli.lab_screen import print_run
from ropewalk.cli.lists import split
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.places import NAMED, host_named, plan_named
from ropewalk.cli.screen import JSON, PAGE, print_json, require_outputs, shown_progress, write_page
from ropewalk.errors import InputError
from ropewalk.files import is_file

if TYPE_CHECKING:
    from ropewalk.collectives.act import Act
    from ropewalk.fabric import Fabric
    from ropewalk.lab.answer import LabAnswer
    from ropewalk.lab.gloo import GlooAnswer
    from ropewalk.lab.job import LabWork
    from ropewalk.lab.question import LabQuestion
    from ropewalk.lab.request import LabRequest
    from ropewalk.lab.timed import TimedFault

WHAT = "Workload"
KINDS = ("sockets", "gloo")
COLLECTIVE = typer.Option(
    None,
    "--collective",
    "-c",
    help="Algorithm: {collectives}.  [default: the step of a plan, otherwise ring]",
    rich_help_panel=WHAT,
)
ACT = typer.Option(
    "allreduce", help="Collective: allreduce, allgather, reducescatter, alltoall, …", rich_help_panel=WHAT
)
SIZE = typer.Option("4MB", "--size", "-s", help="Buffer size per rank.", rich_help_panel=WHAT)
GROUP = typer.Option(
    [],
    "--group",
    "-g",
    help="Hosts of a group: h0,h1,h2. Repeat to run several groups at once.  [default: all hosts]",
    rich_help_panel=WHAT,
)
SEGMENTS = typer.Option(1, min=1, help="Pipeline segments of tree-based algorithms.", rich_help_panel=WHAT)
SHRINK = typer.Option(
    None,
    min=1.0,
    help="Divide bytes and times of a plan's step by this.  [default: so that a run takes at most 20 s]",
    rich_help_panel=WHAT,
)
RANKS = typer.Option(
    "sockets",
    help="Runner: sockets (one process, every transfer timed) or gloo (torch.distributed, one process per host).",
    rich_help_panel=WHAT,
)
FAULT = typer.Option(
    [],
    "--fault",
    metavar="'A-B down at 0.5s up at 1.5s'",
    help="Link fault in every run, in lab seconds after its start: the link goes down, or changes its fabric bandwidth "
    "(a->b 5Mbps at 1s), and may come up again. May be repeated.",
    rich_help_panel=WHAT,
)
LEVEL = typer.Option(
    "flow",
    help="Prediction level: flow, wire (with acknowledgements), packet (TCP packet by packet), or all.",
    rich_help_panel=WHAT,
)
REPEATS = typer.Option(
    5, help="Measured runs; one more run before them warms up the connections.", rich_help_panel=WHAT
)


@dataclass(frozen=True)
class LabRunOptions:
    """What is run, and how often."""

    collective: str | None
    act: str
    size: str
    group: list[str]
    segments: int
    shrink: float | None
    ranks: str
    fault: list[str]
    repeats: int
    level: str

    def levels(self) -> tuple[str, ...]:
        """The levels that are predicted, the flow level among them."""
        from ropewalk.lab.predict import LEVELS

        if self.level not in (*LEVELS, "all"):
            raise InputError(f"unknown level {self.level!r}: use one of {', '.join(LEVELS)}, all")
        if self.fault and self.level != "flow":
            raise InputError("links that change are predicted by the flow level alone: leave --level or --fault out")
        return LEVELS if self.level == "all" else tuple(dict.fromkeys(("flow", self.level)))

    @property
    def over_gloo(self) -> bool:
        if self.ranks not in KINDS:
            raise InputError(f"unknown ranks {self.ranks!r}: use one of {', '.join(KINDS)}")
        return self.ranks == KINDS[1]

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

    def faults(self) -> list[TimedFault]:
        from ropewalk.lab.timed import timed_fault

        return [timed_fault(text) for text in self.fault]

    def groups(self, fabric: Fabric) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(host_named(fabric, text) for text in split(one)) for one in self.group)


@with_options
def run_command(
    named: str | None = typer.Argument(None, metavar="[FABRIC]", help=NAMED + " Built only for this run."),
    *,
    what: LabRunOptions,
    place: ClusterOptions,
    build: BuildOptions,
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Run a collective or the step of a plan over TCP, and compare the measurement with the prediction.

    On a running lab: `ropewalk lab run --collective ring --size 4MB`

    On a temporary lab: `ropewalk lab run torus:4x4 --bandwidth 20Mbps --collective hips --page lab.html`

    The training step of a plan: `ropewalk lab run plan.json --page lab.html`

    With torch.distributed, one process per host: `ropewalk lab run leaf-spine:2x2x2 --ranks gloo --act allgather`
    """
    require_outputs(page, read=(named, place.cluster))
    question = what.question()
    what.faults(), what.levels()  # refused before anything is built
    found: LabAnswer | GlooAnswer
    if what.over_gloo:
        found = gloo_run(named, what, place, build, page)
    elif named is None and place.cluster is None:
        given = {**build.typed(), **place.typed(), "--shrink": what.shrink}
        refuse([word for word, value in given.items() if value is not None], "the running lab fixes it")
        found = _on_lab(build.name, question, what)
    elif (document := allocation_named(named)) is not None:
        found = _on_new_lab(*_allocated(str(named), document, what, place, build), what)
    else:
        request = build.request(named, place)
        found = _on_new_lab(request, _work(named, request, question, what), what)
    _show(found, page, json=json)
    if found.wrong:
        raise typer.Exit(1)


def _show(found: LabAnswer | GlooAnswer, page: Path | None, *, json: bool) -> None:
    from ropewalk.lab.answer import LabAnswer

    if page is not None:
        from ropewalk.report.lab import lab_page

        assert isinstance(found, LabAnswer)
        write_page(page, lab_page(found))
    if json:
        print_json(found.as_json())
    else:
        print_run(found, found.parting.said() if isinstance(found, LabAnswer) else ())


def _on_lab(name: str, question: LabQuestion, what: LabRunOptions) -> LabAnswer:
    """A collective on a lab that is up."""
    from ropewalk.lab import state as labs
    from ropewalk.lab.changes import changed_links, require_whole
    from ropewalk.lab.collective import collective_work
    from ropewalk.lab.lifecycle import lent, opened, routes_in
    from ropewalk.lab.measure import measured

    with opened(name) as (state, lab), shown_progress() as progress:
        question = replace(question, groups=what.groups(lab.network.fabric))
        work = collective_work(lab.network, routes_in(state, lab.network), question)
        require_whole(state, lab.network, work)
        with lent(name) if work.brings_routes else nullcontext():
            found = measured(
                lab, state.routing, work, what.repeats,
                rates=dict(state.slowed), faults=what.faults(), levels=what.levels(), progress=progress,
            )  # fmt: skip
            return replace(found, changed=changed_links(lab.network, state, labs.read(name)))


def _on_new_lab(request: LabRequest, work: LabWork, what: LabRunOptions) -> LabAnswer:
    """Work on a lab that is made for it and gone afterwards."""
    from ropewalk.lab.lab import built
    from ropewalk.lab.measure import measured

    with built(request.network, request.tables()) as lab, shown_progress() as progress:
        return measured(
            lab, request.routing, work, what.repeats, faults=what.faults(), levels=what.levels(), progress=progress
        )


def allocation_named(text: str | None) -> dict[str, Any] | None:
    """The state of a cluster in a file; None where the argument names something else."""
    path = Path(text or "")
    if path.suffix.lower() != ".json" or not is_file(path):
        return None
    from ropewalk.documents import read_json
    from ropewalk.lab.allocated import is_allocation
    from ropewalk.tenancy.saved_state import read_state_document

    subject = f"file {path}"
    document = read_json(path, subject, InputError)
    if isinstance(document, dict) and document.keys() >= {"plant", "placed"}:
        raise InputError(
            f"{path} is the JSON of `ropewalk cluster allocate`: use the state file that it writes with --save"
        )
    return read_state_document(path) if is_allocation(document) else None


def _allocated(
    named: str, document: dict[str, Any], what: LabRunOptions, place: ClusterOptions, build: BuildOptions
) -> tuple[LabRequest, LabWork]:
    """The jobs of a cluster on dedicated links, and the lab of its plant."""
    from ropewalk.fabric import DEFAULT_BANDWIDTH
    from ropewalk.lab.allocated import ISOLATED, allocated_jobs
    from ropewalk.lab.request import LabRequest

    given = {"--group": what.group or None, "--shrink": what.shrink, "--hosts": build.hosts, "--routing": build.routing}
    refuse([word for word, value in given.items() if value is not None], f"{named} fixes which jobs run where")
    network, work, said = allocated_jobs(
        document, what.collective or "ring", units.size(what.size),
        bandwidth=place.given().nic_bandwidth or DEFAULT_BANDWIDTH,
        scale=None if build.scale is None else scale_named(build.scale),
    )  # fmt: skip
    typer.echo(f"{network.fabric.name}: {said}", err=True)
    return LabRequest(build.name, named, network, ISOLATED, work.routes), work


def _work(named: str | None, request: LabRequest, question: LabQuestion, what: LabRunOptions) -> LabWork:
    """The step of a plan, or a collective on the fabric that was named."""
    plan = plan_named(named)
    if plan is None or what.names_a_collective:
        from ropewalk.lab.collective import collective_work

        refuse(["--shrink"] if what.shrink else [], "--shrink applies to the step of a plan: give --size instead")
        asked = replace(question, groups=what.groups(request.network.fabric))
        return collective_work(request.network, request.routes, asked)
    from ropewalk.lab.step import step_work

    return step_work(request.network, plan, what.shrink)


def act_named(text: str) -> Act:
    from ropewalk.collectives.act import EXCHANGES, Act

    if text not in [act.key for act in EXCHANGES]:
        raise InputError(f"unknown act {text!r}: use one of {', '.join(act.key for act in EXCHANGES)}")
    return Act.of_key(text)
