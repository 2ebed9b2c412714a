"""`ropewalk ui`: the planner and all studies in a browser, on this machine."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.ui.desk import Desk

WORKER = "ropewalk.cli.ui_worker"
PORT = typer.Option(8788, min=0, max=65535, help="Port on this machine; 0 takes a free one.")
OPEN = typer.Option(True, "--open/--no-open", help="Open the page in a browser.")
WORKERS = typer.Option(1, "--workers", min=1, max=64, help="Questions answered concurrently.")
ANSWERS = typer.Option(None, metavar="FOLDER", help="Folder for answers.   [default: ~/.local/state/ropewalk/answers]")
TIME_LIMIT = typer.Option("10min", help="Time limit per question.")
MEMORY_LIMIT = typer.Option("8GB", help="Memory limit per question.")


def ui_command(
    port: int = PORT,
    open_page: bool = OPEN,
    workers: int = WORKERS,
    answers: Path | None = ANSWERS,
    time_limit: str = TIME_LIMIT,
    memory_limit: str = MEMORY_LIMIT,
) -> None:
    """Open the planner and all studies in a browser (local only: 127.0.0.1).

    Example: `ropewalk ui`
    """
    from ropewalk.cli.serve_run import lacking

    try:
        from ropewalk.serve.http.logs import LineLog
        from ropewalk.serve.http.protocol import Doors
        from ropewalk.serve.http.server import Listening, bound, server_of
        from ropewalk.serve.http.settings import HttpSettings
        from ropewalk.ui.application import BODY_BYTES, pages_alone
    except ModuleNotFoundError as problem:
        raise lacking(problem) from None
    settings = HttpSettings(no_auth=True, body_bytes=BODY_BYTES)
    desk = desk_of(answers, workers, time_limit, memory_limit)
    listening = Listening("127.0.0.1", port)
    sockets = bound(listening)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/ui/plan"
    server = server_of(pages_alone(desk, settings), listening, Doors(settings), LineLog(quiet=True), lambda: None)
    typer.echo(f"ropewalk ui: {url} (Ctrl-C stops it)", err=True)
    if open_page:
        webbrowser.open(url)
    server.run(sockets)


def desk_of(answers: Path | None, workers: int, time_limit: str, memory_limit: str) -> Desk:
    """The desk behind the pages, with every command that can be asked from a form."""
    import typer.main

    from ropewalk.cli import app
    from ropewalk.cli.tables import filled
    from ropewalk.ui.desk import Desk, DeskSettings
    from ropewalk.ui.process import Limits

    limits = Limits(units.seconds(time_limit), units.size(memory_limit))
    folder = answers if answers is not None else usual_folder()
    try:
        return Desk(typer.main.get_command(app), WORKER, DeskSettings(folder, workers, limits=limits), filled)
    except OSError as problem:
        raise InputError(f"cannot store answers in {folder}: {problem.strerror}: give another --answers") from None


def usual_folder() -> Path:
    """Where answers are kept unless told otherwise."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "ropewalk" / "answers"
