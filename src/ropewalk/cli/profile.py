"""`ropewalk profile`: measure kernels on this machine, so that models can be priced for it."""

from __future__ import annotations

from pathlib import Path

import typer

from ropewalk.cli.screen import require_outputs, shown_progress
from ropewalk.errors import InputError

SHOWN = 5
"""Kernels that could not be measured that are named on the screen."""


def profile_command(
    table: Path = typer.Argument(metavar="TABLE", help="The table to write, such as my-gpu.csv.gz."),
    dtype: str = typer.Option("bf16,tf32,fp32", help="Precisions to measure: bf16, tf32, fp32."),
    small: bool | None = typer.Option(
        None, "--small/--full", help="Measure only what takes minutes on a CPU (default on a CPU), or the whole grid."
    ),
) -> None:
    """Measure kernels and launches on this machine's GPU (or CPU) with PyTorch: two minutes per precision on an H200.

    Example: `ropewalk profile my-gpu.csv.gz`, then `ropewalk cost gpt2 --device my-gpu.csv.gz`
    """
    from ropewalk.device.pricer import TABLE_SUFFIXES
    from ropewalk.device.profile import MEASURED, profile

    precisions = [name.strip() for name in dtype.split(",") if name.strip()]
    unknown = [name for name in precisions if name not in MEASURED]
    if unknown or not precisions:
        raise InputError(f"cannot measure precision {', '.join(unknown) or dtype!r}: use {', '.join(MEASURED)}")
    if "fp32" in precisions and "tf32" not in precisions:
        raise InputError("fp32 is measured where it differs from tf32: use tf32,fp32")
    if not table.name.lower().endswith(TABLE_SUFFIXES):
        raise InputError(f"{table} must end in .csv.gz: rename the table")
    require_outputs(table)
    with shown_progress() as progress:
        found = profile(table, precisions, small=small, progress=progress)
    typer.echo(f"{found.measurements} measurements on {found.title}: {table}")
    if found.failed:
        typer.echo(f"{len(found.failed)} kernels could not be measured, such as:", err=True)
        for reason in found.failed[:SHOWN]:
            typer.echo(f"  {reason}", err=True)
