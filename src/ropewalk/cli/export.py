"""`ropewalk export`: a plan as files of other tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from ropewalk.cli.screen import require_outputs
from ropewalk.documents import read_text
from ropewalk.errors import InputError


def export_command(
    plan: Path = typer.Argument(metavar="PLAN", help="A plan file written by --plan."),
    to: str = typer.Option(..., "--to", metavar="WHAT", help="Target: {exports.described}."),
    output: Path = typer.Option(
        ...,
        "--output",
        "-o",
        metavar="FILE",
        help="Output: a file, - for stdout, a prefix for chakra, a folder for run.",
    ),
) -> None:
    """Export a plan for other tools: launch arguments, scripts, timetables, traces, cabling.

    Example: `ropewalk export plan.json --to run --output job`
    """
    from ropewalk.export.of_plan import EXPORTS
    from ropewalk.plans import read_plan

    record = EXPORTS.named(to)
    if str(output) != "-" and not record.folder:
        require_outputs(output, read=(plan,))
    decided = read_plan(plan)
    make = EXPORTS.fitting(to, decided).make
    if str(output) == "-":
        if record.folder:
            raise InputError(f"{to} writes a folder: name it with --output")
        _show(lambda path: make(decided, path))
        return
    written = make(decided, output)
    more = f" and {len(written) - 1} more" if len(written) > 1 else ""
    typer.echo(f"{to}: {written[0]}{more}", err=True)


def _show(write: Callable[[Path], list[Path]]) -> None:
    """Print what would be written, where that is one file."""
    with TemporaryDirectory() as folder:
        written = write(Path(folder) / "shown.yaml")
        if len(written) > 1:
            raise InputError(f"{len(written)} files cannot go to stdout: name a folder or prefix with --output")
        typer.echo(read_text(written[0], f"file {written[0]}", InputError), nl=False)
