"""`ropewalk warm`: compile the kernels of all commands ahead, so that no later command waits for the compiler."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import typer

from ropewalk.cli.screen import shown_progress
from ropewalk.errors import RopewalkError

QUESTIONS = (
    "plan gpt2 --cluster 2x4 --batch 16 --seq 128 --network rails,leaf-spine:4to1",
    "expect 2x4 -b 1MiB -e 1MiB",
    "sync --logical ring --physical bcube --hosts 16",
    "sync --logical ring --physical torus --hosts 16 --level packet",
    "collective allreduce dgx-a100:2",
    "plan vgg16 --servers 6 --degree 3",
    "overlap resnet50 --cluster 2x2 --batch 64",
    "pipeline gpt2 --cluster 1x4",
    "collective allreduce leaf-spine:2x2x2 --method topoadopt",
    "collective alltoall leaf-spine:2x2x2",
    "simulate gpt2 --gpus 4 --dp 2 --pp 2 --level packet",
    "cluster replay jobs.csv --fabric leaf-spine:4x8x8",
)
"""Small questions that use every large kernel, in an order in which those that run side by side share few of them:
while the first compiles the bounds of the planner, the second compiles the simulator that both need."""
JOBS = "name,gpus,arrival_s,duration_s\nfirst,16,0,1000\nsecond,4,10,1000\n"


def warm_command(
    workers: int | None = typer.Option(None, min=1, help="Processes that compile at once; one per core unless given."),
) -> None:
    """Compile the kernels of all commands now, on all cores, so that no later command waits for the compiler.

    It asks each command a small question. What is compiled is kept on disk, beside the package or in NUMBA_CACHE_DIR:
    the next time, this takes seconds.
    """
    from tempfile import TemporaryDirectory

    began, many = time.monotonic(), workers or _cores()
    typer.echo(f"compiling kernels in {many} processes: minutes the first time, seconds later", err=True)
    with shown_progress(when_stopped="what is compiled is kept") as progress, TemporaryDirectory() as folder:
        Path(folder, "jobs.csv").write_text(JOBS)
        for done, question in enumerate(_answered(many, folder), 1):
            progress(done, len(QUESTIONS), f"ropewalk {question}")
    typer.echo(f"all kernels are compiled ({time.monotonic() - began:.0f} s)", err=True)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _answered(workers: int, folder: str) -> Iterator[str]:
    """Ask all questions, so many at once; gives each as soon as it is answered."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ThreadPoolExecutor(workers) as pool:
        asked = {pool.submit(_ask, question, folder): question for question in QUESTIONS}
        try:
            for one in as_completed(asked):
                one.result()
                yield asked[one]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ask(question: str, folder: str) -> None:
    """Run a command in a process of its own and drop its answer."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "ropewalk", *question.split()]
    ran = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        said = ran.stderr.strip().removeprefix("ropewalk: ") or f"exit code {ran.returncode}"
        raise RopewalkError(f"`ropewalk {question}` failed: {said}")
