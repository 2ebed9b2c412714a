"""The process that answers questions one after the other: it keeps what it has imported, compiled and priced.

Requests come as lines of JSON on standard input; progress and the answer go back as lines on standard output. What a
command prints is caught. A worker that is killed costs the one answer that it was working on.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

from ropewalk.documents import parse_foreign_json
from ropewalk.errors import InputError
from ropewalk.progress import watched_by

Run = Callable[[list[str]], int]
"""Runs a command line; answers its exit code."""
BETWEEN_S = 0.1
"""Progress is told this often at most."""
BROKEN = 70
"""Exit code of a question that has hit a defect: its worker is not asked again."""
DEFECT = "this is a defect of ropewalk, not of the question: report it with the command line and what follows"
MOST_TEXT = 20_000
"""Characters of what a command wrote to standard error that are sent back."""


def work(run: Run, requests: TextIO, replies: TextIO) -> None:
    """Answer until there are no more requests."""

    def reply(document: dict[str, Any]) -> None:
        replies.write(json.dumps(document) + "\n")
        replies.flush()

    reply({"ready": os.getpid()})
    for line in requests:
        asked = parse_foreign_json(line, "a question from the server", InputError)
        with watched_by(_teller(reply)):
            reply({"done": answered(run, asked["words"], asked["folder"], asked["shown"])})


def answered(run: Run, words: list[str], folder: str, shown: list[str]) -> dict[str, Any]:
    """Run a command line in a folder; `shown` is what pages say was typed."""
    out, err = io.StringIO(), io.StringIO()
    before, typed = os.getcwd(), sys.argv
    began = time.monotonic()
    os.chdir(folder)
    sys.argv = ["ropewalk", *shown]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words)
    except MemoryError:
        code = 1
        err.write("ropewalk: there is not enough memory for this: ask for less")
    except Exception:  # a defect of ours: it is said, and the next question has a fresh worker
        said = f"{DEFECT}\n{traceback.format_exc()[-MOST_TEXT:]}"
        return {"code": BROKEN, "out": "", "err": said, "seconds": time.monotonic() - began}
    finally:
        os.chdir(before)
        sys.argv = typed
    return {
        "code": code, "out": out.getvalue(), "err": err.getvalue()[-MOST_TEXT:], "seconds": time.monotonic() - began
    }  # fmt: skip


def _teller(reply: Callable[[dict[str, Any]], None]) -> Callable[[int, int | None, str], None]:
    told = 0.0

    def tell(done: int, total: int | None, now: str) -> None:
        nonlocal told
        if time.monotonic() - told < BETWEEN_S:
            return
        told = time.monotonic()
        reply({"progress": {"done": done, "total": total, "now": now}})

    return tell
