"""Options of `ropewalk plan` alone: ports to be wired, how hard to search, what to compare with, what to write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli import step_options
from ropewalk.cli.cluster_options import ClusterOptions
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.packet_options import PacketChoices
from ropewalk.cli.step_outputs import FILES, PlanOutputs

if TYPE_CHECKING:
    from ropewalk.hardware import Cluster
    from ropewalk.sim.level import LevelUse

PORTS, SEARCH, AGAINST = "Ports and cables", "Search", "Comparison"
USUAL_SERVERS = 16

SERVERS = typer.Option(
    None, min=1, help="Number of servers, if no cluster is given.  [default: 16]", rich_help_panel=PORTS
)
DEGREE = typer.Option(
    None, min=1, help="Network ports per server, each with the bandwidth of a NIC.  [default: 4]", rich_help_panel=PORTS
)
DUPLEX = typer.Option(
    None,
    "--duplex/--simplex",
    help="Duplex cables (a ring takes two ports), or simplex ones (a sending and a receiving port).  [default: duplex]",
    rich_help_panel=PORTS,
)
SINGLE_PANEL = typer.Option(
    None,
    "--single-panel/--panel-per-port",
    help="Connect all ports to one large patch panel, instead of port i of every server to panel i.",
    rich_help_panel=PORTS,
)
PRICES = typer.Option(
    None, help="Price list of networks: mixnet, topoopt-recalled, or a file (.toml).  [default: mixnet]",
    rich_help_panel=AGAINST,
)  # fmt: skip
NETWORK = typer.Option(
    None,
    metavar="NAMES",
    help="Networks for the same servers, each with its own best strategy: {networks}; ratios as in leaf-spine:2to1, "
    "ports as in wire:8x400Gbps, expressions and fabric files. See `ropewalk list networks`.",
    rich_help_panel=AGAINST,
)
TARGET = typer.Option(
    None,
    help="Target step time (30s) or token rate (1e12tokens/30days): find the fewest servers that reach it.",
    rich_help_panel=SEARCH,
)
PRIME_ONLY = typer.Option(
    False, "--prime-only", help="Only rings with stride 1 or a prime stride.", rich_help_panel=SEARCH
)
SELECTION = typer.Option(
    "best", help="Ring selection: best (fewest hops found) or paper (the geometric rule).", rich_help_panel=SEARCH
)
ALLOW = typer.Option(
    "",
    help="Extend the search: unrunnable (what no framework runs); for ports to be wired also tensor, expert, pipeline.",
    rich_help_panel=SEARCH,
)
BUDGET = typer.Option(2000, help="Proposals per chain and round.", rich_help_panel=SEARCH)
CHAINS = typer.Option(4, help="Independent chains per round.", rich_help_panel=SEARCH)
ROUNDS = typer.Option(4, help="Maximum alternations of strategy and topology.", rich_help_panel=SEARCH)
SEED = typer.Option(0, help="Random seed.", rich_help_panel=SEARCH)
QUICK = typer.Option(
    False, "--quick", help="Estimate within a second or two: simulate only the best few common "
    "strategies.", rich_help_panel=SEARCH,
)  # fmt: skip
ENGINE = typer.Option(
    "processes", help="Where the search runs: processes, or ray (an existing cluster).", rich_help_panel=SEARCH
)
COMPARE = typer.Option(
    "ideal-switch,fat-tree",
    help="all, none, or names: {baselines} (ocs-reconfig:100us sets the delay).",
    rich_help_panel=AGAINST,
)
LEVEL = step_options.LEVEL
AGAIN = typer.Option(
    None, "--from", metavar="FILE", help="Rerun the plan of a plan file and compare.", rich_help_panel=FILES
)
PATCH = typer.Option(None, metavar="FILE", help="Write the patch list of the panels (CSV).", rich_help_panel=FILES)
TABLES = typer.Option(
    None, metavar="FILE", help="Write the forwarding tables of all servers (CSV).", rich_help_panel=FILES
)


@dataclass(frozen=True)
class PortOptions:
    """Ports that are to be wired; `--servers` and `--degree` are short forms of a cluster that has nothing else."""

    servers: int | None
    degree: int | None
    duplex: bool | None
    single_panel: bool | None
    prices: str | None

    def cluster(self, place: ClusterOptions) -> Cluster:
        """The servers whose ports are to be wired."""
        from ropewalk.hardware import DEFAULT_DEVICE, GivenPorts, held, read_cluster
        from ropewalk.hardware.complete import usual_size

        ports = GivenPorts(self.degree, self.duplex, self.single_panel, self.prices)
        given = replace(place.given(), ports=ports, servers=self.servers)
        each = place.gpus_per_server or usual_size(place.device or DEFAULT_DEVICE)
        return held(read_cluster(place.cluster or f"{self.servers or USUAL_SERVERS}x{each}", given), place.power)


@dataclass(frozen=True)
class SearchOptions:
    """How hard to search, and for what."""

    prime_only: bool
    selection: str
    allow: str
    budget: int
    chains: int
    rounds: int
    seed: int
    engine: str
    quick: bool


@dataclass(frozen=True)
class ComparisonOptions:
    """Networks to compare with."""

    compare: str

    @property
    def names(self) -> tuple[str, ...]:
        return () if self.compare == "none" else not_empty(split(self.compare), "--compare")


@dataclass(frozen=True)
class NetworkOptions:
    """Networks beside each other, and how fast training has to be."""

    network: str | None
    target: str | None

    @property
    def named(self) -> bool:
        """Is more asked for than a plan for the cluster as it is?"""
        return self.network is not None or self.target is not None


@dataclass(frozen=True)
class PlanRunOptions:
    """How finely the network of the plan that was found is simulated; the search itself looks at flows."""

    level: str
    packets: PacketChoices

    def use(self) -> LevelUse:
        """The level, checked."""
        return self.packets.use(self.level)


@dataclass(frozen=True)
class Outputs(PlanOutputs):
    """A plan to run again, and what is written."""

    again: Path | None
    patch: Path | None
    tables: Path | None
