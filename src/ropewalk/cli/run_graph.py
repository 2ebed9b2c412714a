"""A task graph on a fabric, from the command line: makespan, critical path, busiest links."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.run_step import write_table
from ropewalk.cli.screen import console, print_json, shown_progress, write_page
from ropewalk.cli.step_outputs import StepOutputs
from ropewalk.errors import Findings, GraphError
from ropewalk.progress import counting

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.sim import Trace
    from ropewalk.sim.level import LevelRun, LevelUse

LONGEST = 20
"""Steps of the critical path that are shown on the screen."""


@dataclass(frozen=True)
class GraphRun:
    """How to run a task graph and what to write about it."""

    graph: Path
    routing: str
    seed: int
    symmetry: bool
    level: LevelUse
    outputs: StepOutputs


def run_graph(asked: GraphRun, place: Fabric) -> None:
    import numpy as np

    from ropewalk.routing import router_for
    from ropewalk.sim.level import run_at_level
    from ropewalk.task import TaskKind
    from ropewalk.task.files import load
    from ropewalk.task.plausibility import unit_slips

    tasks = load(asked.graph, place)
    findings = Findings(GraphError, str(asked.graph))
    for slip in unit_slips(tasks, place):
        findings.add(slip)
    findings.raise_if_any()
    router = router_for(place, asked.routing)
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    routes = router.make(asked.seed)(place, tasks.place[transfer], tasks.peer[transfer])
    watched = asked.outputs.trace is not None or asked.outputs.page is not None
    with shown_progress() as progress:
        run = run_at_level(
            tasks,
            routes,
            asked.level,
            routing=router.name,
            seed=asked.seed,
            symmetry=asked.symmetry,
            record_rates=watched,
            progress=counting(progress, "tasks done"),
        )
    _write(asked.outputs, run)
    if asked.outputs.json:
        print_json({**_as_json(run.trace, router.name), **run.as_json()})
    else:
        _print_summary(run.trace, router.name)
        for sentence in run.sentences():
            console().print(sentence, soft_wrap=True)


def _write(outputs: StepOutputs, run: LevelRun) -> None:
    result = run.trace
    if outputs.trace is not None:
        from ropewalk.export.chrome import chrome_trace
        from ropewalk.files import write_whole

        write_whole(outputs.trace, chrome_trace(result))
        typer.echo(f"timeline: {outputs.trace}", err=True)
    if outputs.tasks is not None:
        write_table(result, outputs.tasks)
    if outputs.page is not None:
        from ropewalk.report import trace_page

        write_page(outputs.page, trace_page(result, run))


def _as_json(result: Trace, router: str) -> dict[str, object]:
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
    for name in ("from", "to", "what", "where", "waits for"):
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
