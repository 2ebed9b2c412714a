"""`ropewalk lab`: does the network do what was promised? Any fabric or plan as a real network inside this machine."""

from __future__ import annotations

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import refuse
from ropewalk.cli.lab_screen import print_labs, print_links
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.places import NAMED, fabric_named, plan_named
from ropewalk.cli.screen import JSON, print_json
from ropewalk.cli.tables import DescribedCommand
from ropewalk.errors import InputError

NAME = typer.Option("lab", "--name", "-n", help="The lab, where there are several.")
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
    hosts: int | None = typer.Option(None, min=1, help="Hosts, where only a family is named."),
    routing: str | None = typer.Option(
        None, help="Routes: {routers}, or hash (the kernel's own ECMP).  [default: the best for the fabric]"
    ),
    seed: int = typer.Option(0, help="Of routers that hash."),
    scale: str | None = typer.Option(
        None, help="Build links at one part in so many of their speed, 1:5000.  [default: what this machine carries]"
    ),
    name: str = NAME,
    json: bool = JSON,
) -> None:
    """Build a network of namespaces: hosts, switches, shaped links, routes.

    Example: `ropewalk lab up leaf-spine:4x4x4 --bandwidth 100Gbps --scale 1:5000`

    Root is not needed where the kernel lets users make namespaces. `ropewalk lab down` removes all of it.
    """
    from ropewalk.lab.lifecycle import bring_up
    from ropewalk.lab.request import Request, routes_by_name, routes_of_plan, scaled
    from ropewalk.routing import DEFAULT

    plan = plan_named(named)
    fabric = fabric_named(named, place, plan=plan, hosts=hosts)
    network, capacity = scaled(fabric, None if scale is None else _scale(scale))
    if plan is None:
        router, routes = routes_by_name(fabric, routing or DEFAULT, seed)
    else:
        refuse(["--routing"] if routing else [], f"{named} is a plan and says it: leave it out")
        router, routes = routes_of_plan(plan, fabric)
    typer.echo(f"{fabric.name}: {capacity.said()}", err=True)
    state = bring_up(Request(name, named or str(place.cluster), network, router, routes))
    if json:
        from ropewalk.records import plain

        print_json(plain(state))
        return
    print_labs([state])


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
        found = [labs.read(one) for one in labs.names()]
        if json:
            print_json([{"name": one.name, "source": one.source, "alive": one.holder.alive} for one in found])
        else:
            print_labs(found)
        return
    with opened(name) as (state, lab):
        counted = lab.counters()
    print_links(state, lab.network, counted, json=json)


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
lab_app.command("status", cls=DescribedCommand)(status_command)
lab_app.command("fault", cls=DescribedCommand)(fault_command)
lab_app.command("down", cls=DescribedCommand)(down_command)
