"""The command line: `ropewalk plan`, `sync`, `collective`, `pipeline`, `overlap`, `fabric`, `simulate`, and so on.

Commands import what they need when they run, so that help and input checks answer at once.
"""

from __future__ import annotations

import errno
import sys

import typer

from ropewalk import __version__
from ropewalk.cli.cluster import cluster_app
from ropewalk.cli.collective import collective_command
from ropewalk.cli.cost import cost_command
from ropewalk.cli.expect import expect_command
from ropewalk.cli.export import export_command
from ropewalk.cli.fabric import fabric_command
from ropewalk.cli.lab import lab_app
from ropewalk.cli.list_command import list_command
from ropewalk.cli.overlap import overlap_command
from ropewalk.cli.pipeline import pipeline_command
from ropewalk.cli.plan import plan_command
from ropewalk.cli.profile import profile_command
from ropewalk.cli.simulate import simulate_command
from ropewalk.cli.sync import sync_command
from ropewalk.cli.tables import DescribedCommand
from ropewalk.cli.warm import warm_command
from ropewalk.errors import InputError, RopewalkError

app = typer.Typer(
    name="ropewalk",
    help="Plan, simulate and run the network side of distributed deep-learning training.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ropewalk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Options of ropewalk itself."""


app.command("plan", cls=DescribedCommand)(plan_command)
app.command("sync", cls=DescribedCommand)(sync_command)
app.command("collective", cls=DescribedCommand)(collective_command)
app.command("pipeline", cls=DescribedCommand)(pipeline_command)
app.command("overlap", cls=DescribedCommand)(overlap_command)
app.add_typer(cluster_app, name="cluster")
app.command("fabric", cls=DescribedCommand)(fabric_command)
app.command("expect", cls=DescribedCommand)(expect_command)
app.add_typer(lab_app, name="lab")
app.command("simulate", cls=DescribedCommand)(simulate_command)
app.command("export", cls=DescribedCommand)(export_command)
app.command("cost", cls=DescribedCommand)(cost_command)
app.command("profile", cls=DescribedCommand)(profile_command)
app.command("list", cls=DescribedCommand)(list_command)
app.command("warm", cls=DescribedCommand)(warm_command)


def main() -> None:
    """Run the command line; every error that ropewalk raises on purpose is a message, never a traceback."""
    try:
        app(standalone_mode=True)
    except InputError as error:
        _complain(error)
        sys.exit(2)
    except RopewalkError as error:
        _complain(error)
        sys.exit(1)
    except OSError as problem:
        # Files are guarded where they are read and written; what is left is a full disk behind standard output.
        if problem.errno != errno.ENOSPC:
            raise
        _complain(f"cannot write the answer: {problem.strerror}: make room, or send it elsewhere")
        sys.stdout = None  # closing it would fail once more  # type: ignore[assignment]
        sys.exit(1)


def _complain(error: RopewalkError | str) -> None:
    print(f"ropewalk: {error}", file=sys.stderr)
