"""`ropewalk simulate`: how long does this step take on this network, and why?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ropewalk import units
from ropewalk.cli.idle_options import refuse_idle_options
from ropewalk.cli.models import Subject, subject_of
from ropewalk.cli.packet_options import (
    BUFFER,
    ECN,
    MIN_RTO,
    MOST_EVENTS,
    PAYLOAD,
    QUEUE,
    REDUCE,
    SPREAD,
    TRANSPORT,
    packet_options,
    refuse_without_packets,
)  # fmt: skip
from ropewalk.cli.run_graph import GraphRun, run_graph
from ropewalk.cli.run_step import Outputs, run_chakra, run_model
from ropewalk.errors import InputError

DEFAULT_FABRIC = "leaf-spine"


MODEL, SPLIT, PLACE, TALK, WHAT_IF, FILES = (
    "Model", "How it is split", "Where it runs", "How it communicates", "What if", "Output",
)  # fmt: skip


def simulate_command(
    context: typer.Context,
    what: str = typer.Argument(
        metavar="WHAT",
        help="A model (a name such as llama-7b, file.py:Class, .onnx, a profile .txt or a workload file), the prefix "
        "of a Chakra trace, or a task graph (.yaml, .json, .npz).",
    ),
    batch: int | None = typer.Option(
        None, min=1, help="Samples of the whole step; one micro-batch a GPU unless given.", rich_help_panel=MODEL
    ),
    micro_batch: int | None = typer.Option(None, min=1, help="Samples of a micro-batch.", rich_help_panel=MODEL),
    seq: int | None = typer.Option(
        None, "--seq", "--sequence", min=1, help="Tokens of a sample.", rich_help_panel=MODEL
    ),
    dtype: str = typer.Option("bf16", help="Precision: bf16, fp16, tf32 or fp32.", rich_help_panel=MODEL),
    optimiser: str = typer.Option("adamw", help="adamw, adamw_fused, momentum, sgd or none.", rich_help_panel=MODEL),
    gpus: int | None = typer.Option(
        None, min=1, help="GPUs; the product of the degrees, or 8, unless given.", rich_help_panel=SPLIT
    ),
    dp: int | None = typer.Option(
        None, "--dp", min=1, help="Data parallel; what the others leave unless given.", rich_help_panel=SPLIT
    ),
    tp: int | None = typer.Option(None, "--tp", min=1, help="Tensor parallel.", rich_help_panel=SPLIT),
    pp: int | None = typer.Option(None, "--pp", min=1, help="Pipeline stages.", rich_help_panel=SPLIT),
    ep: int | None = typer.Option(
        None, "--ep", min=1, help="Data ranks that the experts are spread over.", rich_help_panel=SPLIT
    ),
    cp: int | None = typer.Option(
        None, "--cp", min=1, help="Context parallel: parts of a sequence.", rich_help_panel=SPLIT
    ),
    sp: bool = typer.Option(
        False, "--sp/--no-sp", help="Sequence parallel between tensor-parallel regions.", rich_help_panel=SPLIT
    ),
    zero: int = typer.Option(
        0, min=0, max=3, help="ZeRO: shard optimiser (1), gradients (2), weights (3, FSDP).", rich_help_panel=SPLIT
    ),
    schedule: str | None = typer.Option(
        None, help="Pipeline schedule: 1f1b, gpipe or interleaved.", rich_help_panel=SPLIT
    ),
    interleave: int = typer.Option(
        1, min=1, help="Pieces of the model on each stage; makes 1f1b interleaved.", rich_help_panel=SPLIT
    ),
    recompute: str = typer.Option(
        "none", help="Compute again in the backward pass: none, selective or full.", rich_help_panel=SPLIT
    ),
    bucket: str = typer.Option("25MiB", help="Gradients that are summed at once.", rich_help_panel=SPLIT),
    order: str | None = typer.Option(
        None, help="Order of ranks over GPUs, fastest first: tp-cp-ep-dp-pp.", rich_help_panel=SPLIT
    ),
    device: str = typer.Option(
        "h200", help="The GPU, or a table that `ropewalk profile` wrote.", rich_help_panel=PLACE
    ),
    gpus_per_server: int | None = typer.Option(
        None, min=1, help="As in servers of that GPU unless given.", rich_help_panel=PLACE
    ),
    fabric: str | None = typer.Option(
        None,
        help="A family (leaf-spine), an expression (torus:8x8), or a fabric file.  [default: leaf-spine]",
        rich_help_panel=PLACE,
    ),
    bandwidth: str | None = typer.Option(
        None, help="Speed of a NIC and a network link, each way, such as 400Gbps.", rich_help_panel=PLACE
    ),
    nvlink_bandwidth: str | None = typer.Option(
        None, help="Speed of a GPU inside its server, each way.", rich_help_panel=PLACE
    ),
    hop_latency: str | None = typer.Option(
        None, help="Latency of every network link, such as 1us.", rich_help_panel=PLACE
    ),
    rails: bool = typer.Option(
        False, "--rails/--no-rails", help="NIC i of all servers goes to the same leaf.", rich_help_panel=PLACE
    ),
    hosts: int | None = typer.Option(None, min=1, help="Hosts of the fabric of a task graph.", rich_help_panel=PLACE),
    algorithm: str = typer.Option(
        "ring", help="Collectives: ring, hierarchical, halving-doubling or mesh.", rich_help_panel=TALK
    ),
    collectives: str = typer.Option(
        "fluid", help="fluid (rounds of a collective together) or rounds (one by one).", rich_help_panel=TALK
    ),
    routing: str = typer.Option(
        "default", help="How transfers are routed; see `ropewalk sync --help`.", rich_help_panel=TALK
    ),
    level: str = typer.Option(
        "flow",
        help="How finely the network is simulated: flow (fluid), wire (fluid with headers), packet (every packet), "
        "auto (wire or packet, whichever is enough).",
        rich_help_panel=TALK,
    ),
    transport: str = TRANSPORT,
    buffer: str | None = BUFFER,
    queue: str | None = QUEUE,
    ecn: str | None = ECN,
    payload: str | None = PAYLOAD,
    min_rto: str | None = MIN_RTO,
    spread: str | None = SPREAD,
    reduce: str | None = REDUCE,
    most_events: float = MOST_EVENTS,
    jitter: float = typer.Option(
        0.0, min=0.0, help="Random spread of every computation: 0.03 is about 3 %.", rich_help_panel=WHAT_IF
    ),
    straggler: list[str] | None = typer.Option(
        None,
        metavar="RANK:FACTOR",
        help="A GPU that computes FACTOR times as long; may be repeated.",
        rich_help_panel=WHAT_IF,
    ),
    memory_check: bool = typer.Option(
        True, help="Refuse what does not fit into the memory of the GPU.", rich_help_panel=WHAT_IF
    ),
    seed: int = typer.Option(0, min=0, help="Seed of jitter and of hashed routing.", rich_help_panel=WHAT_IF),
    detail: str = typer.Option(
        "auto", help="Simulate layer by layer, or stages as a whole: auto, layer or stage.", rich_help_panel=WHAT_IF
    ),
    symmetry: bool | None = typer.Option(
        None,
        "--symmetry/--no-symmetry",
        help="Simulate one of each class of equal tasks (exact). On for task graphs, off for steps unless given.",
        rich_help_panel=WHAT_IF,
    ),
    trace: Path | None = typer.Option(
        None, metavar="FILE", help="Write a timeline for Perfetto or chrome://tracing (JSON).", rich_help_panel=FILES
    ),
    chakra: Path | None = typer.Option(
        None, metavar="PREFIX", help="Write the step as a Chakra execution trace.", rich_help_panel=FILES
    ),
    tasks: Path | None = typer.Option(
        None, metavar="FILE", help="Write all tasks as a table: .csv or .parquet.", rich_help_panel=FILES
    ),
    page: Path | None = typer.Option(
        None, metavar="FILE", help="Write a page with charts (HTML, works offline).", rich_help_panel=FILES
    ),
    json: bool = typer.Option(
        False, "--json", help="Print one JSON object instead of the table.", rich_help_panel=FILES
    ),
) -> None:
    """How long a training step takes on a cluster, and why: compute, communication, bubbles, the bottleneck link.

    Example: `ropewalk simulate llama-7b --gpus 16 --dp 2 --tp 8 --page step.html --trace step.json`

    A task graph of your own: `ropewalk simulate examples/two-layer-step.yaml --fabric switch:4`

    Packet by packet: `ropewalk simulate examples/two-layer-step.yaml --fabric switch:4 --level packet --transport rdma`
    """
    outputs = Outputs(trace, chakra, tasks, page, json)
    outputs.check(what)
    subject = subject_of(what)
    refuse_idle_options(context, subject)
    speed = None if bandwidth is None else units.bandwidth(bandwidth)
    delay = None if hop_latency is None else units.seconds(hop_latency)
    place = DEFAULT_FABRIC if fabric is None else fabric
    refuse_without_packets(context, (level,))

    from ropewalk.sim.level import LevelUse

    how = LevelUse(level, transport, packet_options(buffer, queue, ecn, payload, min_rto, spread, reduce), most_events)
    how.check()
    if subject is Subject.TASK_GRAPH:
        run_graph(
            GraphRun(Path(what), routing, seed, symmetry is not False, trace, tasks, page, json, how),
            _fabric_of_graph(fabric, speed, delay, hosts),
        )
        return

    from ropewalk.fabric.servers import cluster
    from ropewalk.strategy import Strategy
    from ropewalk.training import NetworkUse, TrainingQuestion

    inside = None if nvlink_bandwidth is None else units.bandwidth(nvlink_bandwidth)
    use = NetworkUse(
        routing, algorithm, collectives, seed=seed, symmetry=bool(symmetry), record_rates=trace is not None, level=how
    )
    if subject is Subject.CHAKRA:
        gpu = _gpu(device)
        run_chakra(
            what,
            lambda ranks: cluster(
                place, ranks, gpu=gpu, gpus_per_server=gpus_per_server, bandwidth=speed,
                nvlink_bandwidth=inside, latency=delay, rails=rails,
            ),
            use.settled(gpu),
            outputs,
        )  # fmt: skip
        return
    run_model(
        TrainingQuestion(
            what,
            gpus=gpus,
            batch=batch,
            micro_batch=micro_batch,
            sequence=seq,
            data=dp,
            tensor=tp,
            pipeline=pp,
            expert=ep,
            context=cp,
            usual=Strategy(
                sequence_parallel=sp,
                zero=zero,
                schedule=schedule or ("interleaved" if interleave > 1 else "1f1b"),
                interleave=interleave,
                recompute=recompute,
                bucket_bytes=units.size(bucket),
                optimiser=optimiser,
            ),
            device=device,
            precision=dtype,
            fabric=place,
            gpus_per_server=gpus_per_server,
            bandwidth=speed,
            nvlink_bandwidth=inside,
            hop_latency_s=delay,
            rails=rails,
            network=use,
            order=order,
            detail=detail,
            jitter=jitter,
            stragglers=dict(_straggler(text) for text in straggler or ()),
            memory_check=memory_check,
        ),
        outputs,
    )


def _gpu(device: str) -> str:
    """The name of the GPU; a table of measurements tells it by its title."""
    from ropewalk.device.pricer import TABLE_SUFFIXES
    from ropewalk.device.table import read_table
    from ropewalk.fabric.interconnect import gpu_in

    if not device.lower().endswith(TABLE_SUFFIXES):
        return device
    measured = read_table(Path(device)).device
    return gpu_in(measured.title) or measured.name


def _fabric_of_graph(text: str | None, bandwidth: float | None, latency: float | None, hosts: int | None) -> Any:
    from ropewalk.fabric.expression import fabric as read_fabric

    if text is None:
        raise InputError("a task graph runs on a fabric with its own hosts: give --fabric, such as switch:4")
    return read_fabric(text, bandwidth=bandwidth, latency=latency, hosts=hosts)


def _straggler(text: str) -> tuple[int, float]:
    """`3:1.5`: rank 3 takes half as long again."""
    rank, _, factor = text.partition(":")
    try:
        return int(rank), float(factor)
    except ValueError:
        raise InputError(f"straggler {text!r} is not RANK:FACTOR: write it like 3:1.5") from None
