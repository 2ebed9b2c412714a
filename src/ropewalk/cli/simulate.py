"""`ropewalk simulate`: how long does this step take on this network, and why?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.idle_options import refuse_idle_options
from ropewalk.cli.models import Subject, subject_of
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.packet_options import PacketChoices, refuse_without_packets
from ropewalk.cli.run_graph import GraphRun, run_graph
from ropewalk.cli.run_step import run_chakra, run_model
from ropewalk.cli.step_options import ModelOptions, PlaceOptions, SplitOptions, TalkOptions, WhatIfOptions
from ropewalk.cli.step_outputs import Outputs
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.fabric import Fabric
    from ropewalk.training import NetworkUse, TrainingQuestion

DEFAULT_FABRIC = "leaf-spine"


@with_options
def simulate_command(
    context: typer.Context,
    what: str = typer.Argument(
        metavar="WHAT",
        help="A model (a name such as llama-7b, file.py:Class, .onnx, a profile .txt or a workload file), the prefix "
        "of a Chakra trace, or a task graph (.yaml, .json, .npz).",
    ),
    *,
    model: ModelOptions,
    split: SplitOptions,
    place: PlaceOptions,
    talk: TalkOptions,
    packets: PacketChoices,
    what_if: WhatIfOptions,
    outputs: Outputs,
) -> None:
    """How long a training step takes on a cluster, and why: compute, communication, bubbles, the bottleneck link.

    Example: `ropewalk simulate llama-7b --gpus 16 --dp 2 --tp 8 --page step.html --trace step.json`

    A task graph of your own: `ropewalk simulate examples/two-layer-step.yaml --fabric switch:4`

    Packet by packet: `ropewalk simulate examples/two-layer-step.yaml --fabric switch:4 --level packet --transport rdma`
    """
    outputs.check(what)
    subject = subject_of(what)
    refuse_idle_options(context, subject)
    speeds = Speeds(place)
    refuse_without_packets(context, (talk.level,))

    from ropewalk.sim.level import LevelUse

    level = LevelUse(talk.level, packets.transport, packets.options(), packets.most_events)
    level.check()
    if subject is Subject.TASK_GRAPH:
        symmetry = what_if.symmetry is not False
        run_graph(GraphRun(Path(what), talk.routing, what_if.seed, symmetry, level, outputs), _fabric(place, speeds))
        return

    from ropewalk.training import NetworkUse

    use = NetworkUse(
        talk.routing, talk.algorithm, talk.collectives, seed=what_if.seed, symmetry=bool(what_if.symmetry),
        record_rates=outputs.trace is not None, level=level,
    )  # fmt: skip
    if subject is Subject.CHAKRA:
        gpu = _gpu(place.device)
        run_chakra(what, lambda ranks: _cluster(place, speeds, gpu, ranks), use.settled(gpu), outputs)
    else:
        run_model(_question(what, model, split, place, speeds, use, what_if), outputs)


class Speeds:
    """What was said of links, in numbers; None where nothing was said."""

    def __init__(self, place: PlaceOptions) -> None:
        self.network = None if place.bandwidth is None else units.bandwidth(place.bandwidth)
        self.inside = None if place.nvlink_bandwidth is None else units.bandwidth(place.nvlink_bandwidth)
        self.hop_s = None if place.hop_latency is None else units.seconds(place.hop_latency)


def _question(
    what: str, model: ModelOptions, split: SplitOptions, place: PlaceOptions, speeds: Speeds, use: NetworkUse,
    what_if: WhatIfOptions,
) -> TrainingQuestion:  # fmt: skip
    from ropewalk.strategy import Strategy
    from ropewalk.training import TrainingQuestion

    return TrainingQuestion(
        what,
        gpus=split.gpus,
        batch=model.batch,
        micro_batch=model.micro_batch,
        sequence=model.seq,
        data=split.dp,
        tensor=split.tp,
        pipeline=split.pp,
        expert=split.ep,
        context=split.cp,
        usual=Strategy(
            sequence_parallel=split.sp,
            zero=split.zero,
            schedule=split.schedule or ("interleaved" if split.interleave > 1 else "1f1b"),
            interleave=split.interleave,
            recompute=split.recompute,
            bucket_bytes=units.size(split.bucket),
            optimiser=model.optimiser,
        ),
        device=place.device,
        precision=model.dtype,
        fabric=DEFAULT_FABRIC if place.fabric is None else place.fabric,
        gpus_per_server=place.gpus_per_server,
        bandwidth=speeds.network,
        nvlink_bandwidth=speeds.inside,
        hop_latency_s=speeds.hop_s,
        rails=place.rails,
        network=use,
        order=split.order,
        detail=what_if.detail,
        jitter=what_if.jitter,
        stragglers=dict(_straggler(text) for text in what_if.straggler or ()),
        memory_check=what_if.memory_check,
    )


def _cluster(place: PlaceOptions, speeds: Speeds, gpu: str, ranks: int) -> Fabric:
    from ropewalk.hardware import Given, read_cluster

    given = Given(
        ranks, gpu, place.gpus_per_server, None, speeds.network, speeds.inside, place.fabric, speeds.hop_s, place.rails
    )
    return read_cluster(given=given).fabric()


def _gpu(device: str) -> str:
    """The name of the GPU; a table of measurements tells it by its title."""
    from ropewalk.device.pricer import TABLE_SUFFIXES
    from ropewalk.device.table import read_table
    from ropewalk.fabric.interconnect import gpu_in

    if not device.lower().endswith(TABLE_SUFFIXES):
        return device
    measured = read_table(Path(device)).device
    return gpu_in(measured.title) or measured.name


def _fabric(place: PlaceOptions, speeds: Speeds) -> Fabric:
    """The fabric of a task graph."""
    from ropewalk.fabric.expression import fabric

    if place.fabric is None:
        raise InputError("a task graph runs on a fabric with its own hosts: give --fabric, such as switch:4")
    return fabric(place.fabric, bandwidth=speeds.network, latency=speeds.hop_s, hosts=place.hosts)


def _straggler(text: str) -> tuple[int, float]:
    """`3:1.5`: rank 3 takes half as long again."""
    rank, _, factor = text.partition(":")
    try:
        return int(rank), float(factor)
    except ValueError:
        raise InputError(f"straggler {text!r} is not RANK:FACTOR: write it like 3:1.5") from None
