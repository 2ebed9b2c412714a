"""`ropewalk simulate`: how long does this task graph take on this network, and why?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.screen import FIRST_RUN, JSON, PAGE, console, print_json, progress_bar, require_outputs, write_page
from ropewalk.errors import Findings, GraphError, InputError

if TYPE_CHECKING:
    from ropewalk.sim import Trace


def simulate_command(
    graph: Path = typer.Argument(help="A task graph: .yaml or .json as in the documentation, or .npz."),
    fabric: str = typer.Option(..., help="A builder expression (torus:8x8), a family with --hosts, or a fabric file."),
    hosts: int | None = typer.Option(None, min=1, help="Hosts, where only a family is named."),
    bandwidth: str | None = typer.Option(None, help="Speed of a link per direction, such as 100Gbps."),
    hop_latency: str | None = typer.Option(None, help="Latency of every link on the way, such as 1us."),
    routing: str = typer.Option("default", help="How transfers are routed; see `ropewalk sync --help`."),
    seed: int = typer.Option(0, help="Seed of hashed routing."),
    symmetry: bool = typer.Option(True, help="Simulate one of each class of equal tasks (exact)."),
    trace: Path | None = typer.Option(
        None, metavar="FILE", help="Write a timeline for Perfetto or chrome://tracing (JSON)."
    ),
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """Run a task graph over a fabric at flow level: makespan, critical path, busiest links.

    Example: `ropewalk simulate examples/two-layer-step.yaml --fabric switch:4 --trace timeline.json`
    """
    import numpy as np

    from ropewalk.fabric.expression import fabric as read_fabric
    from ropewalk.routing import ROUTERS, default_router_name
    from ropewalk.sim import simulate
    from ropewalk.task import Kind
    from ropewalk.task.files import load
    from ropewalk.task.plausibility import unit_slips

    require_outputs(trace, page)
    place = read_fabric(
        fabric,
        bandwidth=units.bandwidth(bandwidth) if bandwidth else None,
        latency=units.seconds(hop_latency) if hop_latency else None,
        hosts=hosts,
    )
    tasks = load(graph, place)
    findings = Findings(GraphError, str(graph))
    for slip in unit_slips(tasks, place):
        findings.add(slip)
    findings.raise_if_any()
    router = default_router_name(place) if routing == "default" else routing
    if router not in ROUTERS:
        raise InputError(f"unknown routing {routing!r}: use one of default, {', '.join(ROUTERS)}")
    transfer = np.flatnonzero(tasks.kind == Kind.TRANSFER)
    routes = ROUTERS[router](seed)(place, tasks.place[transfer], tasks.peer[transfer])
    watched = trace is not None or page is not None
    with progress_bar() as bar:
        shown = bar.add_task(FIRST_RUN, total=None)
        result = simulate(
            tasks,
            routes,
            symmetry=symmetry,
            record_rates=watched,
            progress=lambda done, total: bar.update(shown, completed=done, total=total, description="tasks done"),
        )
    if trace is not None:
        from ropewalk.export.chrome import chrome_trace
        from ropewalk.files import write_whole

        write_whole(trace, chrome_trace(result))
        typer.echo(f"timeline: {trace}", err=True)
    if page is not None:
        from ropewalk.report import trace_page

        write_page(page, trace_page(result))
    if json:
        print_json(_as_json(result, router))
    else:
        _print_summary(result, router)


def _as_json(result: Trace, router: str) -> dict[str, object]:
    from dataclasses import asdict

    path = [asdict(step) for step in result.critical_path()]
    return {
        "fabric": result.routes.fabric.name,
        "routing": router,
        **result.summary(),
        "critical_path": path,
    }


def _print_summary(result: Trace, router: str) -> None:
    from rich import box
    from rich.table import Table

    out = console()
    facts = result.summary()
    out.print(
        f"{units.show_seconds(result.makespan)} on {result.routes.fabric.name} ({router}): "
        f"{facts['tasks']} tasks, {facts['classes']} simulated, tax {facts['tax']:.3g}",
        style="bold",
    )
    path = Table(title="critical path", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("from", "to", "what", "where", "held back by"):
        path.add_column(name, justify="right" if name in ("from", "to") else "left")
    steps = result.critical_path()
    for step in steps[-LONGEST:]:
        path.add_row(
            units.show_seconds(step.start_s), units.show_seconds(step.end_s), step.label, step.where,
            step.bottleneck or "",
        )  # fmt: skip
    out.print(path)
    if len(steps) > LONGEST:
        out.print(f"(the last {LONGEST} of {len(steps)} steps; --json has all)", style="dim")
    busy = Table(title="busiest links", title_justify="left", box=box.SIMPLE_HEAD)
    busy.add_column("link")
    busy.add_column("utilisation", justify="right")
    for name, use in result.hottest_links():
        busy.add_row(name, f"{100 * use:.1f} %")
    out.print(busy)


LONGEST = 20
"""Steps of the critical path that are shown on the screen."""
