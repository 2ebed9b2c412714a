"""`ropewalk collective`: how fast can this exchange be on this fabric, and what reaches it?"""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.collective_files import check_exports, export_schedule, format_of, written_schedule
from ropewalk.cli.lists import each
from ropewalk.cli.places import NAMED, fabric_named, group_named, host_named, plan_named
from ropewalk.cli.screen import JSON, PAGE, console, print_json, progress_bar, require_outputs, write_page
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from ropewalk.execute import RunReport
    from ropewalk.fabric import Fabric
    from ropewalk.synthesis import CollectiveAnswer

DEFAULT_SIZES = "1kB,16kB,256kB,4MB,64MB,1GB"


def collective_command(
    kind: str = typer.Argument(
        help="allreduce, allgather, reducescatter, broadcast, reduce or alltoall.", metavar="KIND"
    ),
    fabric: str = typer.Argument(
        help=NAMED,
        metavar="FABRIC",
    ),
    hosts: int | None = typer.Option(None, min=1, help="Hosts, where only a family is named."),
    bandwidth: str | None = typer.Option(None, help="Speed of a link per direction, such as 100Gbps."),
    group: str | None = typer.Option(
        None,
        help="Hosts of the group by name or number, in the order of ranks: 0,1,2; the others only forward. Of a plan "
        "also data, tensor, expert, context or pipeline: its first such group (data:3, the fourth).",
    ),
    root: str | None = typer.Option(None, help="Host that a broadcast starts from or a reduce ends at."),
    shards: str | None = typer.Option(None, help="Parts that ranks bring or end with, such as 1,1,2,0."),
    host_limit: str | None = typer.Option(
        None, help="What a host can send, and as much receive, over all its links; one for all, or one for each host."
    ),
    in_network: bool = typer.Option(False, help="Switches copy and add up (NVLS, SHARP): the bound, without trees."),
    method: str = typer.Option(
        "forest",
        help="How the schedule is made: forest (exact trees), topoadopt (multiplicative weights), fixed (equal trees "
        "for each root), best-ring, breadth-first (fewest rounds) or any other of `ropewalk list collectives`.",
    ),
    trees_per_root: int | None = typer.Option(None, min=1, help="Equal trees of each root; makes the method fixed."),
    epsilon: float = typer.Option(0.05, help="How close multiplicative weights aim: 0.05 for 5 %."),
    size: str = typer.Option("1GiB", help="The buffer: what every rank ends with or starts with."),
    latency: str = typer.Option("10us", help="Start-up of every transfer."),
    sizes: str = typer.Option(DEFAULT_SIZES, help="Sizes for which the fastest schedule is chosen; empty for none."),
    compare: bool = typer.Option(True, help="Simulate the schedule and its alternatives."),
    export: list[Path] = typer.Option(
        [],
        metavar="FILE",
        help="Write the schedule: .json (MSCCL++ plan), .xml (MSCCL), .et (Chakra traces, one a rank), .graph.xml and "
        ".csv (NCCL rings and tuner). May be given several times.",
    ),
    segments: int | None = typer.Option(None, min=1, help="Pipeline segments of what is exported or run."),
    run: bool = typer.Option(False, "--run", help="Run the schedule in local processes (needs torch); check the sums."),
    run_size: str = typer.Option("1kB,1MB", help="Sizes to run."),
    seed: int = typer.Option(0, help="Seed of the data that --run sums."),
    json: bool = JSON,
    page: Path | None = PAGE,
) -> None:
    """The best possible bandwidth of a collective on a fabric, what limits it, and a schedule that reaches it.

    Example: `ropewalk collective allreduce dgx-a100:2 --export plan.json --page collective.html`
    """
    from ropewalk.synthesis import CollectiveQuestion, synthesise

    require_outputs(page, *export)
    for path in export:
        format_of(path)
    if run:
        from ropewalk.execute.torch_extra import require_torch

        require_torch()
    plan = plan_named(fabric)
    found = fabric_named(fabric, plan=plan, bandwidth=bandwidth, hosts=hosts)
    question = CollectiveQuestion(
        kind,
        found,
        group=None if group is None else group_named(group, found, plan),
        root=None if root is None else host_named(found, root),
        shards=None if shards is None else each(shards, _shard),
        host_limits=None if host_limit is None else _limits(found, host_limit),
        in_network=in_network,
        method=_method(method, trees_per_root),
        trees_per_root=trees_per_root,
        epsilon=epsilon,
        size_bytes=units.size(size),
        start_up_s=units.seconds(latency),
        sizes=each(sizes, units.size),
        compare=compare,
    )
    check_exports(question, export, run=run)
    with progress_bar("files that were written before are whole" if export else "nothing was written") as bar:
        task = bar.add_task("starting", total=None)
        say: Callable[[str], None] = lambda now: bar.update(task, description=now)  # noqa: E731
        answer = synthesise(question, say)
        if export:
            say("writing files")
        for line in export_schedule(answer, export, segments):
            bar.console.print(line, soft_wrap=True, highlight=False)
        report = _run(answer, run_size, segments, seed, say) if run else None
    if page is not None:
        from ropewalk.report import collective_page

        write_page(page, collective_page(answer, report))
    if json:
        print_json(answer.as_json() | ({"run": _run_as_json(report)} if report is not None else {}))
    else:
        _print_answer(answer, report, page)
    if report is not None and not report.agrees:
        raise typer.Exit(1)


