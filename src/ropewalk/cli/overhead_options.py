"""Options of what collectives and sends cost beyond their bytes: launches, rounds, wire that carries no payload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.hardware import Cluster
    from ropewalk.task.transport import Transport

OVERHEADS = "What communication costs beyond its bytes"

LAUNCH = typer.Option(
    None,
    help="Before the first byte of every operation, such as 20us; as NCCL's rings have it unless given.",
    rich_help_panel=OVERHEADS,
)
ROUND_LATENCY = typer.Option(
    None, help="Of a round of a collective; as NCCL's rings have it unless given.", rich_help_panel=OVERHEADS
)
EFFICIENCY = typer.Option(
    None,
    help="Payload in a byte on the wire, above 0 and at most 1; as NCCL's rings have it unless given.",
    rich_help_panel=OVERHEADS,
)


@dataclass(frozen=True)
class OverheadOptions:
    """What is not given is as measured with NCCL on that GPU; 0us, 0us and 1 leave the bytes alone."""

    launch: str | None
    round_latency: str | None
    efficiency: float | None

    def transport(self, cluster: Cluster, algorithm: str = "default") -> Transport | None:
        """What was said, completed for the GPUs of this cluster; None where nothing was said."""
        if self.launch is None and self.round_latency is None and self.efficiency is None:
            return None
        if "nccl" in algorithm:
            raise InputError(
                "--launch, --round-latency and --efficiency are costs of single collectives, and nccl has its own for "
                "every size: leave them out, or take --algorithm ring"
            )
        from ropewalk.hardware.complete import gpu_of
        from ropewalk.training import transport_of

        if self.efficiency is not None and not 0 < self.efficiency <= 1:
            raise InputError(f"--efficiency must be above 0 and at most 1, got {self.efficiency:g}: give a part of 1")
        costs = transport_of(gpu_of(cluster.device))
        if self.launch is not None:
            costs = replace(costs, start_up_s=units.seconds(self.launch))
        if self.round_latency is not None:
            seconds = units.seconds(self.round_latency)
            costs = replace(costs, round_inside_s=seconds, round_across_s=seconds)
        if self.efficiency is not None:
            costs = replace(costs, efficiency_inside=self.efficiency, efficiency_across=self.efficiency)
        return costs
