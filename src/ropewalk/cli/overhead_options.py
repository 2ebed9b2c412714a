"""Options of what collectives and sends cost beyond their bytes: launches, rounds, wire without payload, adding up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.cli.mix_options import OVERHEADS, MixOptions
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.hardware import Cluster
    from ropewalk.task.transport import Transport

LAUNCH = typer.Option(
    None,
    help="Launch latency per operation, such as 20us.  [default: that of NCCL's rings]",
    rich_help_panel=OVERHEADS,
)
ROUND_LATENCY = typer.Option(
    None, help="Latency per round of a collective.  [default: that of NCCL's rings]", rich_help_panel=OVERHEADS
)
EFFICIENCY = typer.Option(
    None,
    help="Fraction of link bandwidth that carries payload, above 0 and at most 1.  [default: that of NCCL's rings]",
    rich_help_panel=OVERHEADS,
)


@dataclass(frozen=True)
class OverheadOptions(MixOptions):
    """What is not given is as measured with NCCL on that GPU; 0us, 0us and 1 leave the bytes alone."""

    launch: str | None
    round_latency: str | None
    efficiency: float | None

    def transport(self, cluster: Cluster, algorithm: str = "default") -> Transport | None:
        """What was said, completed for the GPUs of this cluster; None where nothing was said."""
        mixer = self.mixer(cluster.device)
        if mixer is None and self.launch is None and self.round_latency is None and self.efficiency is None:
            return None
        if "nccl" in algorithm:
            raise InputError(
                "--launch, --round-latency, --efficiency and --mix do not apply to --algorithm nccl, which has its "
                "own costs for every size: leave them out, or use --algorithm ring"
            )
        from ropewalk.hardware.complete import gpu_of
        from ropewalk.training import transport_of

        if self.efficiency is not None and not 0 < self.efficiency <= 1:
            raise InputError(
                f"--efficiency must be above 0 and at most 1, got {self.efficiency:g}: give a fraction such as 0.9"
            )
        costs = transport_of(gpu_of(cluster.device))
        if mixer is not None:
            costs = replace(costs, mixer=mixer)
        if self.launch is not None:
            costs = replace(costs, start_up_s=units.seconds(self.launch))
        if self.round_latency is not None:
            seconds = units.seconds(self.round_latency)
            costs = replace(costs, round_inside_s=seconds, round_across_s=seconds)
        if self.efficiency is not None:
            costs = replace(costs, efficiency_inside=self.efficiency, efficiency_across=self.efficiency)
        return costs