def _method(named: str, trees_per_root: int | None) -> str:
    """The method that is named; a number of equal trees stands for one of its own."""
    if trees_per_root is None:
        return named
    if named not in ("forest", "fixed"):
        raise InputError(f"{named} has no equal trees for each root: leave --method or --trees-per-root out")
    return "fixed"


def _shard(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"shard {text!r} is no number: write shards like 1,1,2,0 or 1/3,2/3,1") from None


def _limits(fabric: Fabric, text: str) -> tuple[float, ...]:
    limits = each(text, units.bandwidth)
    return limits * fabric.hosts if len(limits) == 1 else limits


def _run(
    answer: CollectiveAnswer, sizes: str, segments: int | None, seed: int, say: Callable[[str], None]
) -> RunReport:
    from ropewalk.execute import run_locally

    schedule = written_schedule(answer, segments)
    say(f"running it in {schedule.program.ranks} processes")
    return run_locally(schedule, answer.question.collective, sizes=each(sizes, units.size), seed=seed)


def _run_as_json(report: RunReport) -> dict[str, object]:
    """What came of a run; sizes are bytes, times seconds."""
    rows = [{**asdict(row), "agrees": row.agrees} for row in report.rows]
    return {**asdict(report), "agrees": report.agrees, "rows": rows}


def _print_answer(answer: CollectiveAnswer, report: RunReport | None, page: Path | None) -> None:
    out = console()
    _print_facts(out, answer)
    if answer.alternatives:
        _print_alternatives(out, answer)
    if answer.by_size:
        _print_sizes(out, answer)
    if report is not None:
        _print_report(out, report)
    for note in answer.notes:
        out.print(f"note: {note}", style="dim")
    if page is None:
        out.print(
            "add --page collective.html for charts, --json for numbers, --export plan.json for a plan", style="dim"
        )


def _print_facts(out: Console, answer: CollectiveAnswer) -> None:
    from rich.table import Table
    from rich.text import Text

    from ropewalk.synthesis.words import gigabytes, limit_of

    question, best = answer.question, answer.made
    title = f"{question.collective} over {answer.ranks} ranks of {answer.fabric.name}"
    table = Table(show_header=False, box=None, title=Text(title), title_justify="left", title_style="bold")
    table.add_row("at best", f"{gigabytes(answer.optimum.algbw)} ({answer.optimum.method})")
    table.add_row("1/x*", f"{answer.inverse_rate} s/GB")
    table.add_row("limited by", limit_of(answer).sentence)
    if best is not None:
        table.add_row("schedule", f"{best.name}: {gigabytes(best.algbw)}, {best.shape}")
        time = units.show_seconds(answer.seconds)
        table.add_row(units.show_size(question.size_bytes), time + _in_segments(answer))
    if answer.guarantee is not None:
        table.add_row("proved", f"at least {float(answer.guarantee):.2%} of what is possible")
    if answer.simulated_algbw is not None:
        table.add_row("simulated", f"{gigabytes(answer.simulated_algbw)}{_in_segments(answer)}, start-ups aside")
    table.add_row("found in", units.show_seconds(answer.seconds_to_synthesise))
    out.print(table)


def _in_segments(answer: CollectiveAnswer) -> str:
    return f" in {answer.segments} segments" if answer.segments > 1 else ""


def _print_alternatives(out: Console, answer: CollectiveAnswer) -> None:
    from rich import box
    from rich.table import Table

    from ropewalk.synthesis.words import gigabytes

    size = units.show_size(answer.question.size_bytes)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title_justify="left", caption_justify="left",
                  title="on the same fabric", caption="algbw: large buffers, simulated without start-ups")  # fmt: skip
    for name in ("", "algbw", "of the optimum", size):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    best = float(answer.optimum.algbw)
    if answer.made is not None:
        table.add_row(answer.made.name, gigabytes(float(answer.algbw)), _percent(float(answer.algbw) / best),
                      units.show_seconds(answer.seconds), style="bold")  # fmt: skip
    known = [other for other in answer.alternatives if other.algbw is not None]
    for other in sorted(known, key=lambda other: -(other.algbw or 0.0)):
        assert other.algbw is not None
        assert other.seconds is not None
        table.add_row(
            other.name, gigabytes(other.algbw), _percent(other.algbw / best), units.show_seconds(other.seconds)
        )
    out.print(table)
    for other in answer.alternatives:
        if other.reason:
            out.print(f"left out: {other.name}: {other.reason}", style="dim")


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _print_sizes(out: Console, answer: CollectiveAnswer) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title="fastest by size", title_justify="left")
    for name in ("size", "fastest", "time", "next best"):
        table.add_column(name, justify="left" if name in ("fastest", "next best") else "right", no_wrap=True)
    for row in answer.by_size:
        others = sorted((seconds, name) for name, seconds in row.all_seconds.items() if name != row.name)
        runner_up = f"{others[0][1]} {units.show_seconds(others[0][0])}" if others else "–"
        table.add_row(units.show_size(row.size_bytes), row.name, units.show_seconds(row.seconds), runner_up)
    out.print(table)


def _print_report(out: Console, report: RunReport) -> None:
    verdict = "agrees with" if report.agrees else "DIFFERS from"
    out.print(f"ran {report.program} in {report.ranks} processes: it {verdict} torch.distributed", style="bold")
    for row in report.rows:
        error = "bit for bit" if row.max_error == 0 else f"largest difference {row.max_error:.3g}"
        out.print(f"  {row.dtype} {units.show_size(row.size_bytes)}: {error}; {units.show_seconds(row.seconds)} "
                  f"(torch's own {units.show_seconds(row.torch_seconds)})")  # fmt: skip
