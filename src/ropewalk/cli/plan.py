"""`ropewalk plan`: how should I wire the network and split the model, together?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.screen import FIRST_RUN, console, progress_bar, require_outputs, write_page
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.codesign.answer import PlanAnswer
    from ropewalk.codesign.design import Design
    from ropewalk.codesign.question import PlanQuestion

WHERE, SEARCH, AGAINST, FILES = "Servers and cables", "Search", "Comparison", "Files and output"


@dataclass(frozen=True)
class Outputs:
    """Files to write about a plan, and whether the screen gets JSON."""

    plan: Path | None
    page: Path | None
    patch: Path | None
    tables: Path | None
    json: bool


def plan_command(
    model: str | None = typer.Argument(
        None,
        help="dlrm, candle, bert, ncf, resnet50 or vgg16 of the published study, or any model of `ropewalk simulate`.",
    ),
    servers: int = typer.Option(16, help="Servers that train the model.", rich_help_panel=WHERE),
    degree: int = typer.Option(4, help="Network ports of a server.", rich_help_panel=WHERE),
    bandwidth: str = typer.Option("100Gbps", help="Speed of a port, each way.", rich_help_panel=WHERE),
    hop_latency: str = typer.Option(
        "1us", help="Latency of every link; each round of a sum pays it.", rich_help_panel=WHERE
    ),
    gpus_per_server: int = typer.Option(4, help="GPUs of a server.", rich_help_panel=WHERE),
    device: str = typer.Option(
        "a100", help="The GPU: {devices}, or a table that `ropewalk profile` wrote.", rich_help_panel=WHERE
    ),
    dtype: str = typer.Option("tf32", help="Precision: bf16, fp16, tf32 or fp32.", rich_help_panel=WHERE),
    batch: int | None = typer.Option(
        None, help="Samples of one GPU in a step; the published number unless given.", rich_help_panel=WHERE
    ),
    duplex: bool = typer.Option(
        True,
        "--duplex/--simplex",
        help="Cables both ways (a ring takes two ports), or one way (a sending and a receiving one).",
        rich_help_panel=WHERE,
    ),
    single_panel: bool = typer.Option(
        False,
        "--single-panel",
        help="All ports on one large panel, instead of port i of every server on panel i.",
        rich_help_panel=WHERE,
    ),
    prime_only: bool = typer.Option(
        False, "--prime-only", help="Only rings whose jump is 1 or prime.", rich_help_panel=SEARCH
    ),
    selection: str = typer.Option(
        "best", help="Which rings: best (fewest hops found) or paper (the geometric rule).", rich_help_panel=SEARCH
    ),
    allow: str = typer.Option(
        "", help="Beyond the published search space: tensor, expert, pipeline.", rich_help_panel=SEARCH
    ),
    budget: int = typer.Option(2000, help="Proposals of one chain in one round.", rich_help_panel=SEARCH),
    chains: int = typer.Option(4, help="Independent chains in a round.", rich_help_panel=SEARCH),
    rounds: int = typer.Option(4, help="Alternations of strategy and topology at most.", rich_help_panel=SEARCH),
    seed: int = typer.Option(0, help="Seed of everything random.", rich_help_panel=SEARCH),
    engine: str = typer.Option(
        "processes", help="Where chains run: processes, or ray (an existing cluster).", rich_help_panel=SEARCH
    ),
    compare: str = typer.Option(
        "ideal-switch,fat-tree",
        help="all, none, or names: ideal-switch, fat-tree, fat-tree-ecmp, oversubscribed, expander, torus, sip-ml, "
        "ocs-reconfig, ocs-reconfig-no-relay (ocs-reconfig:100us for another delay).",
        rich_help_panel=AGAINST,
    ),
    prices: str = typer.Option("mixnet", help="Price list of the network.", rich_help_panel=AGAINST),
    again: Path | None = typer.Option(
        None, "--from", metavar="FILE", help="Run the plan of a plan.json again and compare.", rich_help_panel=FILES
    ),
    plan: Path | None = typer.Option(
        None, "--plan", metavar="FILE", help="Write the plan (JSON); it reruns to the same bytes.",
        rich_help_panel=FILES,
    ),
    page: Path | None = typer.Option(
        None, metavar="FILE", help="Write a page with charts (HTML, works offline).", rich_help_panel=FILES
    ),
    patch: Path | None = typer.Option(
        None, metavar="FILE", help="Write which port goes where on the patch panels (CSV).", rich_help_panel=FILES
    ),
    tables: Path | None = typer.Option(
        None, metavar="FILE", help="Write the forwarding tables of all servers (CSV).", rich_help_panel=FILES
    ),
    json: bool = typer.Option(
        False, "--json", help="Print one JSON object instead of the table.", rich_help_panel=FILES
    ),
) -> None:  # fmt: skip
    """The wiring, routes, strategy and placement found for a model on servers with ports, against other networks.

    Example: `ropewalk plan dlrm --servers 16 --degree 4 --bandwidth 100Gbps --compare all --page plan.html`
    """
    outputs = Outputs(plan, page, patch, tables, json)
    require_outputs(plan, page, patch, tables)
    if (model is None) == (again is None):
        raise InputError("name a model to plan for, or a plan to run again with --from: one of the two")

    from ropewalk.codesign.question import PlanQuestion

    if again is not None:
        _rerun(again, engine, outputs)
        return
    assert model is not None
    question = PlanQuestion(
        model,
        servers=servers,
        degree=degree,
        bandwidth=units.bandwidth(bandwidth),
        latency_s=units.seconds(hop_latency),
        gpus_per_server=gpus_per_server,
        device=device,
        precision=dtype,
        batch=batch,
        duplex=duplex,
        single_panel=single_panel,
        prime_only=prime_only,
        selection=selection,
        allow=split(allow),
        budget=budget,
        chains=chains,
        rounds=rounds,
        compare=() if compare == "none" else not_empty(split(compare), "--compare"),
        prices=prices,
        seed=seed,
    )
    _finish(_answered(question, engine), outputs)


def _answered(question: PlanQuestion, engine: str) -> PlanAnswer:
    from ropewalk.codesign.plan import plan

    with progress_bar() as bar:
        task = bar.add_task(FIRST_RUN, total=None)
        return plan(
            question,
            engine=engine,
            advance=lambda done, total, now: bar.update(task, completed=done, total=total, description=now),
        )


def _rerun(path: Path, engine: str, outputs: Outputs) -> None:
    from ropewalk.codesign.design import read_design

    before = read_design(path)
    answer = _answered(before.question, engine)
    same = answer.design.dumps() == before.dumps()
    _finish(answer, outputs)
    if not same:
        raise InputError(
            f"{path} does not rerun to the same plan: it was written by ropewalk {before.version} or changed since; "
            "take the plan above, written with --plan"
        )
    typer.echo(f"{path} reruns to the same plan", err=True)


def _finish(answer: PlanAnswer, outputs: Outputs) -> None:
    """Write the files, print the table or the JSON."""
    from ropewalk.files import write_whole

    design = answer.design
    if outputs.plan is not None:
        write_whole(outputs.plan, design.dumps())
        typer.echo(f"plan: {outputs.plan}", err=True)
    if outputs.patch is not None:
        from ropewalk.export.wiring import patch_csv

        write_whole(outputs.patch, patch_csv(design.wiring, single_panel=design.question.single_panel))
        typer.echo(f"patch list: {outputs.patch}", err=True)
    if outputs.tables is not None:
        from ropewalk.export.wiring import tables_csv

        write_whole(outputs.tables, tables_csv(answer.timed.run.trace.routes))
        typer.echo(f"forwarding tables: {outputs.tables}", err=True)
    if outputs.page is not None:
        from ropewalk.report.design import design_page

        write_page(outputs.page, design_page(answer))
    if outputs.json:
        typer.echo(design.dumps(), nl=False)
    else:
        _print(design, outputs)


def _print(design: Design, outputs: Outputs) -> None:
    say = console().print
    asked, wiring = design.question, design.wiring
    ports = f"{wiring.degree} x {units.show_bandwidth(wiring.bandwidth)}"
    say(
        f"{asked.model} on {wiring.servers} servers with {ports} ({'duplex' if wiring.duplex else 'simplex'}): "
        f"{units.show_seconds(design.step_time_s)} a step",
        style="bold",
        soft_wrap=True,
    )
    say(_table(design))
    for rings in wiring.rings:
        own = "" if rings.wired else ", over the cables of others"
        say(f"rings of {rings.size}: {', '.join(f'+{jump}' for jump in rings.jumps)}{own}", soft_wrap=True)
    say(
        f"ports: {wiring.degree_sums} for rings, {wiring.degree_pairs} for pairs; routes: "
        f"{design.routes.mean_hops:.2f} hops mean, {design.routes.max_hops} most; tax {design.tax:.3f}",
        soft_wrap=True,
    )
    say(
        f"traffic of a step: {units.show_size(design.allreduce_bytes)} of sums, "
        f"{units.show_size(design.mp_bytes)} between pairs",
        soft_wrap=True,
    )
    seats = [f"{count} x {what}" for what, count in _seats(design).items()]
    say(f"layers: {', '.join(seats)}", soft_wrap=True)
    say(_search_in_words(design), soft_wrap=True)
    for note in design.notes:
        say(f"note: {note}", style="yellow", soft_wrap=True)
    if outputs.plan is None or outputs.page is None:
        say(
            "add --plan plan.json to keep it, --page plan.html for charts, --patch and --tables to build it",
            style="dim",
        )


def _search_in_words(design: Design) -> str:
    """The starts in one number, then whatever was the best so far."""
    starts = [turn.seconds for turn in design.history if turn.plane == "start"]
    better = [turn for turn in design.history if turn.best and turn.plane != "start"]
    steps = [f"best of {len(starts)} starts {units.show_seconds(min(starts))}"] if starts else []
    steps += [f"{turn.plane} {units.show_seconds(turn.seconds)}" for turn in better]
    return f"search ({design.ended}, {len(design.history)} turns): {' -> '.join(steps)}"


def _table(design: Design) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("network", "step", "to the plan", "cost", "to the plan's"):
        table.add_column(name, justify="left" if name == "network" else "right", no_wrap=True)
    table.add_row("plan", units.show_seconds(design.step_time_s), "", f"${design.cost:,.0f}", "")
    for name, row in design.baselines.items():
        table.add_row(
            name,
            units.show_seconds(row.step_time_s),
            f"{design.speed_up(name):.2f} x",
            f"${row.cost:,.0f}",
            f"{row.cost / design.cost:.2f} x",
        )
    return table


def _seats(design: Design) -> dict[str, int]:
    """How many layers sit in which manner on how many servers."""
    found: dict[str, int] = {}
    for seat in design.seating.seats:
        what = f"{seat.manner.value} on {seat.degree}"
        found[what] = found.get(what, 0) + 1
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))
