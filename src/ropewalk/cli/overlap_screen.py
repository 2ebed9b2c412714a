"""What `ropewalk overlap` shows on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk import units
from ropewalk.cli.screen import console

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from ropewalk.overlap.answer import OverlapAnswer

MOST_GROUPS = 6
"""Groups of the best method that the screen lists."""


def print_answer(found: OverlapAnswer, page: Path | None) -> None:
    say = console().print
    asked, best = found.question, found.best
    say(
        f"{found.tensors.model} on {asked.servers} x {asked.cluster.equal.gpus} GPUs, {asked.sync}: "
        f"{units.show_seconds(best.time_s)} per step with {best.name}, "
        f"{units.show_seconds(found.bounds.step_s)} at best",
        style="bold",
        soft_wrap=True,
    )
    say(_table(found))
    say(found.why(), soft_wrap=True)
    chosen = found.tuned.best
    say(
        f"priorities: pieces of {units.show_size(chosen.partition_bytes)}, credit "
        f"{units.show_size(chosen.credit_bytes)} ({found.tuned.method})",
        soft_wrap=True,
    )
    for line in _groups(found):
        say(line, soft_wrap=True)
    say(f"costs: {found.tensors.source}", soft_wrap=True)
    for note in found.notes:
        say(f"note: {note}", style="yellow", soft_wrap=True)
    if page is None:
        say("add --page overlap.html for charts, --json for the whole order", style="dim")


def _groups(found: OverlapAnswer) -> list[str]:
    """The first groups of the best method that fuses, in the order in which they are ready."""
    names, sizes, groups = found.tensors.names, found.tensors.size_bytes, found.best.groups.members
    if len(groups) == len(names):
        return ["groups: none, every tensor on its own"]
    lines = []
    for number, group in enumerate(groups[:MOST_GROUPS]):
        ends = names[group[0]] if len(group) == 1 else f"{names[group[0]]} ... {names[group[-1]]} ({len(group)})"
        lines.append(f"group {number}: {units.show_size(float(sizes[list(group)].sum()))}: {ends}")
    if len(groups) > MOST_GROUPS:
        lines.append(f"and {len(groups) - MOST_GROUPS} more groups, all of them in --json")
    return lines


def _table(found: OverlapAnswer) -> Table:
    from rich import box
    from rich.table import Table

    from ropewalk.overlap.ways import METHODS

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("method", "known as", "step", "estimate", "to the best", "operations"):
        table.add_column(name, justify="left" if name in ("method", "known as") else "right", no_wrap=True)
    for way in sorted(found.ways, key=lambda way: (way.time_s, way.launches)):
        ratio = "" if way is found.best else f"{way.time_s / found.best.time_s:.3f} x"
        step = "" if way.simulated_s is None else units.show_seconds(way.simulated_s)
        table.add_row(way.name, METHODS[way.name].label, step, units.show_seconds(way.step_s), ratio, str(way.launches))
    return table
