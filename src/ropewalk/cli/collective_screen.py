"""What `ropewalk collective` shows on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk import units
from ropewalk.cli.screen import console

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from ropewalk.execute import RunReport
    from ropewalk.synthesis import CollectiveAnswer


def print_answer(answer: CollectiveAnswer, report: RunReport | None, page: Path | None) -> None:
    out = console()
    _print_facts(out, answer)
    if answer.alternatives:
        _print_alternatives(out, answer)
    if answer.by_size:
        _print_sizes(out, answer)
    if report is not None:
        _print_report(out, report)
    for note in answer.notes:
        out.print(f"note: {note}", style="dim")
    if page is None:
        out.print(
            "add --page collective.html for charts, --json for numbers, --export schedule.json for MSCCL++", style="dim"
        )


def _print_facts(out: Console, answer: CollectiveAnswer) -> None:
    from rich.table import Table
    from rich.text import Text

    from ropewalk.synthesis.words import gigabytes, limit_of

    question, best = answer.question, answer.made
    title = f"{question.collective} over {answer.ranks} ranks of {answer.fabric.name}"
    table = Table(show_header=False, box=None, title=Text(title), title_justify="left", title_style="bold")
    table.add_row("optimum", f"{gigabytes(answer.optimum.algbw)} ({answer.optimum.method})")
    table.add_row("1/x*", f"{answer.inverse_rate} s/GB")
    table.add_row("limited by", limit_of(answer).sentence)
    if best is not None:
        table.add_row("schedule", f"{best.name}: {gigabytes(best.algbw)}, {best.shape}")
        time = units.show_seconds(answer.seconds)
        table.add_row(units.show_buffer(question.size_bytes), time + _in_segments(answer))
    if answer.guarantee is not None:
        table.add_row("proved", f"at least {units.show_percent(float(answer.guarantee), 2)} of the optimum")
    if answer.simulated_algbw is not None:
        table.add_row(
            "simulated", f"{gigabytes(answer.simulated_algbw)}{_in_segments(answer)}, without start-up latency"
        )
    table.add_row("found in", units.show_seconds(answer.seconds_to_synthesise))
    out.print(table)


def _in_segments(answer: CollectiveAnswer) -> str:
    return f" in {answer.segments} segments" if answer.segments > 1 else ""


def _print_alternatives(out: Console, answer: CollectiveAnswer) -> None:
    from rich import box
    from rich.table import Table

    from ropewalk.synthesis.words import gigabytes

    size = units.show_buffer(answer.question.size_bytes)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title_justify="left", caption_justify="left",
                  title="on the same fabric", caption="algbw: large buffers, simulated without start-up "
                      "latency")  # fmt: skip
    for name in ("", "algbw", "of the optimum", size):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    best = float(answer.optimum.algbw)
    if answer.made is not None:
        table.add_row(answer.made.name, gigabytes(float(answer.algbw)), _percent(float(answer.algbw) / best),
                      units.show_seconds(answer.seconds), style="bold")  # fmt: skip
    known = [other for other in answer.alternatives if other.algbw is not None]
    for other in sorted(known, key=lambda other: -(other.algbw or 0.0)):
        assert other.algbw is not None
        assert other.seconds is not None
        table.add_row(
            other.name, gigabytes(other.algbw), _percent(other.algbw / best), units.show_seconds(other.seconds)
        )
    out.print(table)
    for other in answer.alternatives:
        if other.reason:
            out.print(f"left out: {other.name}: {other.reason}", style="dim")


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _print_sizes(out: Console, answer: CollectiveAnswer) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title="fastest by size", title_justify="left")
    for name in ("size", "fastest", "time", "next best"):
        table.add_column(name, justify="left" if name in ("fastest", "next best") else "right", no_wrap=True)
    for row in answer.by_size:
        others = sorted((seconds, name) for name, seconds in row.all_seconds.items() if name != row.name)
        runner_up = f"{others[0][1]} {units.show_seconds(others[0][0])}" if others else "–"
        table.add_row(units.show_buffer(row.size_bytes), row.name, units.show_seconds(row.seconds), runner_up)
    out.print(table)


def _print_report(out: Console, report: RunReport) -> None:
    verdict = "agrees with" if report.agrees else "DIFFERS from"
    out.print(f"ran {report.program} in {report.ranks} processes: it {verdict} torch.distributed", style="bold")
    for row in report.rows:
        error = "bit for bit" if row.max_error == 0 else f"largest difference {row.max_error:.3g}"
        out.print(f"  {row.dtype} {units.show_buffer(row.size_bytes)}: {error}; {units.show_seconds(row.seconds)} "
                  f"(torch's own {units.show_seconds(row.torch_seconds)})")  # fmt: skip
