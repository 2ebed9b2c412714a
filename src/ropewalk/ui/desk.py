"""Everything behind the pages: forms of commands, workers, and the shelf of answers."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ropewalk.collectives.choice import PURPOSES
from ropewalk.documents import parse_foreign_json
from ropewalk.errors import InputError
from ropewalk.files import write_whole
from ropewalk.ui.asked import Asked
from ropewalk.ui.forms import Form, form_of
from ropewalk.ui.pool import QueuedQuestion, WorkerPool
from ropewalk.ui.process import Limits
from ropewalk.ui.quick import Estimates
from ropewalk.ui.shelf import EXPORT, PAGE, PLAN, Shelf

ASKABLE = (
    "plan", "simulate", "cost", "sync", "collective", "pipeline", "overlap", "fabric", "expect", "cluster replay",
    "cluster snapshot",
)  # fmt: skip
"""Commands that can be asked from a form."""
EXPORTED = "exported"
"""What the files of an export begin with."""
TABLES = ("ranks", "nccl-tuner", "torch-pipeline", "torch-pipeline-comms", "patch", "tables")
SUFFIXES = dict.fromkeys(TABLES, ".csv") | {
    "deepspeed": ".json", "torchtitan": ".toml", "pytorch": ".py", "cluster": ".yaml", "fabric": ".yaml",
    "megatron": ".txt",
}  # fmt: skip
"""Of exports that are one file; others are a folder or several files."""
MOST_ESTIMATORS = 4
"""Each keeps what models cost, some 300 MB."""
ESTIMATE_LIMITS = Limits(seconds=60.0, memory_bytes=4e9)


@dataclass(frozen=True)
class DeskSettings:
    """How much the pages may take of the machine."""

    folder: Path
    """Where answers are kept."""
    workers: int = 1
    estimators: int = field(default_factory=lambda: min(MOST_ESTIMATORS, os.cpu_count() or 1))
    """Processes for estimates: people wait for these, so every core may work on them."""
    limits: Limits = field(default_factory=Limits)


class Desk:
    """Takes questions, hands out answers."""

    def __init__(self, root: Any, module: str, settings: DeskSettings, filled: Callable[[str], str] = str) -> None:
        """`root` is the command line as Typer has built it, `module` what worker processes run, `filled` completes
        help texts."""
        self.shelf = Shelf(settings.folder)
        self.forms = {name: form_of(_command(root, name.split()), name.split(), filled) for name in ASKABLE}
        self.pool = WorkerPool(module, settings.workers, settings.limits, self._finish)
        self.estimates = Estimates(module, settings.estimators, ESTIMATE_LIMITS)

    async def start(self) -> None:
        await self.pool.start()
        await self.estimates.start()

    async def stop(self) -> None:
        await self.pool.stop()
        await self.estimates.stop()

    def form(self, name: str) -> Form:
        if name not in self.forms:
            raise InputError(f"there is no form for {name[:60]!r}: use one of {', '.join(self.forms)}")
        return self.forms[name]

    def asked(self, name: str, values: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> Asked:
        """The question that a form asks."""
        return self.form(name).asked(values, files)

    def ask(self, asked: Asked, user: str) -> QueuedQuestion:
        """Work on a question; its page and its plan are kept with the answer."""
        form = self.form(" ".join(asked.command))
        extra = ["--json"]
        extra += ["--page", PAGE] if form.writes_page else []
        extra += ["--plan", PLAN] if form.writes_plan and _makes_plan(asked) else []
        return self.pool.ask(asked, user, tuple(extra))

    def export(self, key: str, to: str, user: str) -> QueuedQuestion:
        """The plan of an answer as other tools read it."""
        path = self.shelf.plan(key)
        if path is None:
            raise InputError("this answer has no plan: export one of plan, simulate, pipeline, overlap or collective")
        # Where it goes is no value of a user: a script may be written here, and none is read.
        extra = ("--output", EXPORTED + SUFFIXES.get(to, ""))
        return self.pool.ask(Asked(("export",), (PLAN, "--to", to), {PLAN: path.read_bytes()}), user, extra)

    def _finish(self, work: QueuedQuestion, reply: dict[str, Any], folder: Path) -> None:
        if reply["code"] == 0:
            answer = reply["out"]
            if work.asked.command == ("export",):
                write_whole(folder / EXPORT, zipped(folder, EXPORTED))
            try:
                parse_foreign_json(answer, "the answer", InputError)
            except InputError:
                answer = json.dumps({"text": answer})
            self.shelf.keep(work.asked, answer, folder, reply["seconds"])


def _makes_plan(asked: Asked) -> bool:
    """A collective is part of a plan only where it was asked for one of its groups."""
    if asked.command != ("collective",):
        return True
    groups = (after for word, after in pairwise(asked.arguments) if word == "--group")
    return any(group.partition(":")[0] in PURPOSES for group in groups)


def _command(root: Any, path: list[str]) -> Any:
    for name in path:
        root = root.commands[name]
    return root


def zipped(folder: Path, prefix: str) -> bytes:
    """All files of a folder whose paths begin like this in one archive; the same files give the same bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_file() and name.startswith(prefix):
                entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                entry.external_attr = (path.stat().st_mode & 0o777) << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return made.getvalue()
