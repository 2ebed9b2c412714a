"""Run a program on this machine, as many processes as it has ranks, and compare it with PyTorch's own collective.

Whole numbers must agree bit for bit, others within the rounding that another order of additions can cause. Times are
those of processes that share this machine's cores: they show that a program runs, not how fast a cluster would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from ropewalk.errors import Findings, ProgramError
from ropewalk.execute.kinds import require_kind, whole_multiple
from ropewalk.execute.local_ranks import LocalRanks
from ropewalk.execute.measure import RankReport, Task, compare
from ropewalk.execute.plan import RankPlan, program_of, rank_plans
from ropewalk.progress import Progress

if TYPE_CHECKING:
    from ropewalk.collectives.program import Program
    from ropewalk.collectives.schedule import Schedule


@dataclass(frozen=True)
class Number:
    """A type of numbers that programs are run on."""

    item_bytes: int
    epsilon: float
    """Distance from 1 to the next number; 0 for whole numbers."""


NUMBERS: dict[str, Number] = {
    "float32": Number(4, 2.0**-23),
    "float64": Number(8, 2.0**-52),
    "float16": Number(2, 2.0**-10),
    "bfloat16": Number(2, 2.0**-7),
    "int64": Number(8, 0.0),
    "int32": Number(4, 0.0),
    "int8": Number(1, 0.0),
    "uint8": Number(1, 0.0),
}


@dataclass(frozen=True)
class RunRow:
    """A program and PyTorch's collective on one size and type."""

    dtype: str
    size_bytes: int
    """The buffer of one rank: the larger of what it brings and what it gets."""
    max_error: float
    """Largest difference from PyTorch's result on any rank."""
    tolerance: float
    """What another order of additions can cause; 0 where nothing is rounded."""
    seconds: float
    """Median over runs of the slowest rank."""
    torch_seconds: float

    @property
    def agrees(self) -> bool:
        return self.max_error <= self.tolerance


@dataclass(frozen=True)
class RunReport:
    """What came of running a program for real."""

    program: str
    collective: str
    ranks: int
    repeats: int
    seed: int
    rows: tuple[RunRow, ...]

    @property
    def agrees(self) -> bool:
        """Whether every result is PyTorch's."""
        return all(row.agrees for row in self.rows)


def run_locally(
    program: Program | Schedule,
    collective: str,
    *,
    sizes: Sequence[int] = (1 << 10, 1 << 20),
    dtypes: Sequence[str] = ("int64", "float32"),
    repeats: int = 5,
    seed: int = 0,
    timeout_s: float = 300.0,
    progress: Progress | None = None,
    processes: LocalRanks | None = None,
) -> RunReport:
    """Prove a program, run it in local processes, and compare results and times with PyTorch's own collective.

    `sizes` are bytes in the buffer of a rank (what an all-gather ends with, what a reduce-scatter begins with), rounded
    up so that shards are equal. `processes` that already run are used and left running.
    """
    plain = program_of(program)
    _check(plain, sizes, dtypes, repeats, processes)
    plain.check()
    plans = rank_plans(plain)
    require_kind(plans[0], collective)
    todo = [(dtype, size) for dtype in dtypes for size in sizes]
    if processes is None:
        with LocalRanks(plain.ranks, timeout_s=timeout_s) as started:
            rows = _rows(plain, plans, collective, todo, repeats, seed, started, progress)
    else:
        rows = _rows(plain, plans, collective, todo, repeats, seed, processes, progress)
    return RunReport(plain.name, collective, plain.ranks, repeats, seed, rows)


def _rows(
    program: Program,
    plans: Sequence[RankPlan],
    collective: str,
    todo: Sequence[tuple[str, int]],
    repeats: int,
    seed: int,
    processes: LocalRanks,
    progress: Progress | None,
) -> tuple[RunRow, ...]:
    rows = []
    for done, (dtype, size) in enumerate(todo):
        if progress is not None:
            progress(done, len(todo), f"{dtype}, {size} bytes")
        number = NUMBERS[dtype]
        step = whole_multiple(plans[0])
        wanted = -(-size // number.item_bytes) * program.chunks
        whole = -(-wanted // (program.buffer_chunks * step)) * step
        task = Task(collective, whole, dtype, repeats, seed)
        seen = processes.call(compare, [(plan, task) for plan in plans])
        size_bytes = whole * number.item_bytes * program.buffer_chunks // program.chunks
        rows.append(_row(dtype, size_bytes, _tolerance(plans[0], number), seen))
    if progress is not None:
        progress(len(todo), len(todo), "done")
    return tuple(rows)


def _row(dtype: str, size_bytes: int, tolerance: float, seen: Sequence[RankReport]) -> RunRow:
    return RunRow(
        dtype,
        size_bytes,
        max_error=max(one.max_error for one in seen),
        tolerance=tolerance,
        seconds=median(max(run) for run in zip(*(one.own_seconds for one in seen), strict=True)),
        torch_seconds=median(max(run) for run in zip(*(one.torch_seconds for one in seen), strict=True)),
    )


def _tolerance(plan: RankPlan, number: Number) -> float:
    """n - 1 additions of numbers up to 1 stay below n and round by half an epsilon of that each, in either order."""
    adding = plan.contributors or plan.ranks
    return (adding - 1) * adding * number.epsilon


def _check(
    program: Program, sizes: Sequence[int], dtypes: Sequence[str], repeats: int, processes: LocalRanks | None
) -> None:
    findings = Findings(ProgramError, f"running {program.name}")
    for dtype in dtypes:
        if dtype not in NUMBERS:
            findings.add(f"there is no type {dtype!r}: choose {', '.join(NUMBERS)}")
    for size in sizes:
        if size < 1:
            findings.add(f"a buffer of {size} bytes is empty: give at least 1 byte")
    if not sizes or not dtypes:
        findings.add("nothing to run: give at least one size and one type of numbers")
    if repeats < 1:
        findings.add(f"{repeats} runs cannot be timed: give at least 1")
    if processes is not None and processes.ranks != program.ranks:
        findings.add(f"{processes.ranks} processes cannot be its {program.ranks} ranks: start {program.ranks}")
    findings.raise_if_any()
