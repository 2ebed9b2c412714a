"""What commands share on the screen: a progress bar on standard error, JSON and files on request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

FIRST_RUN = "starting the simulator (the first run on a machine compiles it, up to a minute)"

JSON = typer.Option(False, "--json", help="Print one JSON object instead of the table.")
PAGE = typer.Option(None, "--page", metavar="FILE", help="Write a page with charts (HTML, works offline).")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on standard error that disappears when the work is done; silent where nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


def print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=1))


def write_page(path: Path, html: str) -> None:
    from ropewalk.files import write_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, html)
    typer.echo(f"page: {path}", err=True)
