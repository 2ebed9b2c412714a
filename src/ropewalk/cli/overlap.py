"""`ropewalk overlap`: in which order and in which pieces should gradients be added up?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_shape import equal_servers
from ropewalk.cli.screen import console, print_json, progress_bar, require_outputs, write_page
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from ropewalk.fabric import Fabric
    from ropewalk.overlap.answer import OverlapAnswer
    from ropewalk.overlap.link import Kind
    from ropewalk.overlap.network_runs import NetworkRow
    from ropewalk.overlap.question import OverlapQuestion
    from ropewalk.overlap.study import Advance

MODEL, WHERE, ORDER, NETWORK, FILES = "Model", "Where it runs", "Order", "On a network", "Output"
MOST_GROUPS = 6
"""Groups of the best way that the screen lists."""
KNOWN_AS = {
    "fifo": "first come",
    "buckets": "PyTorch DDP",
    "merged": "MG-WFBP",
    "priority": "ByteScheduler",
    "released": "its defaults",
    "byteps": "BytePS",
    "dear": "DeAR",
    "fused": "PACE",
    "streamed": "PACE, streamed",
}


def overlap_command(
    model: str = typer.Argument(
        help="A name such as vgg16 or bert-large, file.py:Class, .onnx, a profile .txt or a workload file."
    ),
    batch: int | None = typer.Option(
        None, min=1, help="Samples of one GPU; 32, or as many as a file was made for.", rich_help_panel=MODEL
    ),
    seq: int | None = typer.Option(
        None, "--seq", "--sequence", min=1, help="Tokens of a sample.", rich_help_panel=MODEL
    ),
    device: str = typer.Option("h200", help="The GPU.", rich_help_panel=MODEL),
    dtype: str = typer.Option("bf16", help="Precision: bf16, fp16, tf32 or fp32.", rich_help_panel=MODEL),
    optimiser: str = typer.Option("adamw", help="adamw, adamw_fused, momentum, sgd or none.", rich_help_panel=MODEL),
    cluster: str = typer.Option("4x8", help="Servers x GPUs of each.", rich_help_panel=WHERE),
    bandwidth: str | None = typer.Option(
        None, help="Speed of a NIC, each way, such as 25Gbps; as in servers of that GPU unless given.",
        rich_help_panel=WHERE,
    ),
    nics: int | None = typer.Option(
        None, min=1, help="NICs of a server; one where --bandwidth is given.", rich_help_panel=WHERE
    ),
    nvlink: str | None = typer.Option(
        None, "--nvlink", "--nvlink-bandwidth", help="Speed of a GPU inside its server, each way.",
        rich_help_panel=WHERE,
    ),
    latency: str = typer.Option("2us", help="Of a round of a collective.", rich_help_panel=WHERE),
    launch: str = typer.Option(
        "20us", help="What an operation costs besides its rounds and bytes.", rich_help_panel=WHERE
    ),
    sync: str = typer.Option("all-reduce", help="all-reduce, or ps (parameter servers).", rich_help_panel=ORDER),
    servers: int | None = typer.Option(
        None, "--ps-servers", min=1, help="Parameter servers, on hosts of their own; as many as servers of workers "
        "unless given.", rich_help_panel=ORDER,
    ),
    partition: str | None = typer.Option(
        None, help="Largest piece that priorities hand over, such as 4MB; searched unless given.",
        rich_help_panel=ORDER,
    ),
    credit: str | None = typer.Option(
        None, help="Bytes that may be on their way at once; searched unless given.", rich_help_panel=ORDER
    ),
    tune: bool = typer.Option(
        False, "--tune", help="Search both by Bayesian optimisation (needs optuna) instead of over a grid.",
        rich_help_panel=ORDER,
    ),
    seed: int = typer.Option(0, min=0, help="Seed of --tune.", rich_help_panel=ORDER),
    on_network: bool = typer.Option(
        False, "--on-network", help="Run every way on a fabric with the flow simulator, too.", rich_help_panel=NETWORK
    ),
    fabric: str | None = typer.Option(
        None, help="A family (leaf-spine), an expression or a fabric file.  [default: leaf-spine]",
        rich_help_panel=NETWORK,
    ),
    routing: str | None = typer.Option(
        None, help="How transfers are routed; see `ropewalk sync --help`.", rich_help_panel=NETWORK
    ),
    ddp: Path | None = typer.Option(
        None, metavar="FILE", help="Write bucket sizes for PyTorch's DistributedDataParallel: .json or .py.",
        rich_help_panel=FILES,
    ),
    json: bool = typer.Option(
        False, "--json", help="Print one JSON object instead of the table.", rich_help_panel=FILES
    ),
    page: Path | None = typer.Option(
        None, metavar="FILE", help="Write a page with charts (HTML, works offline).", rich_help_panel=FILES
    ),
) -> None:  # fmt: skip
    """The order, groups and pieces in which gradients of a data-parallel step are best added up, against every other.

    Example: `ropewalk overlap vgg16 --batch 32 --device a100 --cluster 4x8 --bandwidth 25Gbps --page overlap.html`
    """
    require_outputs(page, ddp)
    hosts, each = equal_servers(cluster)
    way = _kind(sync)
    if ddp is not None and sync != "all-reduce":
        raise InputError(f"cannot write {ddp}: DistributedDataParallel knows all-reduces only: leave --sync {sync} out")
    if not on_network and (fabric is not None or routing is not None):
        raise InputError("--fabric and --routing would change nothing: give --on-network too, or leave them out")

    from ropewalk.overlap.question import OverlapQuestion
    from ropewalk.overlap.study import answer, over_speeds

    question = OverlapQuestion(
        model,
        servers=hosts,
        gpus_per_server=each,
        batch=batch,
        sequence=seq,
        device=device,
        precision=dtype,
        optimiser=optimiser,
        bandwidth=None if bandwidth is None else units.bandwidth(bandwidth),
        nvlink_bandwidth=None if nvlink is None else units.bandwidth(nvlink),
        nics=nics,
        latency_s=units.seconds(latency),
        launch_s=units.seconds(launch),
        sync=way,
        parameter_servers=servers,
        partition_bytes=None if partition is None else float(units.size(partition)),
        credit_bytes=None if credit is None else float(units.size(credit)),
        tune=tune,
        seed=seed,
    )
    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)

        def advance(done: int, total: int, now: str) -> None:
            bar.update(task, completed=done, total=total, description=now)

        place = _fabric(question, fabric or "leaf-spine") if on_network else None
        found = answer(question, advance)
        network = [] if place is None else _on_fabric(found, place, routing or "default", advance)
        speeds = [] if page is None or hosts == 1 else over_speeds(question, advance=advance)
    if ddp is not None:
        _write_ddp(found, ddp)
    if page is not None:
        from ropewalk.report.overlap import overlap_page

        write_page(page, overlap_page(found, speeds, network, place.name if place else ""))
    if json:
        rows = {row.way: {"model_s": row.model_s, "network_s": row.network_s} for row in network}
        print_json(found.as_json() | ({"fabric": place.name, "on_network": rows} if place else {}))
    else:
        _print(found, page)
        if place is not None:
            console().print(f"step after step on {place.name}:", soft_wrap=True)
            console().print(_network_table(network))


def _write_ddp(found: OverlapAnswer, path: Path) -> None:
    """The best groups for a framework that waits at a barrier, as caps of buckets."""
    from ropewalk.export.ddp import ddp_settings
    from ropewalk.overlap.study import best_behind_a_barrier

    groups, seconds = best_behind_a_barrier(found)
    ddp_settings(found.tensors, groups).write(path)
    usual = units.show_seconds(found.way("buckets").step_s)
    typer.echo(f"ddp: {path} ({len(groups)} buckets: {units.show_seconds(seconds)}, by default {usual})", err=True)


def _fabric(question: OverlapQuestion, network: str) -> Fabric:
    from ropewalk.overlap.network_runs import fabric_for

    return fabric_for(question, network)


def _on_fabric(found: OverlapAnswer, place: Fabric, routing: str, advance: Advance) -> list[NetworkRow]:
    from ropewalk.overlap.network_runs import on_fabric

    return on_fabric(found, place, routing=routing, advance=advance)


def _network_table(rows: list[NetworkRow]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("way", "model", "network", "difference"):
        table.add_column(name, justify="left" if name == "way" else "right", no_wrap=True)
    for row in sorted(rows, key=lambda row: row.network_s):
        table.add_row(
            row.way, units.show_seconds(row.model_s), units.show_seconds(row.network_s), f"{row.deviation:+.3%}"
        )
    return table


def _kind(text: str) -> Kind:
    from ropewalk.overlap.link import Kind

    try:
        return Kind(text)
    except ValueError:
        known = " or ".join(kind.value for kind in Kind)
        raise InputError(f"gradients are not synchronised by {text!r}: write --sync {known}") from None


def _print(found: OverlapAnswer, page: Path | None) -> None:
    say = console().print
    asked, best = found.question, found.best
    say(
        f"{found.tensors.model} on {asked.servers} x {asked.gpus_per_server} GPUs, {asked.sync}: "
        f"{units.show_seconds(best.step_s)} a step with {best.name}, {units.show_seconds(found.bounds.step_s)} at best",
        style="bold",
        soft_wrap=True,
    )
    say(_table(found))
    say(found.why(), soft_wrap=True)
    chosen = found.tuned.best
    say(
        f"priorities: pieces of {units.show_size(chosen.partition_bytes)}, credit "
        f"{units.show_size(chosen.credit_bytes)} ({found.tuned.method})",
        soft_wrap=True,
    )
    for line in _groups(found):
        say(line, soft_wrap=True)
    say(f"costs: {found.tensors.source}", soft_wrap=True)
    for note in found.notes:
        say(f"note: {note}", style="yellow", soft_wrap=True)
    if page is None:
        say("add --page overlap.html for charts, --json for the whole order", style="dim")


def _groups(found: OverlapAnswer) -> list[str]:
    """The first groups of the best way that fuses, in the order in which they are ready."""
    names, sizes, groups = found.tensors.names, found.tensors.size_bytes, found.best.groups.members
    if len(groups) == len(names):
        return ["groups: none, every tensor on its own"]
    lines = []
    for number, group in enumerate(groups[:MOST_GROUPS]):
        ends = names[group[0]] if len(group) == 1 else f"{names[group[0]]} ... {names[group[-1]]} ({len(group)})"
        lines.append(f"group {number}: {units.show_size(float(sizes[list(group)].sum()))}: {ends}")
    if len(groups) > MOST_GROUPS:
        lines.append(f"and {len(groups) - MOST_GROUPS} more groups, all of them in --json")
    return lines


def _table(found: OverlapAnswer) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("way", "known as", "step", "to the best", "waiting", "operations"):
        table.add_column(name, justify="left" if name in ("way", "known as") else "right", no_wrap=True)
    compute = found.tensors.compute_s
    for way in sorted(found.ways, key=lambda way: (way.step_s, way.launches)):
        ratio = "" if way is found.best else f"{way.step_s / found.best.step_s:.3f} x"
        waiting = units.show_seconds(max(0.0, way.step_s - compute))
        table.add_row(
            way.name, KNOWN_AS[way.name], units.show_seconds(way.step_s), ratio, waiting, str(way.launches)
        )  # fmt: skip
    return table
