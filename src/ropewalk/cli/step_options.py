"""Options of `ropewalk simulate` alone: how a model is split, how it communicates, what if."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from ropewalk.cli import model_options
from ropewalk.cli.cluster_options import PLACE

SPLIT, TALK, WHAT_IF = "How it is split", "How it communicates", "What if"

MICRO_BATCH = model_options.MICRO_BATCH
GPUS = typer.Option(
    None, min=1, help="GPUs; those of the cluster, or the product of the degrees, or 8.", rich_help_panel=SPLIT
)
DP = typer.Option(None, "--dp", min=1, help="Data parallel; what the others leave unless given.", rich_help_panel=SPLIT)
TP = typer.Option(None, "--tp", min=1, help="Tensor parallel.", rich_help_panel=SPLIT)
PP = typer.Option(None, "--pp", min=1, help="Pipeline stages.", rich_help_panel=SPLIT)
EP = typer.Option(None, "--ep", min=1, help="Ranks that the experts are spread over.", rich_help_panel=SPLIT)
FOLD_EXPERTS = typer.Option(
    False, "--fold-experts/--no-fold-experts", rich_help_panel=SPLIT,
    help="Spread whole experts over tensor and context ranks too, not over data ranks alone.",
)  # fmt: skip
CP = typer.Option(None, "--cp", min=1, help="Context parallel: parts of a sequence.", rich_help_panel=SPLIT)
CP_EXCHANGE = typer.Option(
    "gather", help="How context ranks meet in attention: {context-exchanges}.", rich_help_panel=SPLIT
)
SP = typer.Option(
    False, "--sp/--no-sp", help="Sequence parallel between tensor-parallel regions.", rich_help_panel=SPLIT
)
ZERO = typer.Option(
    0, min=0, max=3, help="ZeRO: shard optimiser (1), gradients (2), weights (3, FSDP).", rich_help_panel=SPLIT
)
SCHEDULE = typer.Option(None, help="Pipeline schedule: {schedules}.", rich_help_panel=SPLIT)
INTERLEAVE = typer.Option(
    1, min=1, help="Pieces of the model on each stage; makes 1f1b interleaved.", rich_help_panel=SPLIT
)
RECOMPUTE = typer.Option(
    "none", rich_help_panel=SPLIT,
    help="Compute again in the backward pass: none, selective, full (layers), stage, or parts of blocks with commas: "
    "{recomputed-parts}.",
)  # fmt: skip
RANK_ORDER = typer.Option(None, help="Order of ranks over GPUs, fastest first: tp-cp-ep-dp-pp.", rich_help_panel=SPLIT)


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


HOSTS = typer.Option(None, min=1, help="Hosts of the fabric of a task graph.", rich_help_panel=PLACE)


@dataclass(frozen=True)
class GraphOptions:
    """Where a task graph runs, which brings hosts and not GPUs."""

    hosts: int | None


ALGORITHM = typer.Option(
    "default",
    help="Collectives: default (nccl where the stack is megatron or fsdp2, otherwise ring); one for all of "
    "{collectives}; one per purpose, data=forest,tensor=ring; auto: the fastest by simulation, never slower than ring.",
    rich_help_panel=TALK,
)
COLLECTIVES = typer.Option(
    "fluid", help="fluid (rounds of a collective together) or rounds (one by one).", rich_help_panel=TALK
)
ROUTING = typer.Option("default", help="How transfers are routed: default, {routers}.", rich_help_panel=TALK)
LEVEL = typer.Option(
    "flow",
    help="How finely the network is simulated: flow (fluid), wire (fluid with headers), packet (every packet), "
    "auto (wire or packet, whichever is enough).",
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
    0.0, min=0.0, help="Random spread of every computation: 0.03 is about 3 %.", rich_help_panel=WHAT_IF
)
STRAGGLER = typer.Option(
    None,
    metavar="RANK:FACTOR",
    help="A GPU that computes FACTOR times as long; may be repeated.",
    rich_help_panel=WHAT_IF,
)
FAILED = typer.Option(
    None,
    metavar="NAME",
    help="A part of a plan's network that has failed, named as in a cluster file (leaf0-spine1), or a cable of a "
    "network that was designed (server0-server5); may be repeated.",
    rich_help_panel=WHAT_IF,
)
MEMORY_CHECK = typer.Option(True, help="Refuse what does not fit into the memory of the GPU.", rich_help_panel=WHAT_IF)
SEED = typer.Option(0, min=0, help="Seed of jitter and of hashed routing.", rich_help_panel=WHAT_IF)
DETAIL = typer.Option(
    "auto", help="Simulate layer by layer, or stages as a whole: auto, layer or stage.", rich_help_panel=WHAT_IF
)
SYMMETRY = typer.Option(
    None,
    "--symmetry/--no-symmetry",
    help="Simulate one of each class of equal tasks (exact). On for task graphs, off for steps unless given.",
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
