"""Ctrl-C that is never lost.

Python drops an exception that is raised where nobody can catch it: in a callback that compiled code makes, or while an
object is taken down. An interrupt that happens to land there, while kernels are compiled for instance, would be
printed and forgotten, and the command would run on. Here it comes again a moment later.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ropewalk.files import has_written

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_S = 0.05
STOPPED = 130
"""The exit code of a command that Ctrl-C has stopped."""
_times_said = 0


def say_stopped(what_is_left: str | None = None) -> None:
    """Say that the command was stopped, and what it leaves behind."""
    global _times_said
    usual = "files that were named before are complete" if has_written() else "nothing was written"
    typer.echo(f"ropewalk: stopped; {what_is_left or usual}", err=True)
    _times_said += 1


def times_said() -> int:
    """How often it was said in this process."""
    return _times_said


@contextmanager
def lasting_interrupts() -> Iterator[None]:
    """In the main thread, raise an interrupt again that Python has dropped."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    usual = sys.unraisablehook

    def note(dropped: UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        else:
            usual(dropped)

    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = note
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = usual
        signal.signal(signal.SIGALRM, handler)
