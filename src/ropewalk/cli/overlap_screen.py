"""What `ropewalk overlap` shows on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from ropewalk import units
from ropewalk.cli.screen import console

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from ropewalk.overlap.answer import OverlapAnswer
    from ropewalk.overlap.fabric_streams import FabricStream
    from ropewalk.overlap.stream_plan import StreamPlan

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
    if found.streams is not None:
        _print_streams(found.streams)
    if found.question.through:
        _print_through(found.fabric_streams)
    say(f"costs: {found.tensors.source}", soft_wrap=True)
    say(f"interval: {found.expected.said()}", soft_wrap=True)
    for note in found.notes:
        say(f"note: {note}", style="yellow", soft_wrap=True)
    if page is None:
        say("add --page overlap.html for charts, --json for the whole order", style="dim")


def _print_streams(plan: StreamPlan) -> None:
    """Every scheme on the ring, rank by rank: what each overlap is worth."""
    from ropewalk.overlap.stream_answer import MODEL, stream_rows, stream_sentence

    say = console().print
    ring = plan.ring
    say(
        f"\non a ring of {ring.ranks} ranks that send {units.show_size(ring.bandwidth)}/s and add "
        f"{'at no cost' if ring.mixer.free else f'{units.show_size(ring.mixer.rate)}/s'}: {stream_sentence(plan)}",
        style="bold",
        soft_wrap=True,
    )
    rows = [
        (row.name, units.show_seconds(row.step_s), f"{row.step_s / plan.bounds.step_s:.3f} x",
         "" if row.operations is None else str(row.operations))
        for row in stream_rows(plan)
    ]  # fmt: skip
    say(_columns((("scheme", "left"), ("step", "right"), ("vs. bound", "right"), ("operations", "right")), rows))
    say(MODEL, soft_wrap=True)


def _print_through(streams: Sequence[FabricStream]) -> None:
    """The gradients through each collective that was asked for."""
    say = console().print
    say(
        "\nall gradients as one buffer on the fabric, without concurrent compute, first layer first",
        style="bold",
        soft_wrap=True,
    )
    heads: list[tuple[str, Literal["left", "right"]]] = [
        (name, "left" if name == "collective" else "right")
        for name in ("collective", "whole", "streamed", "gain", "first layers", "apart")
    ]
    rows = [
        (row.collective, units.show_seconds(row.whole_s), units.show_seconds(row.streamed_s), f"{100 * row.gain:.1f} %",
         units.show_seconds(row.complete_s[0]), str(row.apart))
        for row in streams
    ]  # fmt: skip
    say(_columns(heads, rows))


def _groups(found: OverlapAnswer) -> list[str]:
    """The first groups of the best method that fuses, in the order in which they are ready."""
    names, sizes, groups = found.tensors.names, found.tensors.size_bytes, found.best.groups.members
    if len(groups) == len(names):
        return ["groups: none, every tensor separately"]
    lines = []
    for number, group in enumerate(groups[:MOST_GROUPS]):
        ends = names[group[0]] if len(group) == 1 else f"{names[group[0]]} ... {names[group[-1]]} ({len(group)})"
        lines.append(f"group {number}: {units.show_size(float(sizes[list(group)].sum()))}: {ends}")
    if len(groups) > MOST_GROUPS:
        lines.append(f"and {len(groups) - MOST_GROUPS} more groups; --json lists all")
    return lines


def _table(found: OverlapAnswer) -> Table:
    from ropewalk.overlap.methods import METHODS

    heads: list[tuple[str, Literal["left", "right"]]] = [
        (name, "left" if name in ("method", "also known as") else "right")
        for name in ("method", "also known as", "step", "estimate", "vs. best", "operations")
    ]
    rows = []
    for method in sorted(found.methods, key=lambda method: (method.time_s, method.launches)):
        ratio = "" if method is found.best else f"{method.time_s / found.best.time_s:.3f} x"
        step = "" if method.simulated_s is None else units.show_seconds(method.simulated_s)
        rows.append(
            (
                method.name,
                METHODS[method.name].label,
                step,
                units.show_seconds(method.step_s),
                ratio,
                str(method.launches),
            )
        )
    return _columns(heads, rows)


def _columns(heads: Sequence[tuple[str, Literal["left", "right"]]], rows: Iterable[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name, justify in heads:
        table.add_column(name, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
