"""What every command that decides something writes: a plan, a page, JSON; of steps also traces and tables of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import typer

from ropewalk.cli.screen import require_outputs
from ropewalk.errors import InputError
from ropewalk.extras import how_to_install

FILES = "Output"
TABLES = (".csv", ".parquet")
TRACE = typer.Option(
    None, metavar="FILE", help="Write a timeline for Perfetto or chrome://tracing (JSON).", rich_help_panel=FILES
)
CHAKRA = typer.Option(None, metavar="PREFIX", help="Write the step as a Chakra execution trace.", rich_help_panel=FILES)
TASKS = typer.Option(None, metavar="FILE", help="Write all tasks as a table: .csv or .parquet.", rich_help_panel=FILES)
PLAN = typer.Option(
    None, metavar="FILE", help="Write the plan (JSON), which every command reads.",
    rich_help_panel=FILES,
)  # fmt: skip
PAGE = typer.Option(None, metavar="FILE", help="Write a page with charts (HTML, works offline).", rich_help_panel=FILES)
JSON = typer.Option(False, "--json", help="Print one JSON object instead of the table.", rich_help_panel=FILES)


@dataclass(frozen=True)
class PlanOutputs:
    """The plan, its page, and whether the screen gets JSON."""

    plan: Path | None
    page: Path | None
    json: bool


@dataclass(frozen=True)
class StepOutputs(PlanOutputs):
    """What `ropewalk simulate` writes about a step."""

    trace: Path | None
    chakra: Path | None
    tasks: Path | None

    @property
    def every_rank(self) -> bool:
        """Does a file need the tasks of all ranks?"""
        return any(path is not None for path in (self.trace, self.chakra, self.tasks, self.page))

    def check(self, *read: str | None) -> None:
        """Refuse what cannot be written, or would take the place of something else, before the work begins."""
        paths = [path for path in (self.trace, self.tasks, self.plan, self.page) if path is not None]
        if self.chakra is not None:
            if not self.chakra.name:
                raise InputError(f"cannot write {self.chakra}: give the prefix of the files of all ranks")
            paths.append(self.chakra.with_name(f"{self.chakra.name}.json"))
        require_outputs(*paths, read=read)
        if self.tasks is not None:
            require_table(self.tasks)


def require_table(path: Path) -> None:
    """Refuse a table that could not be written in the end."""
    if path.suffix.lower() not in TABLES:
        raise InputError(
            f"cannot write {path}: tasks are written as {' or '.join(TABLES)}: choose one by the extension"
        )
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(
            f"cannot write {path}: Parquet needs pyarrow: {how_to_install('tables')}, or write a .csv file"
        )
