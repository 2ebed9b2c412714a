"""Options of `ropewalk overlap` alone: how gradients are synchronised, what is searched, what is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli import step_options
from ropewalk.cli.lists import not_empty, split
from ropewalk.cli.screen import require_outputs
from ropewalk.cli.step_outputs import FILES, PlanOutputs
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.overlap.link import ExchangeKind

ORDER, NETWORK = "Order", "On the network"

SYNC = typer.Option("all-reduce", help="Synchronisation: all-reduce, or ps (parameter servers).", rich_help_panel=ORDER)
PS_SERVERS = typer.Option(
    None,
    "--ps-servers",
    min=1,
    help="Number of parameter servers, on dedicated hosts.  [default: as many as worker servers]",
    rich_help_panel=ORDER,
)
PARTITION = typer.Option(
    None,
    help="Partition size under priority scheduling, such as 4MB.  [default: searched]",
    rich_help_panel=ORDER,
)
CREDIT = typer.Option(None, help="Bytes in flight (credit).  [default: searched]", rich_help_panel=ORDER)
TUNE = typer.Option(
    False,
    "--tune",
    help="Search partition and credit by Bayesian optimisation (needs optuna) instead of a grid.",
    rich_help_panel=ORDER,
)
SEED = typer.Option(0, min=0, help="Seed of --tune.", rich_help_panel=ORDER)
THROUGH = typer.Option(
    None,
    metavar="NAMES",
    help="Stream the gradients through these collectives on the fabric (comma-separated), such as "
    "ring,halving-doubling,hips,forest,topoadopt,in-network (switches add).  [default: with --page, all that apply]",
    rich_help_panel=NETWORK,
)
SIMULATE = typer.Option(
    True, "--simulate/--no-simulate", help="Simulate every method on the fabric, or only estimate it.",
    rich_help_panel=NETWORK,
)  # fmt: skip
LEVEL = step_options.LEVEL
ROUTING = typer.Option("default", help="Routing: default, {routers}.", rich_help_panel=NETWORK)
DDP = typer.Option(
    None,
    metavar="FILE",
    help="Write bucket sizes for PyTorch's DistributedDataParallel: .json or .py.",
    rich_help_panel=FILES,
)


@dataclass(frozen=True)
class SyncOptions:
    """How gradients are synchronised, and what is searched."""

    sync: str
    ps_servers: int | None
    partition: str | None
    credit: str | None
    tune: bool
    seed: int

    @property
    def kind(self) -> ExchangeKind:
        from ropewalk.overlap.link import ExchangeKind

        try:
            return ExchangeKind(self.sync)
        except ValueError:
            known = " or ".join(kind.value for kind in ExchangeKind)
            raise InputError(f"unknown --sync {self.sync!r}: write --sync {known}") from None

    @property
    def partition_bytes(self) -> float | None:
        return None if self.partition is None else float(units.size(self.partition))

    @property
    def credit_bytes(self) -> float | None:
        return None if self.credit is None else float(units.size(self.credit))


@dataclass(frozen=True)
class OverlapNetworkOptions:
    """What operations cost beside their bytes, and how the fabric is simulated."""

    simulate: bool
    routing: str
    level: str
    through: str | None

    @property
    def collectives(self) -> tuple[str, ...]:
        """What gradients are streamed through."""
        return () if self.through is None else not_empty(split(self.through), "--through")


@dataclass(frozen=True)
class OverlapOutputs(PlanOutputs):
    """What is written."""

    ddp: Path | None

    def check(self, sync: str, *read: str | None) -> None:
        """Refuse what cannot be written before anything is computed."""
        require_outputs(self.page, self.ddp, self.plan, read=read)
        if self.plan is not None and sync != "all-reduce":
            raise InputError(f"cannot write {self.plan}: a plan uses all-reduce: leave --sync {sync} out")
        if self.ddp is not None and sync != "all-reduce":
            raise InputError(
                f"cannot write {self.ddp}: DistributedDataParallel supports all-reduce only: leave --sync {sync} out"
            )
