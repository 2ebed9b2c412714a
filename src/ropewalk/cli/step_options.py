"""Options of `ropewalk simulate` alone: how a model is split, how it communicates, what if."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from ropewalk.cli import model_options
from ropewalk.cli.cluster_options import PLACE
from ropewalk.cli.model_options import ModelOptions
from ropewalk.cli.order_options import OrderOptions
from ropewalk.cli.stack_options import StackOptions

SPLIT, TALK, WHAT_IF = "Parallelism", "Communication", "What if"

MICRO_BATCH = model_options.MICRO_BATCH
GPUS = typer.Option(
    None,
    min=1,
    help="Number of GPUs.  [default: those of the cluster, otherwise the product of the degrees, otherwise 8]",
    rich_help_panel=SPLIT,
)
DP = typer.Option(
    None, "--dp", min=1, help="Data-parallel degree.  [default: the remaining GPUs]", rich_help_panel=SPLIT
)
TP = typer.Option(None, "--tp", min=1, help="Tensor-parallel degree.", rich_help_panel=SPLIT)
PP = typer.Option(None, "--pp", min=1, help="Pipeline-parallel degree (stages).", rich_help_panel=SPLIT)
EP = typer.Option(None, "--ep", min=1, help="Expert-parallel degree.", rich_help_panel=SPLIT)
FOLD_EXPERTS = typer.Option(
    False, "--fold-experts/--no-fold-experts", rich_help_panel=SPLIT,
    help="Spread whole experts over tensor and context ranks as well, not over data ranks only.",
)  # fmt: skip
CP = typer.Option(None, "--cp", min=1, help="Context-parallel degree (parts of a sequence).", rich_help_panel=SPLIT)
CP_EXCHANGE = typer.Option(
    "gather",
    help="How context ranks exchange keys and values in attention: {context-exchanges}.",
    rich_help_panel=SPLIT,
)
SP = typer.Option(
    False, "--sp/--no-sp", help="Sequence parallelism between tensor-parallel regions.", rich_help_panel=SPLIT
)
ZERO = typer.Option(
    0, min=0, max=3, help="ZeRO: shard optimiser (1), gradients (2), weights (3, FSDP).", rich_help_panel=SPLIT
)
SCHEDULE = typer.Option(None, help="Pipeline schedule: {schedules}.", rich_help_panel=SPLIT)
INTERLEAVE = typer.Option(
    1, min=1, help="Model chunks (virtual stages) per pipeline stage; makes 1f1b interleaved.", rich_help_panel=SPLIT
)
RECOMPUTE = typer.Option(
    "none", rich_help_panel=SPLIT,
    help="Recompute in the backward pass: none, selective, full (layers), stage, or parts of blocks (comma-separated): "
    "{recomputed-parts}.",
)  # fmt: skip
RANK_ORDER = typer.Option(
    None, help="Rank order over GPUs, fastest-varying first: tp-cp-ep-dp-pp.", rich_help_panel=SPLIT
)


@dataclass(frozen=True)
class SplitOptions:
    """How a model is spread over GPUs."""

    micro_batch: int | None
    gpus: int | None
    dp: int | None
    tp: int | None
    pp: int | None
    ep: int | None
    fold_experts: bool
    cp: int | None
    cp_exchange: str
    sp: bool
    zero: int
    schedule: str | None
    interleave: int
    recompute: str
    rank_order: str | None


@dataclass(frozen=True)
class TrainingOptions:
    """What is trained, how it is spread over GPUs, what runs it, and the order of its gradients."""

    model: ModelOptions
    split: SplitOptions
    stack: StackOptions
    gradients: OrderOptions


HOSTS = typer.Option(None, min=1, help="Number of hosts of the fabric of a task graph.", rich_help_panel=PLACE)


@dataclass(frozen=True)
class GraphOptions:
    """Where a task graph runs, which brings hosts and not GPUs."""

    hosts: int | None


ALGORITHM = typer.Option(
    "default",
    help="Collectives: default (nccl for the stacks megatron and fsdp2, otherwise ring); one of {collectives}; "
    "one per purpose (data=forest,tensor=ring); or auto: the fastest by simulation, never slower than ring.",
    rich_help_panel=TALK,
)
COLLECTIVES = typer.Option(
    "fluid", help="How collectives run: fluid (all rounds at once) or rounds (one by one).", rich_help_panel=TALK
)
ROUTING = typer.Option("default", help="Routing: default, {routers}.", rich_help_panel=TALK)
LEVEL = typer.Option(
    "flow",
    help="Simulation level of the network: flow (fluid), wire (fluid with headers), packet (every packet), "
    "auto (wire if sufficient, otherwise packet).",
    rich_help_panel=TALK,
)


@dataclass(frozen=True)
class TalkOptions:
    """Collectives, routes, and how finely they are simulated."""

    algorithm: str
    collectives: str
    routing: str
    level: str


JITTER = typer.Option(
    0.0, min=0.0, help="Random variation of every computation: 0.03 is about 3 %.", rich_help_panel=WHAT_IF
)
STRAGGLER = typer.Option(
    None,
    metavar="RANK:FACTOR",
    help="GPU that takes FACTOR times as long. May be repeated.",
    rich_help_panel=WHAT_IF,
)
FAILED = typer.Option(
    None,
    metavar="NAME",
    help="A part of a plan's network that has failed, named as in a cluster file (leaf0-spine1), or a cable of a "
    "wired network (server0-server5). May be repeated.",
    rich_help_panel=WHAT_IF,
)
MEMORY_CHECK = typer.Option(True, help="Refuse strategies that do not fit into GPU memory.", rich_help_panel=WHAT_IF)
SEED = typer.Option(0, min=0, help="Seed of jitter and of hashed routing.", rich_help_panel=WHAT_IF)
DETAIL = typer.Option(
    "auto", help="Simulate layer by layer, or stages as a whole: auto, layer or stage.", rich_help_panel=WHAT_IF
)
SYMMETRY = typer.Option(
    None,
    "--symmetry/--no-symmetry",
    help="Simulate one of each class of equal tasks (exact). [default: on for task graphs, off for steps]",
    rich_help_panel=WHAT_IF,
)


@dataclass(frozen=True)
class WhatIfOptions:
    """What is varied, checked or left out."""

    jitter: float
    straggler: list[str] | None
    failed: list[str] | None
    memory_check: bool
    seed: int
    detail: str
    symmetry: bool | None
