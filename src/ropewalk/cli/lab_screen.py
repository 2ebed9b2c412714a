"""What `ropewalk lab` prints: labs in a line each, links of one lab in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.screen import print_json, print_whole
from ropewalk.units import show_bandwidth, show_size

MOST_LINKS = 8

if TYPE_CHECKING:
    from ropewalk.lab.answer import LabAnswer
    from ropewalk.lab.gloo import GlooAnswer
    from ropewalk.lab.netlink import Counted
    from ropewalk.lab.network import LabNetwork
    from ropewalk.lab.state import LabState


def print_labs(states: Sequence[LabState]) -> None:
    """Every lab in a sentence."""
    if not states:
        typer.echo("no lab is up: bring one up, such as `ropewalk lab up torus:4x4 --bandwidth 20Mbps`")
    for state in states:
        fabric = state.fabric
        speeds = [bandwidth / state.scale for _, _, bandwidth, _, _ in fabric.links]
        range_said = " to ".join(dict.fromkeys(show_bandwidth(speed) for speed in (min(speeds), max(speeds))))
        scale = "" if state.scale == 1 else f" (1:{state.scale:g})"
        alive = "up" if state.holder.alive else "dead (take it down)"
        typer.echo(
            f"lab {state.name}: {fabric.name}, {fabric.hosts} hosts, {len(fabric.nodes) - fabric.hosts} switches, "
            f"{len(fabric.links)} links of {range_said}{scale}, routing {state.routing}; {alive}"
        )


def print_run(found: LabAnswer | GlooAnswer, further: Sequence[str]) -> None:
    """The prediction beside the measurement, and the fullest links."""
    from rich import box
    from rich.table import Table

    typer.echo(found.headline())
    for note in (*found.notes(), *further):
        typer.echo(note)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("link", "predicted", "sent", "difference"):
        table.add_column(name, justify="left" if name == "link" else "right", no_wrap=True)
    rows = found.links()
    for row in rows[:MOST_LINKS]:
        difference = f"{100 * (row.sent_bytes / row.predicted_bytes - 1):+.1f} %"
        table.add_row(row.name, show_size(row.predicted_bytes), show_size(row.sent_bytes), difference)
    print_whole(table)
    if len(rows) > MOST_LINKS:
        typer.echo(f"… {len(rows) - MOST_LINKS} more links: --json has all of them")


def print_links(state: LabState, network: LabNetwork, counted: Mapping[int, Counted], *, json: bool) -> None:
    """What every link has sent."""
    rates = {link: network.rate_bits(link) for link in counted} | dict(state.slowed)
    cut = {link for cable in state.cut for link in network.cables[cable].links}
    rows = [
        {
            "link": network.fabric.link_name(link),
            "mbps": 0.0 if link in cut else rates[link] / 1e6,
            "sent_bytes": one.sent_bytes,
            "dropped": one.dropped,
            "waiting_bytes": one.waiting_bytes,
        }
        for link, one in counted.items()
    ]
    if json:
        print_json({"name": state.name, "scale": state.scale, "routing": state.routing, "links": rows})
        return
    from rich import box
    from rich.table import Table

    print_labs([state])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("link", "speed", "sent", "dropped", "waiting"):
        table.add_column(name, justify="left" if name == "link" else "right", no_wrap=True)
    for row, (link, one) in zip(rows, counted.items(), strict=True):
        speed = "down" if link in cut else show_bandwidth(rates[link] / 8)
        waiting = show_size(one.waiting_bytes) if one.waiting_bytes else "0"
        table.add_row(str(row["link"]), speed, show_size(one.sent_bytes), str(one.dropped), waiting)
    print_whole(table)
