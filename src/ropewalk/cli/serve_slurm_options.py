"""Options of `ropewalk serve` about Slurm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.serve.slurm.bridge import SlurmSettings

BESIDE = "Slurm"

SLURM = typer.Option(
    False,
    "--slurm",
    help="Manage Slurm's jobs: squeue, sinfo and scontrol must work here.",
    rich_help_panel=BESIDE,
)
SLURM_PARTITION = typer.Option(
    [], metavar="NAME", help="Only jobs of this partition. May be repeated.", rich_help_panel=BESIDE
)
SLURM_POLL = typer.Option(
    "2s", help="Polling interval for Slurm's job list, in addition to notifications.", rich_help_panel=BESIDE
)
SLURM_PATIENCE = typer.Option(
    "30s", help="A job that Slurm does not start on its servers within this time is requeued.", rich_help_panel=BESIDE
)


@dataclass(frozen=True)
class SlurmOptions:
    """What was typed about Slurm."""

    slurm: bool
    slurm_partition: list[str]
    slurm_poll: str
    slurm_patience: str

    def settings(self) -> SlurmSettings | None:
        """How the bridge works, or None."""
        poll_s, patience_s = units.seconds(self.slurm_poll), units.seconds(self.slurm_patience)
        if not 0.1 <= poll_s <= 3600:
            raise InputError(f"--slurm-poll {self.slurm_poll} is out of range: give 0.1s to 3600s")
        if not 1 <= patience_s <= 86400:
            raise InputError(f"--slurm-patience {self.slurm_patience} is out of range: give 1s to 86400s")
        if not self.slurm:
            if self.slurm_partition:
                raise InputError("--slurm-partition needs --slurm: add it")
            return None
        from ropewalk.serve.slurm.bridge import SlurmSettings
        from ropewalk.serve.slurm.seen import Patience

        return SlurmSettings(tuple(self.slurm_partition), poll_s, Patience(patience_s, patience_s))
