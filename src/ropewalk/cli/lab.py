"""`ropewalk lab`: does the network do what was promised? Any fabric or plan as a real network inside this machine."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import refuse
from ropewalk.cli.lab_screen import print_labs, print_links, print_run
from ropewalk.cli.lists import split
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.places import NAMED, fabric_named, host_named, plan_named
from ropewalk.cli.screen import JSON, PAGE, print_json, require_outputs, shown_progress, write_page
from ropewalk.cli.tables import DescribedCommand
from ropewalk.errors import InputError, LabError

if TYPE_CHECKING:
    from ropewalk.collectives.act import Act
    from ropewalk.fabric import Fabric
    from ropewalk.lab.answer import LabAnswer
    from ropewalk.lab.job import LabWork
    from ropewalk.lab.question import LabQuestion
    from ropewalk.lab.request import LabRequest

NAME = typer.Option("lab", "--name", "-n", help="The lab, where there are several.")
HOSTS = typer.Option(None, min=1, help="Hosts, where only a family is named.")
ROUTING = typer.Option(
    None, help="Routes: {routers}, or hash (the kernel's own ECMP).  [default: the best for the fabric]"
)
SEED = typer.Option(0, help="Of routers that hash.")
SCALE = typer.Option(
    None, help="Build links at one part in so many of their speed, 1:5000.  [default: what this machine carries]"
)


@dataclass(frozen=True)
class BuildOptions:
    """How a lab is built, and what it is called."""

    hosts: int | None
    routing: str | None
    seed: int
    scale: str | None
    name: str


LINK = typer.Option(
    ...,
    "--link",
    metavar="A-B",
    help="A cable (leaf0-spine1), one direction of it (leaf0->spine1), or one of parallel cables (leaf0-spine1:0).",
)
lab_app = typer.Typer(
    name="lab",
    no_args_is_help=True,
    help="A fabric or a plan as a real network inside this machine: `ropewalk lab up torus:4x4 --bandwidth 20Mbps`.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)


@with_options
def up_command(
    named: str | None = typer.Argument(None, metavar="[FABRIC]", help=NAMED),
    *,
    place: ClusterOptions,
    build: BuildOptions,
    json: bool = JSON,
) -> None:
    """Build a network of namespaces: hosts, switches, shaped links, routes.

    Example: `ropewalk lab up leaf-spine:4x4x4 --bandwidth 100Gbps --scale 1:5000`

    Root is not needed where the kernel lets users make namespaces. `ropewalk lab down` removes all of it.
    """
    from ropewalk.lab.lifecycle import bring_up

    state = bring_up(_request(named, place, build))
    if json:
        from ropewalk.records import plain

        print_json(plain(state))
        return
    print_labs([state])


@with_options
def run_command(
    named: str | None = typer.Argument(
        None, metavar="[FABRIC]", help=NAMED + " Built for this run, unless a lab is up."
    ),
    *,
    collective: str | None = typer.Option(
        None, "--collective", "-c", help="How hosts exchange: {collectives}.  [default: the step of a plan, else ring]"
    ),
    act: str = typer.Option("allreduce", help="What they do: allreduce, allgather, reducescatter, alltoall, …"),
    size: str = typer.Option("4MB", "--size", "-s", help="Bytes in the buffer of a rank."),
    group: list[str] = typer.Option(
        [], "--group", "-g", help="Hosts of a group, h0,h1,h2; given again, groups run at once.  [default: all hosts]"
    ),
    segments: int = typer.Option(1, min=1, help="Pieces that follow each other down the trees of a forest."),
    shrink: float = typer.Option(1.0, min=1.0, help="Divide bytes and seconds of the step of a plan by this."),
    repeats: int = typer.Option(5, help="Runs that count; one before them warms connections up."),
    place: ClusterOptions,
    build: BuildOptions,
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Run a collective between all hosts, or the step of a plan, over TCP: the prediction beside the measurement.

    On the lab that is up: `ropewalk lab run --collective ring --size 4MB`

    On a lab for this run alone: `ropewalk lab run torus:4x4 --bandwidth 20Mbps --collective hips --page lab.html`

    The training step of a plan: `ropewalk lab run plan.json --shrink 10 --page lab.html`
    """
    from ropewalk.lab.question import LabQuestion

    require_outputs(page, read=(named, place.cluster))
    question = LabQuestion(collective or "ring", _act(act), units.size(size), repeats, segments)
    question.check()
    if named is None and place.cluster is None:
        given = {"--hosts": build.hosts, "--routing": build.routing, "--scale": build.scale, **place.typed()}
        refuse([word for word, value in given.items() if value is not None], "the lab that is up has decided it")
        found = _on_lab(build.name, question, group)
    else:
        request = _request(named, place, build)
        question = replace(question, groups=_groups(request.network.fabric, group))
        work = _work(named, request, question, shrink, chosen=collective is not None or bool(group))
        found = _on_new_lab(request, work, repeats)
    if page is not None:
        from ropewalk.report.lab import lab_page

        write_page(page, lab_page(found))
    if json:
        print_json(found.as_json())
    else:
        print_run(found)
    if found.wrong:
        raise typer.Exit(1)


