"""What commands share on the screen: a progress bar on standard error, JSON and files on request."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.interrupt import STOPPED, lasting_interrupts, say_stopped
from ropewalk.errors import InputError
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.progress import watched_by, watcher

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from ropewalk.progress import Progress as Watched

JSON = typer.Option(False, "--json", help="Print one JSON object instead of the table.")
PAGE = typer.Option(None, "--page", metavar="FILE", help="Write a page with charts (HTML, works offline).")


def console() -> Console:
    """Standard output for tables; names that users gave are text, never markup."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False)


def print_whole(table: Table) -> None:
    """A table too wide for the terminal runs over its edge: cut-off numbers would be worse."""
    screen = console()
    needed = screen.measure(table, options=screen.options.update(max_width=1000)).maximum
    screen.width = max(screen.width, needed)
    screen.print(table)


def print_wrapped(table: Table) -> None:
    """A table of sentences: wrapped on a terminal, a line for every row where a program reads it."""
    screen = console()
    if screen.is_terminal:
        screen.print(table)
    else:
        print_whole(table)


def require_outputs(*paths: Path | None, read: Iterable[str | Path | None] = ()) -> None:
    """Refuse what cannot be written, or would take the place of something else, before the work begins.

    `read` are arguments that may name files: none of them is written over.
    """
    from ropewalk.files import is_file, is_there, real_path, require_writable

    taken = {real_path(source): "this command reads it" for source in read if source and is_file(source)}
    asked = [path for path in paths if path is not None]
    for path in asked:
        if not path.name:
            raise InputError(f"cannot write {path}: it is a folder: name a file in it")
        place = real_path(path)
        if place in taken and (is_file(path) or not is_there(path)):  # pipes and terminals take several
            raise InputError(f"cannot write {path}: {taken[place]}: choose another path")
        taken[place] = "another output is written to it"
    for path in asked:
        require_writable(path)


@contextmanager
def progress_bar(when_stopped: str | None = None) -> Iterator[Progress]:
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
    errors = Console(stderr=True, markup=False)
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        try:
            with lasting_interrupts(), unwrapped_interrupts(), _compiling_is_said(bar):
                yield bar
        except KeyboardInterrupt:
            bar.stop()
            say_stopped(when_stopped)
            raise typer.Exit(STOPPED) from None


@contextmanager
def _compiling_is_said(bar: Progress) -> Iterator[None]:
    """Where somebody watches, say that kernels are being compiled if that takes long."""
    if bar.disable:
        yield
        return
    from ropewalk.cli.compiling import compiling_is_said

    with compiling_is_said(bar.console.print):
        yield


@contextmanager
def shown_progress(first: str = "starting", when_stopped: str | None = None) -> Iterator[Watched]:
    """A bar for one study, as the callback that studies take."""
    with progress_bar(when_stopped) as bar:
        task = bar.add_task(first, total=None)
        tell = watcher()

        def show(done: int, total: int | None, now: str) -> None:
            bar.tasks[0].total = total  # `update` would keep the last number where nobody knows of how many
            bar.update(task, completed=done, description=now)
            tell(done, total, now)

        with watched_by(show):
            yield show


def print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=1))


def write_page(path: Path, html: str) -> None:
    from ropewalk.files import write_whole

    write_whole(path, html)
    typer.echo(f"page: {path}", err=True)


def typed() -> str:
    """The command line as it was typed, for pages that say how to make them again."""
    return shlex.join(["ropewalk", *sys.argv[1:]])
