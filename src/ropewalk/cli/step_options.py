"""Options of `ropewalk simulate`: what is trained, how it is split, where it runs, how it communicates, what if."""

from __future__ import annotations

from dataclasses import dataclass

import typer

MODEL, SPLIT, PLACE, TALK, WHAT_IF = "Model", "How it is split", "Where it runs", "How it communicates", "What if"

BATCH = typer.Option(
    None, min=1, help="Samples of the whole step; one micro-batch a GPU unless given.", rich_help_panel=MODEL
)
MICRO_BATCH = typer.Option(None, min=1, help="Samples of a micro-batch.", rich_help_panel=MODEL)
SEQ = typer.Option(None, "--seq", "--sequence", min=1, help="Tokens of a sample.", rich_help_panel=MODEL)
DTYPE = typer.Option("bf16", help="Precision: bf16, fp16, tf32 or fp32.", rich_help_panel=MODEL)
OPTIMISER = typer.Option("adamw", help="adamw, adamw_fused, momentum, sgd or none.", rich_help_panel=MODEL)


@dataclass(frozen=True)
class ModelOptions:
    """What is trained."""

    batch: int | None
    micro_batch: int | None
    seq: int | None
    dtype: str
    optimiser: str


GPUS = typer.Option(None, min=1, help="GPUs; the product of the degrees, or 8, unless given.", rich_help_panel=SPLIT)
DP = typer.Option(None, "--dp", min=1, help="Data parallel; what the others leave unless given.", rich_help_panel=SPLIT)
TP = typer.Option(None, "--tp", min=1, help="Tensor parallel.", rich_help_panel=SPLIT)
PP = typer.Option(None, "--pp", min=1, help="Pipeline stages.", rich_help_panel=SPLIT)
EP = typer.Option(None, "--ep", min=1, help="Data ranks that the experts are spread over.", rich_help_panel=SPLIT)
CP = typer.Option(None, "--cp", min=1, help="Context parallel: parts of a sequence.", rich_help_panel=SPLIT)
SP = typer.Option(
    False, "--sp/--no-sp", help="Sequence parallel between tensor-parallel regions.", rich_help_panel=SPLIT
)
ZERO = typer.Option(
    0, min=0, max=3, help="ZeRO: shard optimiser (1), gradients (2), weights (3, FSDP).", rich_help_panel=SPLIT
)
SCHEDULE = typer.Option(None, help="Pipeline schedule: 1f1b, gpipe or interleaved.", rich_help_panel=SPLIT)
INTERLEAVE = typer.Option(
    1, min=1, help="Pieces of the model on each stage; makes 1f1b interleaved.", rich_help_panel=SPLIT
)
RECOMPUTE = typer.Option(
    "none", help="Compute again in the backward pass: none, selective or full.", rich_help_panel=SPLIT
)
BUCKET = typer.Option("25MiB", help="Gradients that are summed at once.", rich_help_panel=SPLIT)
ORDER = typer.Option(None, help="Order of ranks over GPUs, fastest first: tp-cp-ep-dp-pp.", rich_help_panel=SPLIT)


@dataclass(frozen=True)
class SplitOptions:
    """How a model is spread over GPUs."""

    gpus: int | None
    dp: int | None
    tp: int | None
    pp: int | None
    ep: int | None
    cp: int | None
    sp: bool
    zero: int
    schedule: str | None
    interleave: int
    recompute: str
    bucket: str
    order: str | None


DEVICE = typer.Option("h200", help="The GPU, or a table that `ropewalk profile` wrote.", rich_help_panel=PLACE)
GPUS_PER_SERVER = typer.Option(None, min=1, help="As in servers of that GPU unless given.", rich_help_panel=PLACE)
FABRIC = typer.Option(
    None,
    help="A family (leaf-spine), an expression (torus:8x8), or a fabric file.  [default: leaf-spine]",
    rich_help_panel=PLACE,
)
BANDWIDTH = typer.Option(
    None, help="Speed of a NIC and a network link, each way, such as 400Gbps.", rich_help_panel=PLACE
)
NVLINK_BANDWIDTH = typer.Option(None, help="Speed of a GPU inside its server, each way.", rich_help_panel=PLACE)
HOP_LATENCY = typer.Option(None, help="Latency of every network link, such as 1us.", rich_help_panel=PLACE)
RAILS = typer.Option(
    False, "--rails/--no-rails", help="NIC i of all servers goes to the same leaf.", rich_help_panel=PLACE
)
HOSTS = typer.Option(None, min=1, help="Hosts of the fabric of a task graph.", rich_help_panel=PLACE)


@dataclass(frozen=True)
class PlaceOptions:
    """GPUs, servers and the network between them."""

    device: str
    gpus_per_server: int | None
    fabric: str | None
    bandwidth: str | None
    nvlink_bandwidth: str | None
    hop_latency: str | None
    rails: bool
    hosts: int | None


ALGORITHM = typer.Option(
    "ring", help="Collectives: ring, hierarchical, halving-doubling or mesh.", rich_help_panel=TALK
)
COLLECTIVES = typer.Option(
    "fluid", help="fluid (rounds of a collective together) or rounds (one by one).", rich_help_panel=TALK
)
ROUTING = typer.Option("default", help="How transfers are routed; see `ropewalk sync --help`.", rich_help_panel=TALK)
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
    memory_check: bool
    seed: int
    detail: str
    symmetry: bool | None