def _groups(fabric: Fabric, texts: list[str]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(host_named(fabric, text) for text in split(one)) for one in texts)


def _on_lab(name: str, question: LabQuestion, group: list[str]) -> LabAnswer:
    """A collective on a lab that is up."""
    from ropewalk.lab.collective import collective_work
    from ropewalk.lab.lifecycle import lent, opened, routes_in
    from ropewalk.lab.measure import measured

    with opened(name) as (state, lab), shown_progress() as progress:
        question = replace(question, groups=_groups(lab.network.fabric, group))
        work = collective_work(lab.network, routes_in(state, lab.network), question)
        with lent(name) if work.brings_routes else nullcontext():
            return measured(lab, state.routing, work, question.repeats, rates=dict(state.slowed), progress=progress)


def _on_new_lab(request: LabRequest, work: LabWork, repeats: int) -> LabAnswer:
    """Work on a lab that is made for it and gone afterwards."""
    from ropewalk.lab.lab import built
    from ropewalk.lab.measure import measured

    with built(request.network, request.tables()) as lab, shown_progress() as progress:
        return measured(lab, request.routing, work, repeats, progress=progress)


def _work(named: str | None, request: LabRequest, question: LabQuestion, shrink: float, chosen: bool) -> LabWork:
    """The step of a plan, or a collective on the fabric that was named."""
    from ropewalk.lab.collective import collective_work

    plan = plan_named(named)
    if plan is None or chosen:
        refuse(["--shrink"] if shrink != 1 else [], "only steps of plans shrink: give --size")
        return collective_work(request.network, request.routes, question)
    from ropewalk.lab.step import step_work

    return step_work(request.network, plan, shrink)


def _request(named: str | None, place: ClusterOptions, build: BuildOptions) -> LabRequest:
    """What is to be built; says what the machine carries."""
    from ropewalk.lab.request import LabRequest, routes_by_name, routes_of_plan, scaled
    from ropewalk.routing import DEFAULT

    plan = plan_named(named)
    fabric = fabric_named(named, place, plan=plan, hosts=build.hosts)
    network, capacity = scaled(fabric, None if build.scale is None else _scale(build.scale))
    if plan is None:
        router, routes = routes_by_name(fabric, build.routing or DEFAULT, build.seed)
    else:
        refuse(["--routing"] if build.routing else [], f"{named} is a plan and says it: leave it out")
        router, routes = routes_of_plan(plan, fabric)
    typer.echo(f"{fabric.name}: {capacity.said()}", err=True)
    return LabRequest(build.name, named or str(place.cluster), network, router, routes)


def _act(text: str) -> Act:
    from ropewalk.collectives.act import EXCHANGES, Act

    if text not in [act.key for act in EXCHANGES]:
        raise InputError(f"unknown act {text!r}: use one of {', '.join(act.key for act in EXCHANGES)}")
    return Act.of_key(text)


