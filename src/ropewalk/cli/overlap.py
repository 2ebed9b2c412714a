"""`ropewalk overlap`: in which order and in which pieces should gradients be all-reduced?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import given, refuse
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.model_options import ModelOptions
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.overhead_options import OverheadOptions
from ropewalk.cli.overlap_options import OverlapNetworkOptions, OverlapOutputs, SyncOptions
from ropewalk.cli.overlap_screen import print_answer
from ropewalk.cli.packet_options import PacketChoices, refuse_without_packets
from ropewalk.cli.places import refuse_plan
from ropewalk.cli.screen import print_json, shown_progress, write_page

if TYPE_CHECKING:
    from ropewalk.overlap.answer import OverlapAnswer
    from ropewalk.overlap.question import OverlapQuestion
    from ropewalk.overlap.study import SpeedRow


@within_memory
@with_options
def overlap_command(
    context: typer.Context,
    model: str = typer.Argument(
        help="A name such as vgg16 or bert-large, file.py:Class, .onnx, a profile .txt or a workload file."
    ),
    *,
    what: ModelOptions,
    place: ClusterOptions,
    order: SyncOptions,
    network: OverlapNetworkOptions,
    overheads: OverheadOptions,
    packets: PacketChoices,
    outputs: OverlapOutputs,
) -> None:
    """Find the best order, groups and pieces of gradient all-reduces, and compare with published methods.

    Example: `ropewalk overlap vgg16 --batch 1024 --device a100 --cluster 4x8 --bandwidth 25Gbps --page overlap.html`

    The best order as a plan for `ropewalk simulate plan.json`: `ropewalk overlap vgg16 --cluster 4x8 --plan plan.json`
    """
    outputs.check(order.sync, model, place.cluster, place.fabric)
    refuse_plan(model, f"name a model, with --cluster {model}, or run it with `ropewalk simulate`")
    refuse_without_packets(context, (network.level,))
    if not network.simulate:
        refuse(given(context, ("level",)), "estimates have no level: leave --no-simulate out")

    from ropewalk.overlap.study import answer, over_speeds

    question = _question(model, what, place, order, network, overheads, packets)
    with shown_progress() as progress:
        found = answer(question, progress, simulate=network.simulate)
        speeds = [] if outputs.page is None or question.servers == 1 else over_speeds(question, progress=progress)
        progress(0, None, "planning the streamed all-reduce")
        report = found.as_json()  # plans it: nothing is written before everything is known
        page = None if outputs.page is None else _drawn(found, speeds)
    if outputs.plan is not None:
        _write_plan(found, outputs.plan)
    if outputs.ddp is not None:
        _write_ddp(found, outputs.ddp)
    if outputs.page is not None and page is not None:
        write_page(outputs.page, page)
    if outputs.json:
        print_json(report)
        return
    print_answer(found, outputs.page)


def _question(
    model: str,
    what: ModelOptions,
    place: ClusterOptions,
    order: SyncOptions,
    network: OverlapNetworkOptions,
    overheads: OverheadOptions,
    packets: PacketChoices,
) -> OverlapQuestion:
    from ropewalk.overlap.question import USUAL_CLUSTER, OverlapQuestion
    from ropewalk.training import NetworkUse

    level = packets.use(network.level)
    cluster = place.read(USUAL_CLUSTER)
    return OverlapQuestion(
        what.named(model),
        cluster,
        batch=what.batch,
        sequence=what.seq,
        precision=what.dtype,
        optimiser=what.optimiser,
        network=NetworkUse(routing=network.routing, level=level, transport=overheads.transport(cluster)),
        sync=order.kind,
        parameter_servers=order.ps_servers,
        partition_bytes=order.partition_bytes,
        credit_bytes=order.credit_bytes,
        tune=order.tune,
        seed=order.seed,
        through=network.collectives,
    )


def _drawn(found: OverlapAnswer, speeds: list[SpeedRow]) -> str:
    from ropewalk.report.overlap import overlap_page

    return overlap_page(found, speeds)


def _write_plan(found: OverlapAnswer, path: Path) -> None:
    """The best order that a step can run, simulated."""
    from ropewalk.overlap.planned import plan_of
    from ropewalk.plans import write_plan

    plan = plan_of(found)
    write_plan(plan, path)
    typer.echo(f"plan: {path} ({plan.strategy.order.said()})", err=True)


def _write_ddp(found: OverlapAnswer, path: Path) -> None:
    """The best groups for a framework that waits at a barrier, as caps of buckets."""
    from ropewalk.export.ddp import ddp_settings
    from ropewalk.overlap.study import best_behind_a_barrier

    groups, seconds = best_behind_a_barrier(found)
    ddp_settings(found.tensors, groups).write(path)
    usual = units.show_seconds(found.method("buckets").step_s)
    typer.echo(f"ddp: {path} ({len(groups)} buckets: {units.show_seconds(seconds)}, by default {usual})", err=True)
