"""What `ropewalk expect` prints: tables as nccl-tests writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ropewalk.expect.answer import ExpectAnswer, Row

US, GB = 1e6, 1e-9


def print_answer(answer: ExpectAnswer) -> None:
    cluster = answer.question.cluster
    typer.echo(f"# {cluster.gpus} ranks: {cluster.said}")
    for benchmark in answer.question.benchmarks:
        typer.echo("#")
        print_table(benchmark, answer.rows_of(benchmark))


def print_table(benchmark: str, rows: list[Row]) -> None:
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


def _microseconds(seconds: float) -> str:
    """As nccl-tests: two decimals below 1000, one below 10000, none above.

    >>> _microseconds(12.3456e-6), _microseconds(0.0123456)
    ('12.35', '12346')
    """
    value = seconds * US
    return f"{value:.{2 if value < 1000 else 1 if value < 10000 else 0}f}"
