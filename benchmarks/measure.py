"""How the benchmarks measure: CPU seconds, peak memory, fresh processes, and one way to print a table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

Answer = TypeVar("Answer")

SUMMARY = "=> "
"""Lines that begin with this are repeated by run_all.py at its end."""


def cpu(work: Callable[[], Answer]) -> tuple[Answer, float]:
    """What the work returns, and the CPU seconds of this process that it took."""
    began = time.process_time()
    answer = work()
    return answer, time.process_time() - began


def best_cpu(work: Callable[[], Answer], repeats: int) -> tuple[Answer, float]:
    """The same, the least of several runs: what is above it was other work on the machine."""
    answer, least = cpu(work)
    for _ in range(repeats - 1):
        least = min(least, cpu(work)[1])
    return answer, least


def peak_mib() -> float:
    """The most memory that this process has held so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def warm_up() -> None:
    """Load every compiled kernel, so that what follows measures simulation and not the compiler."""
    from ropewalk.collectives import ring_all_reduce
    from ropewalk.fabric import IdealSwitch
    from ropewalk.routing import shortest
    from ropewalk.sim import simulate, simulate_rounds
    from ropewalk.task import lockstep, unroll

    rounds = lockstep(ring_all_reduce([np.arange(4)]), 4e6, 1e-6)
    routes = shortest(IdealSwitch(4).build(), *rounds.all_pairs())
    graph = unroll(rounds)
    simulate(graph, routes, symmetry=False)
    simulate(graph, routes)
    simulate_rounds(rounds, routes)


def in_a_fresh_process(script: str, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a script of this project alone; the last line that it prints is its answer, as JSON."""
    finished = subprocess.run(
        [sys.executable, script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    if finished.returncode != 0:
        raise SystemExit(f"{script} {' '.join(arguments)} failed:\n{finished.stderr}")
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer


def options(description: str | None) -> argparse.ArgumentParser:
    """The command line that all benchmarks share."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, some seconds: does everything still work?")
    return parser


def machine() -> str:
    """The machine in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{cores} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}"
    )


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: the first to the left, numbers to the right."""
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (cell.ljust(width) if not at else cell.rjust(width) for at, (cell, width) in
                          enumerate(zip(cells, widths, strict=True)))  # fmt: skip
        return "  ".join((first, *others))

    print(f"\n{title}\n{'-' * len(title)}\n{line(head)}")
    for row in rows:
        print(line(row))
    sys.stdout.flush()


def summary(text: str) -> None:
    """One sentence with the result."""
    print(f"{SUMMARY}{text}", flush=True)


def short(seconds: float) -> str:
    """Seconds with three digits that count."""
    if seconds >= 100:
        return f"{seconds:.0f}"
    return f"{seconds:.2f}" if seconds >= 1 else f"{seconds:.3f}"
