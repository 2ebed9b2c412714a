"""Options of `ropewalk collective` alone: who takes part, how the schedule is made, what is compared and run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import typer

from ropewalk import units
from ropewalk.cli.lists import each
from ropewalk.documents.numbers import ratio
from ropewalk.errors import InputError

WHO, HOW, SIZE, FILES = "Participants", "Algorithm", "Sizes and comparison", "Files and runs"
DEFAULT_SIZES = "1kB,16kB,256kB,4MB,64MB,1GB"

HOSTS = typer.Option(None, min=1, help="Number of hosts, if only a family is named.", rich_help_panel=WHO)
GROUP = typer.Option(
    None,
    help="Hosts of the group by name or number, in the order of ranks: 0,1,2; the others only forward. Of a plan "
    "also data, tensor, expert or context: its first such group (data:3, the fourth).",
    rich_help_panel=WHO,
)
ROOT = typer.Option(None, help="Root of a broadcast or reduce.", rich_help_panel=WHO)
SHARDS = typer.Option(None, help="Relative shard size per rank, such as 1,1,2,0.", rich_help_panel=WHO)
HOST_LIMIT = typer.Option(
    None,
    help="Bandwidth of a host over all its links per direction; one value, or one per host.",
    rich_help_panel=WHO,
)
IN_NETWORK = typer.Option(
    False, help="Switches multicast and reduce (NVLS, SHARP): the bound, and one tree simulated.", rich_help_panel=HOW
)
METHOD = typer.Option(
    "forest",
    help="Algorithm: forest (exact trees), topoadopt (multiplicative weights), fixed (equal trees "
    "per root), best-ring, breadth-first (fewest rounds) or any other of `ropewalk list collectives`.",
    rich_help_panel=HOW,
)
TREES_PER_ROOT = typer.Option(None, min=1, help="Equal trees per root; implies --method fixed.", rich_help_panel=HOW)
EPSILON = typer.Option(0.05, help="Target gap of multiplicative weights: 0.05 for 5 %.", rich_help_panel=HOW)
SIZE_OF_BUFFER = typer.Option(
    "1GiB", "--size", help="Buffer size: what every rank ends with or starts with.", rich_help_panel=SIZE
)
START_UP = typer.Option("10us", "--start-up", "--latency", help="Start-up latency of a transfer.", rich_help_panel=SIZE)
SIZES = typer.Option(
    DEFAULT_SIZES, help="Sizes for which the fastest schedule is chosen; empty for none.", rich_help_panel=SIZE
)
COMPARE = typer.Option(True, help="Simulate the schedule and its alternatives.", rich_help_panel=SIZE)
PLAN = typer.Option(
    None,
    metavar="FILE",
    help="With a plan and --group: simulate the plan with this collective for that group, and write it.",
    rich_help_panel=FILES,
)
EXPORT = typer.Option(
    [],
    metavar="FILE",
    help="Write the schedule: .json (MSCCL++ plan), .xml (MSCCL), .et (Chakra traces, one per rank), .graph.xml and "
    ".csv (NCCL rings and tuner). May be repeated.",
    rich_help_panel=FILES,
)
SEGMENTS = typer.Option(None, min=1, help="Pipeline segments of what is exported or run.", rich_help_panel=FILES)
RUN = typer.Option(
    False,
    "--run",
    help="Run the schedule in local processes (needs torch); check results.",
    rich_help_panel=FILES,
)
RUN_SIZE = typer.Option("1kB,1MB", help="Sizes to run.", rich_help_panel=FILES)
SEED = typer.Option(0, help="Seed of the data that --run reduces.", rich_help_panel=FILES)


@dataclass(frozen=True)
class GroupOptions:
    """Who takes part, and with how much."""

    hosts: int | None
    group: str | None
    root: str | None
    shards: str | None
    host_limit: str | None

    @property
    def parts(self) -> tuple[Fraction, ...] | None:
        return None if self.shards is None else each(self.shards, _shard)

    def limits(self, hosts: int) -> tuple[float, ...] | None:
        """Bytes/s of every host."""
        if self.host_limit is None:
            return None
        limits = each(self.host_limit, units.bandwidth)
        return limits * hosts if len(limits) == 1 else limits


@dataclass(frozen=True)
class MethodOptions:
    """How the schedule is made."""

    in_network: bool
    method: str
    trees_per_root: int | None
    epsilon: float

    @property
    def name(self) -> str:
        """The method that is named; a number of equal trees stands for one of its own."""
        if self.trees_per_root is None:
            return self.method
        if self.method not in ("forest", "fixed"):
            raise InputError(f"{self.method} has no equal trees per root: leave --method or --trees-per-root out")
        return "fixed"


@dataclass(frozen=True)
class SizeOptions:
    """For which sizes, and whether the alternatives are simulated."""

    size_of_buffer: str
    start_up: str
    sizes: str
    compare: bool


@dataclass(frozen=True)
class CollectiveRunOptions:
    """What is exported and run."""

    plan: Path | None
    export: list[Path]
    segments: int | None
    run: bool
    run_size: str
    seed: int


def _shard(text: str) -> Fraction:
    try:
        return ratio(text)
    except ValueError:
        raise InputError(f"shard {text!r} is not a number: write shards like 1,1,2,0 or 1/3,2/3,1") from None
