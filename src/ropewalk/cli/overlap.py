"""`ropewalk overlap`: in which order and in which pieces should gradients be added up?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import given, refuse
from ropewalk.cli.model_options import ModelOptions
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.overlap_options import EstimateOptions, NetworkOptions, OrderOptions, Outputs
from ropewalk.cli.overlap_screen import network_table, print_answer
from ropewalk.cli.screen import console, print_json, progress_bar, write_page

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.overlap.answer import OverlapAnswer
    from ropewalk.overlap.network_runs import NetworkRow
    from ropewalk.overlap.question import OverlapQuestion

OF_NETWORKS = ("fabric", "routing", "hop_latency", "rails")
"""Options that the estimate of a single link leaves out of account."""


@with_options
def overlap_command(
    context: typer.Context,
    model: str = typer.Argument(
        help="A name such as vgg16 or bert-large, file.py:Class, .onnx, a profile .txt or a workload file."
    ),
    *,
    what: ModelOptions,
    place: ClusterOptions,
    order: OrderOptions,
    estimate: EstimateOptions,
    network: NetworkOptions,
    outputs: Outputs,
) -> None:
    """The order, groups and pieces in which gradients of a data-parallel step are best added up, against every other.

    Example: `ropewalk overlap vgg16 --batch 1024 --device a100 --cluster 4x8 --bandwidth 25Gbps --page overlap.html`
    """
    outputs.check(order.sync)
    if not network.on_network:
        refuse(given(context, OF_NETWORKS), "only the simulated network knows them, give --on-network too")

    from ropewalk.overlap.study import answer, over_speeds

    question = _question(model, what, place, order, estimate)
    with progress_bar() as bar:
        task = bar.add_task("starting", total=None)

        def advance(done: int, total: int, now: str) -> None:
            bar.update(task, completed=done, total=total, description=now)

        fabric = question.cluster.fabric() if network.on_network else None
        found = answer(question, advance)
        rows: list[NetworkRow] = []
        if fabric is not None:
            from ropewalk.overlap.network_runs import on_fabric

            rows = on_fabric(found, fabric, routing=network.routing or "default", advance=advance)
        speeds = [] if outputs.page is None or question.servers == 1 else over_speeds(question, advance=advance)
    if outputs.ddp is not None:
        _write_ddp(found, outputs.ddp)
    if outputs.page is not None:
        from ropewalk.report.overlap import overlap_page

        write_page(outputs.page, overlap_page(found, speeds, rows, fabric.name if fabric else ""))
    if outputs.json:
        print_json(found.as_json() | _on_network(fabric, rows))
        return
    print_answer(found, outputs.page)
    if fabric is not None:
        console().print(f"step after step on {fabric.name}:", soft_wrap=True)
        console().print(network_table(rows))


def _question(
    model: str, what: ModelOptions, place: ClusterOptions, order: OrderOptions, estimate: EstimateOptions
) -> OverlapQuestion:
    from ropewalk.overlap.question import USUAL_CLUSTER, OverlapQuestion

    return OverlapQuestion(
        model,
        place.read(USUAL_CLUSTER),
        batch=what.batch,
        sequence=what.seq,
        precision=what.dtype,
        optimiser=what.optimiser,
        latency_s=units.seconds(estimate.round_latency),
        launch_s=units.seconds(estimate.launch),
        sync=order.kind,
        parameter_servers=order.ps_servers,
        partition_bytes=order.partition_bytes,
        credit_bytes=order.credit_bytes,
        tune=order.tune,
        seed=order.seed,
    )


def _on_network(fabric: Fabric | None, rows: list[NetworkRow]) -> dict[str, object]:
    if fabric is None:
        return {}
    times = {row.way: {"model_s": row.model_s, "network_s": row.network_s} for row in rows}
    return {"fabric": fabric.name, "on_network": times}


def _write_ddp(found: OverlapAnswer, path: Path) -> None:
    """The best groups for a framework that waits at a barrier, as caps of buckets."""
    from ropewalk.export.ddp import ddp_settings
    from ropewalk.overlap.study import best_behind_a_barrier

    groups, seconds = best_behind_a_barrier(found)
    ddp_settings(found.tensors, groups).write(path)
    usual = units.show_seconds(found.way("buckets").step_s)
    typer.echo(f"ddp: {path} ({len(groups)} buckets: {units.show_seconds(seconds)}, by default {usual})", err=True)