def down_command(name: str = NAME, every: bool = typer.Option(False, "--all", help="All labs of this user.")) -> None:
    """Remove a lab: its processes, namespaces, interfaces and routes.

    Example: `ropewalk lab down`
    """
    from ropewalk.lab.lifecycle import take_down
    from ropewalk.lab.state import names

    for one in names() if every else [name]:
        take_down(one)
        typer.echo(f"lab {one} is down")


def status_command(
    name: str | None = typer.Option(None, "--name", "-n", help="One lab, with all its links."), json: bool = JSON
) -> None:
    """Labs that are up, and what the links of one have sent.

    Example: `ropewalk lab status --name lab`
    """
    from ropewalk.lab import state as labs
    from ropewalk.lab.lifecycle import opened

    if name is None:
        found, damaged = [], []
        for one in labs.names():
            try:
                found.append(labs.read(one))
            except LabError as problem:
                damaged.append(str(problem))
        if json:
            print_json([{"name": one.name, "source": one.source, "alive": one.holder.alive} for one in found])
        elif found or not damaged:
            print_labs(found)
        for sentence in damaged:
            typer.echo(sentence, err=True)
        return
    with opened(name) as (state, lab):
        counted = lab.counters()
    print_links(state, lab.network, counted, json=json)


@with_options
def rewire_command(
    named: str | None = typer.Argument(None, metavar="[FABRIC]", help=NAMED),
    *,
    place: ClusterOptions,
    hosts: int | None = HOSTS,
    routing: str | None = ROUTING,
    seed: int = SEED,
    delay: str = typer.Option("0s", help="How long new circuits are dark, on the fabric, such as 10ms."),
    name: str = NAME,
) -> None:
    """Change the circuits of a lab while it runs, as an optical switch does: the same nodes, other links.

    Example: `ropewalk lab rewire after.yaml --delay 10ms`

    Cables between the same nodes stay and carry on; routes change with the circuits.
    """
    from ropewalk.lab import state as labs
    from ropewalk.lab.lifecycle import rewire
    from ropewalk.lab.request import routes_by_name
    from ropewalk.routing import DEFAULT

    fabric = fabric_named(named, place, plan=plan_named(named), hosts=hosts)
    router, routes = routes_by_name(fabric, routing or DEFAULT, seed)
    dark_s = units.seconds(delay) * labs.read(name).scale
    print_labs([rewire(name, fabric, router, routes, dark_s)])


def fault_command(
    link: str = LINK,
    down: bool = typer.Option(False, "--down", help="Take it down."),
    up: bool = typer.Option(False, "--up", help="Make it whole again."),
    rate: str | None = typer.Option(None, help="Give it another speed, in the fabric's own terms, such as 5Mbps."),
    name: str = NAME,
) -> None:
    """Break or slow a link of a lab, or make it whole again.

    Example: `ropewalk lab fault --link h0-h1 --rate 5Mbps`
    """
    from ropewalk.lab.faults import DOWN, UP, Fault, cause

    if [down, up, rate is not None].count(True) != 1:
        raise InputError(f"say what happens to {link}: one of --down, --up or --rate 5Mbps")
    what = units.bandwidth(rate) if rate is not None else DOWN if down else UP
    typer.echo(f"lab {name}: {cause(name, Fault(link, what))}")


def _scale(text: str) -> float:
    """1:5000 and 5000 are the same.

    >>> _scale("1:5000"), _scale("2.5")
    (5000.0, 2.5)
    """
    try:
        return float(text.removeprefix("1:"))
    except ValueError:
        raise InputError(f"--scale {text} is not a number: write it like 1:5000") from None


lab_app.command("up", cls=DescribedCommand)(up_command)
lab_app.command("run", cls=DescribedCommand)(run_command)
lab_app.command("status", cls=DescribedCommand)(status_command)
lab_app.command("fault", cls=DescribedCommand)(fault_command)
lab_app.command("rewire", cls=DescribedCommand)(rewire_command)
lab_app.command("down", cls=DescribedCommand)(down_command)
