"""`ropewalk lab`: does the network do what was promised? Any fabric or plan as a real network inside this machine."""

from __future__ import annotations

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.lab_options import NAME, BuildOptions, RouteOptions
from ropewalk.cli.lab_screen import print_labs, print_links
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.places import NAMED
from ropewalk.cli.screen import JSON, print_json
from ropewalk.errors import InputError, LabError

LINK = typer.Option(
    ...,
    "--link",
    metavar="A-B",
    help="A cable (leaf0-spine1), one direction of it (leaf0->spine1), or one of parallel cables (leaf0-spine1:0).",
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

    Needs no root if the kernel permits user namespaces. `ropewalk lab down` removes everything.
    """
    from ropewalk.lab.lifecycle import bring_up

    state = bring_up(build.request(named, place))
    if json:
        from ropewalk.records import plain

        print_json(plain(state))
        return
    print_labs([state])


def down_command(
    name: str = NAME, every: bool = typer.Option(False, "--all", help="All labs of the current user.")
) -> None:
    """Remove a lab: its processes, namespaces, interfaces and routes.

    Example: `ropewalk lab down`
    """
    from ropewalk.lab.lifecycle import take_down
    from ropewalk.lab.state import names

    for one in names() if every else [name]:
        take_down(one)
        typer.echo(f"lab {one} is down")


def status_command(
    name: str | None = typer.Option(None, "--name", "-n", help="Name of a lab, to show all its links."),
    json: bool = JSON,
) -> None:
    """List running labs, or show the traffic on the links of one.

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
    build: RouteOptions,
    delay: str = typer.Option("0s", help="Reconfiguration delay of new circuits, in fabric time, such as 10ms."),
) -> None:
    """Change the circuits of a running lab, as an optical switch does: the same nodes, other links.

    Example: `ropewalk lab rewire after.yaml --delay 10ms`

    Cables between the same nodes keep running; routes change with the circuits.
    """
    from ropewalk.lab import state as labs
    from ropewalk.lab.lifecycle import rewire

    fabric = build.fabric(named, place)
    router, routes = build.routes(named, fabric)
    dark_s = units.seconds(delay) * labs.read(build.name).scale
    print_labs([rewire(build.name, fabric, router, routes, dark_s)])


def fault_command(
    link: str = LINK,
    down: bool = typer.Option(False, "--down", help="Take the link down."),
    up: bool = typer.Option(False, "--up", help="Bring the link back up at full speed."),
    rate: str | None = typer.Option(None, help="Set the link's bandwidth, in fabric units, such as 5Mbps."),
    name: str = NAME,
) -> None:
    """Break, slow down or restore a link of a lab.

    Example: `ropewalk lab fault --link h0-h1 --rate 5Mbps`
    """
    from ropewalk.lab.faults import DOWN, UP, Fault, cause

    if [down, up, rate is not None].count(True) != 1:
        raise InputError(f"nothing to do for {link}: give one of --down, --up or --rate 5Mbps")
    what = units.bandwidth(rate) if rate is not None else DOWN if down else UP
    typer.echo(f"lab {name}: {cause(name, Fault(link, what))}")
