"""`ropewalk fabric`: what is this fabric?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.places import NAMED, fabric_named, plan_named
from ropewalk.cli.screen import JSON, PAGE, console, print_json, require_outputs, shown_progress, write_page

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.fabric.checks import FabricFacts


@within_memory
@with_options
def fabric_command(
    named: str | None = typer.Argument(None, metavar="[FABRIC]", help=NAMED + " Or a family, with --hosts: {fabrics}."),
    *,
    place: ClusterOptions,
    hosts: int | None = typer.Option(None, min=1, help="Number of hosts, if only a family is named."),
    save: Path | None = typer.Option(
        None, metavar="FILE", help="Write the fabric as .yaml, .json or .graphml (by extension)."
    ),
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Describe and draw a fabric: ports, diameter, bisection.

    Example: `ropewalk fabric leaf-spine:16x8x4 --bandwidth 100Gbps --page fabric.html`

    The network of a cluster: `ropewalk fabric --cluster dgx-h100:4`
    """
    from ropewalk.fabric.checks import facts

    require_outputs(save, page, read=(named, place.cluster, place.fabric))
    with shown_progress("building the fabric") as progress:
        found = fabric_named(named, place, plan=plan_named(named), hosts=hosts)
        progress(0, None, "measuring it")
        known = facts(found)
    if save is not None:
        from ropewalk.fabric.files import write_fabric

        write_fabric(found, save)
        typer.echo(f"fabric: {save}", err=True)
    if page is not None:
        from ropewalk.report import fabric_page

        write_page(page, fabric_page(found, known))
    if json:
        print_json(known.as_json())
    else:
        _print_facts(found, known)


def _print_facts(found: Fabric, known: FabricFacts) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, title=Text(found.name), title_justify="left", title_style="bold")
    for name, value in fact_lines(known):
        table.add_row(name, value)
    console().print(table)


def fact_lines(known: FabricFacts) -> list[tuple[str, str]]:
    """The facts as people read them: (name, value with unit)."""
    not_measured = "not measured (hosts are cut off, or too many)"
    bound = " at most (best cut found)" if known.bisection_is_bound else ""
    return [
        ("hosts", str(known.hosts)),
        ("switches", str(known.switches)),
        ("links", f"{known.links} (directed), {known.cables} cables"),
        ("ports per host", _range(*known.host_ports)),
        ("ports per switch", _range(*known.switch_ports) if known.switch_ports else "no switches"),
        ("bandwidth per host", " to ".join(dict.fromkeys(map(units.show_bandwidth, known.host_bandwidth)))),
        ("connected", "every host reaches every other" if known.connected else "no: some hosts are cut off"),
        ("diameter", f"{known.diameter} links" if known.diameter is not None else not_measured),
        ("mean distance", f"{known.mean_distance:.4g} links" if known.mean_distance is not None else not_measured),
        ("bisection", units.show_bandwidth(known.bisection) + bound if known.bisection is not None else "one host"),
    ]


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"
