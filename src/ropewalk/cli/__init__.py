"""The command line: `ropewalk plan`, `sync`, `collective`, `pipeline`, `overlap`, `fabric`, `simulate`, and so on.

Commands import what they need when they run, so that help and input checks answer at once.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys

import typer

from ropewalk import __version__
from ropewalk.cli.commands import COMMANDS
from ropewalk.cli.interrupt import STOPPED, say_stopped, times_said
from ropewalk.cli.later import HELP, MARKUP, group_of
from ropewalk.errors import InputError, RopewalkError

app = typer.Typer(
    name="ropewalk",
    cls=group_of(COMMANDS),
    help="Plan, simulate and run the network side of distributed deep-learning training.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": list(HELP)},
)


_LONG = re.compile(r"""\S{500,}?(?=['"]?[:,;]?(?:\s|$))""")
"""Words that are longer than any name or path that people read."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tabs and ends of lines."""


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ropewalk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Options of ropewalk itself."""


def main() -> None:
    """Run the command line that was typed."""
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Run a command line; every error that ropewalk raises on purpose is a message, never a traceback."""
    _write_what_the_terminal_has()
    if os.environ.get("COLUMNS") == "0":  # a terminal that does not know its width; tables of no columns are empty
        del os.environ["COLUMNS"]
    said_before = times_said()
    try:
        app(args=words, prog_name="ropewalk", standalone_mode=True)
    except SystemExit as end:
        if end.code == STOPPED and times_said() == said_before:  # outside of progress bars Typer says nothing
            say_stopped()
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        say_stopped()
        return STOPPED
    except InputError as error:
        _complain(error)
        return 2
    except RopewalkError as error:
        _complain(error)
        return 1
    except ModuleNotFoundError as problem:
        from ropewalk.extras import extra_with, how_to_install

        extra = extra_with(problem.name or "")
        if extra is None:
            raise
        _complain(f"this needs the package {problem.name}, which is not installed: {how_to_install(extra)}")
        return 2
    except MemoryError:
        _complain("there is not enough memory on this machine: ask for less, or use a larger machine")
        return 2
    except OSError as problem:
        # Files are guarded where they are read and written; what is left is a full disk behind standard output.
        if problem.errno != errno.ENOSPC:
            raise
        _complain(f"cannot write the answer: {problem.strerror}: free some space, or write it elsewhere")
        sys.stdout = None  # closing it would fail once more  # type: ignore[assignment]
        return 1
    return 0


def _write_what_the_terminal_has() -> None:
    """Characters that the encoding of the terminal lacks are written as question marks, not as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # UTF-8 lacks bytes of file names that are not UTF-8
            stream.reconfigure(errors="replace")


def _complain(error: RopewalkError | str) -> None:
    """One message; what is not text in what it quotes, such as the colours of a terminal, is written as `\\x1b`."""
    print(f"ropewalk: {_CONTROL.sub(_escaped, _LONG.sub(_shortened, str(error)))}", file=sys.stderr)


def _escaped(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"


def _shortened(found: re.Match[str]) -> str:
    return f"{found[0][:60]}… ({len(found[0]):,} characters)"
