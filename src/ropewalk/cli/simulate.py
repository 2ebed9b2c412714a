"""`ropewalk simulate`: how long does this step take on this network, and why?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.idle_options import given, refuse_idle_options
from ropewalk.cli.memory_limit import within_memory
from ropewalk.cli.models import Subject, subject_of
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.overhead_options import OverheadOptions
from ropewalk.cli.packet_options import PacketChoices, refuse_without_packets
from ropewalk.cli.run_graph import GraphRun, run_graph
from ropewalk.cli.run_step import run_chakra, run_model
from ropewalk.cli.step_options import GraphOptions, SplitOptions, TalkOptions, TrainingOptions, WhatIfOptions
from ropewalk.cli.step_outputs import StepOutputs
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.hardware import Cluster
    from ropewalk.plans import Plan
    from ropewalk.sim.level import LevelUse
    from ropewalk.training import NetworkUse, TrainingQuestion


@within_memory
@with_options
def simulate_command(
    context: typer.Context,
    what: str = typer.Argument(
        metavar="WHAT",
        help="A model (a name such as llama-7b, file.py:Class, .onnx, a profile .txt or a workload file), a plan that "
        "--plan wrote, the prefix of a Chakra trace, or a task graph (.yaml, .json, .npz).",
    ),
    *,
    training: TrainingOptions,
    place: ClusterOptions,
    graph: GraphOptions,
    talk: TalkOptions,
    overheads: OverheadOptions,
    packets: PacketChoices,
    what_if: WhatIfOptions,
    outputs: StepOutputs,
) -> None:
    """Simulate a training step on a cluster: compute, exposed communication, bubbles, the bottleneck link.

    Example: `ropewalk simulate llama-7b --gpus 16 --dp 2 --tp 8 --page step.html --trace step.json`

    A plan of any command, at packet level: `ropewalk simulate plan.json --level packet`

    On a cluster: `ropewalk simulate llama-7b --cluster dgx-h100:4 --tp 8`

    Your own task graph: `ropewalk simulate examples/two-layer-step.yaml --fabric switch:4`

    At packet level: `ropewalk simulate examples/two-layer-step.yaml --fabric switch:4 --level packet --transport rdma`
    """
    outputs.check(what, place.cluster, place.fabric)
    subject = subject_of(what)
    refuse_idle_options(context, subject, on_a_cluster=place.cluster is not None)
    refuse_without_packets(context, (talk.level,))

    level = packets.use(talk.level)
    if subject is Subject.TASK_GRAPH:
        symmetry = what_if.symmetry is not False
        run = GraphRun(Path(what), talk.routing, what_if.seed, symmetry, level, outputs)
        run_graph(run, _fabric(place, graph.hosts))
        return
    use = _use(talk, what_if, level, record_rates=outputs.trace is not None)

    def on(cluster: Cluster) -> NetworkUse:
        return replace(use, transport=overheads.transport(cluster, talk.algorithm))

    if subject is Subject.PLAN:
        from ropewalk.plans import read_plan

        plan = read_plan(what)
        run_model(_planned(context, plan, use, what_if), outputs, plan)
    elif subject is Subject.CHAKRA:
        run_chakra(what, lambda ranks: place.of_gpus(ranks, ranks), on, outputs)
    else:
        cluster = place.of_gpus(training.split.gpus, _gpus_of(training.split))
        run_model(_wired(_question(what, training, cluster, on(cluster), what_if)), outputs)


def _use(talk: TalkOptions, what_if: WhatIfOptions, level: LevelUse, *, record_rates: bool) -> NetworkUse:
    from ropewalk.training import NetworkUse

    return NetworkUse(
        talk.routing, talk.algorithm, talk.collectives, seed=what_if.seed, symmetry=bool(what_if.symmetry),
        record_rates=record_rates, level=level,
    )  # fmt: skip


def _gpus_of(split: SplitOptions) -> int:
    from ropewalk.training.question import gpus_of_degrees

    return gpus_of_degrees(split.dp, split.tp, split.pp, split.cp)


def _question(
    what: str, training: TrainingOptions, cluster: Cluster, use: NetworkUse, what_if: WhatIfOptions
) -> TrainingQuestion:
    from ropewalk.strategy.by_stack import as_run_by
    from ropewalk.training import TrainingQuestion
    from ropewalk.workload.zoo.stacks import stack_in

    model, split, stack = training.model, training.split, training.stack
    asked = TrainingQuestion(
        model.named(what, cluster),
        cluster,
        batch=model.batch,
        micro_batch=split.micro_batch,
        sequence=model.seq,
        data=split.dp,
        tensor=split.tp,
        pipeline=split.pp,
        expert=split.ep,
        context=split.cp,
        usual=replace(
            stack.usual(),
            fold_experts=split.fold_experts,
            context_exchange=split.cp_exchange,
            sequence_parallel=split.sp,
            zero=split.zero,
            schedule=split.schedule or ("interleaved" if split.interleave > 1 else "1f1b"),
            interleave=split.interleave,
            recompute=split.recompute,
            order=replace(training.gradients.read(), overlap=stack.overlap_grad_reduce),
            optimiser=model.optimiser,
        ),
        precision=model.dtype,
        network=use,
        order=split.rank_order,
        detail=what_if.detail,
        jitter=what_if.jitter,
        stragglers=_stragglers(what_if),
        memory_check=what_if.memory_check,
    )
    settled = as_run_by(stack_in(str(asked.model)), asked.strategy(), order_given=training.gradients.given)
    return replace(asked, usual=replace(asked.usual, gradient_bytes=settled.gradient_bytes, order=settled.order))


def _wired(question: TrainingQuestion) -> TrainingQuestion:
    """The question itself, or where its cluster has ports to be wired, the question on cables for its step."""
    from ropewalk.hardware import Ports

    if not isinstance(question.place.network, Ports):
        return question
    from ropewalk.codesign.wiring_for import wired

    return wired(question)


def _planned(context: typer.Context, plan: Plan, use: NetworkUse, what_if: WhatIfOptions) -> TrainingQuestion:
    """The question of a plan; what was typed about the network and what if takes the place of what the plan says."""
    from ropewalk.training.planned import question_of

    asked = question_of(plan)
    if what_if.failed:
        from ropewalk.codesign.failure import after_failure

        asked, notes = after_failure(asked, what_if.failed)
        for note in notes:
            typer.echo(note, err=True)
    typed = {name for name in ("algorithm", "routing", "level", "symmetry") if given(context, (name,))}
    written = use.collectives if given(context, ("collectives",)) else asked.network.collectives
    return replace(
        asked,
        network=replace(
            asked.network.written_in(written, asked.place), record_rates=use.record_rates,
            **{name: getattr(use, name) for name in typed},
        ),
        detail=what_if.detail if given(context, ("detail",)) else asked.detail,
        jitter=what_if.jitter,
        stragglers=_stragglers(what_if),
        memory_check=what_if.memory_check,
    )  # fmt: skip


def _fabric(place: ClusterOptions, hosts: int | None) -> Fabric:
    """The fabric of a task graph."""
    from ropewalk.fabric.expression import fabric

    if place.cluster is not None:
        return place.described().fabric()
    if place.fabric is None:
        raise InputError("a task graph runs on a fabric with its own hosts: give --fabric, such as switch:4")
    said = place.given()
    return fabric(place.fabric, bandwidth=said.nic_bandwidth, latency=said.latency_s, hosts=hosts)


def _stragglers(what_if: WhatIfOptions) -> dict[int, float]:
    return dict(_straggler(text) for text in what_if.straggler or ())


def _straggler(text: str) -> tuple[int, float]:
    """`3:1.5`: rank 3 takes half as long again."""
    rank, _, factor = text.partition(":")
    try:
        return int(rank), float(factor)
    except ValueError:
        raise InputError(f"straggler {text!r} is not RANK:FACTOR: write it like 3:1.5") from None
