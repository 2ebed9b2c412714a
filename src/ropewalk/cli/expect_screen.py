"""What `ropewalk expect` prints: tables as nccl-tests writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ropewalk.expect.answer import ExpectAnswer, ExpectRow
    from ropewalk.expect.diagnosis import Diagnosis

US, GB = 1e6, 1e-9
MOST_ROWS = 40


def print_answer(answer: ExpectAnswer) -> None:
    cluster = answer.question.cluster
    if answer.diagnosis is not None:
        _print_diagnosis(answer.diagnosis, answer.names)
        return
    typer.echo(f"# {cluster.gpus} ranks: {cluster.said}")
    for benchmark in answer.question.benchmarks:
        typer.echo("#")
        print_table(benchmark, answer.rows_of(benchmark))


def print_table(benchmark: str, rows: list[ExpectRow]) -> None:
    """The lines of one benchmark; a healthy cluster is within the last two bandwidths."""
    typer.echo(f"# {benchmark}_perf")
    typer.echo(f"# {'size':>12} {'time':>10} {'algbw':>8} {'busbw':>8}   {'healthy busbw':<19} algorithm/protocol")
    typer.echo(f"# {'(B)':>12} {'(us)':>10} {'(GB/s)':>8} {'(GB/s)':>8}   {'(GB/s)':<19}")
    for row in rows:
        low, high = row.busbw_at(row.healthy.high) * GB, row.busbw_at(row.healthy.low) * GB
        healthy = f"{low:.2f} to {high:.2f}"
        typer.echo(
            f"  {row.size_bytes:>12} {_microseconds(row.seconds):>10} {row.algbw * GB:>8.2f} {row.busbw * GB:>8.2f}   "
            f"{healthy:<19} {row.runs}"
        )


def _print_diagnosis(found: Diagnosis, names: tuple[str, ...]) -> None:
    """The verdict, what explains it, and the measurements, those that fall short most first."""
    from ropewalk.expect.words import explanation, headline, who_in_words

    for line in (headline(found), *explanation(found)):
        typer.echo(line)
    rows = [(one, row) for one in found.series for row in one.rows]
    rows.sort(key=lambda pair: pair[1].place)
    typer.echo(f"\n{'benchmark':<15} {'size (B)':>12} {'busbw (GB/s)':>12}   {'healthy':<19} {'state':<8} GPUs")
    for one, row in rows[:MOST_ROWS]:
        low, high = (value * GB for value in row.healthy_busbw)
        typer.echo(
            f"{one.benchmark:<15} {row.measured.size_bytes:>12} {row.busbw * GB:>12.2f}   "
            f"{f'{low:.2f} to {high:.2f}':<19} {row.state:<8} {who_in_words(one, names)}"
        )
    if len(rows) > MOST_ROWS:
        typer.echo(f"… {len(rows) - MOST_ROWS} more: --json has all of them")


def _microseconds(seconds: float) -> str:
    """As nccl-tests: two decimals below 1000, one below 10000, none above.

    >>> _microseconds(12.3456e-6), _microseconds(0.0123456)
    ('12.35', '12346')
    """
    value = seconds * US
    return f"{value:.{2 if value < 1000 else 1 if value < 10000 else 0}f}"
