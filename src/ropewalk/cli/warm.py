"""`ropewalk warm`: compile the kernels of all commands ahead, so that no later command waits for the compiler."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import typer

from ropewalk.cli.screen import shown_progress
from ropewalk.errors import InputError, RopewalkError

QUESTIONS = {
    "plan gpt2 --cluster 2x4 --batch 16 --seq 128 --network rails,leaf-spine:4to1": ("plan", "simulate"),
    "expect 2x4 -b 1MiB -e 1MiB": ("plan", "expect", "simulate"),
    "collective allreduce dgx-a100:2": ("plan", "collective"),
    "sync --logical ring --physical bcube --hosts 16": ("sync",),
    "sync --logical ring --physical torus --hosts 16 --level packet": ("sync", "packets"),
    "plan vgg16 --servers 6 --degree 3": ("wiring",),
    "overlap resnet50 --cluster 2x2 --batch 64": ("overlap",),
    "pipeline gpt2 --cluster 1x4": ("pipeline",),
    "collective allreduce leaf-spine:2x2x2 --method topoadopt": ("collective",),
    "collective alltoall leaf-spine:2x2x2": ("collective",),
    "simulate gpt2 --gpus 4 --dp 2 --pp 2 --level packet": ("simulate", "packets"),
    "cluster replay jobs.csv --fabric leaf-spine:4x8x8 --mix published": ("cluster",),
}
"""Small questions that use every large kernel, with what each is for, in an order in which those that run side by side
share few of them: while the first compiles the bounds of the planner, the second compiles the simulator that both need.
"""
FOR_WHEELS = (
    "simulate llama-7b --gpus 16 --dp 2 --tp 8 --batch 32",
    "simulate llama3-8b --cluster dgx-h100:2 --tp 4 --sp --pp 2 --zero 1 --batch 32",
    "simulate mixtral-8x7b --cluster 2x8 --ep 8 --zero 1",
    "simulate alexnet --gpus 4 --gpus-per-server 1 --fabric switch --level auto",
    "plan dlrm --servers 8 --degree 4 --bandwidth 100Gbps --compare all",
    "plan resnet50 --cluster 1x4 --plan plan.json",
    "simulate resnet50 --cluster 1x4 --level packet",
    "fabric torus:4x4",
    "collective allgather torus:4x4",
    "collective allreduce dgx-a100:2 --method best-ring",
    "collective allreduce dgx-a100:2 --trees-per-root 1 --segments 1",
    "sync --logical ring,mesh,ps,hips --physical fat-tree,bcube,torus --hosts 16",
    "sync --logical ps --physical torus --hosts 16 --level packet --transport rdma,rdma-paper,rdma-pfc,hpcc",
    "sync --logical ps --physical torus --hosts 16 --level packet --transport tcp,cubic,newreno,dctcp",
    "overlap vgg16 --batch 1024 --device a100 --cluster 4x8 --nics 1 --bandwidth 25Gbps --mix 5GB/s",
    "overlap vgg16 --batch 64 --device a100 --cluster 2x2 --sync ps --partition 4MB --credit 16MB",
    "overlap resnet50 --cluster 2x2 --batch 64 --level packet",
    "pipeline gpt2-xl --cluster 2x8 --device a100 --nics 1 --bandwidth 100Gbps --seq 1024 --batch 64",
    "expect 2x8 --device a100 --nics 4 -b 1MiB -e 1GiB -f 16",
    "expect 1x8 --device v100 --fabric dgx-1v -b 1MiB -e 1MiB",
    "cost gpt2",
    "cluster replay jobs.csv --fabric leaf-spine:4x8x8 --isolate vclos,ocs-vclos,laas --seeds 1 --mix published",
    "cluster replay jobs.csv --fabric leaf-spine:4x8x8 --routing adaptive,balanced,spray --seeds 1 --mix published",
    "cluster replay jobs.csv --fabric leaf-spine:4x8x8 --routing cassini,crux --seeds 1 --mix published",
    "cluster replay jobs.csv --fabric leaf-spine:4x8x8 --placement random,slurm-tree,volcano --seeds 1 --mix published",
    "cluster replay jobs.csv --fabric fat-tree:8 --seeds 1 --mix published",
    "cluster snapshot jobs.csv --fabric leaf-spine:4x8x8 --at 100s --mix published",
    "cluster allocate --fabric leaf-spine:4x8x8 --gpus 16",
    "cluster explain jobs.csv --job second --fabric leaf-spine:4x8x8 --mix published",
    "cluster submit first --gpus 16 --state live.json --fabric leaf-spine:4x8x8",
)
"""Further questions whose kernels a wheel brings, so that the first answer of an installation waits for no compiler.

None reads what another one writes: they are asked side by side.
"""
SUBJECTS = tuple(dict.fromkeys(subject for uses in QUESTIONS.values() for subject in uses))
SUBJECT = typer.Argument(
    None, metavar="[SUBJECT]…", help=f"Only the kernels for these: {', '.join(SUBJECTS)}.  [default: all]"
)
JOBS = "\n".join(
    (
        "name,gpus,arrival_s,duration_s",
        "first,16,0,1000",
        "second,4,10,1000",
        *(f"{number},{gpus},{20 * number},1000" for number, gpus in enumerate((8, 4, 12, 2, 24, 16, 6, 8, 20, 4) * 3)),
        "",
    )
)
"""Enough for jobs to wait, to leave gaps, and to be given circuits that others had."""


def warm_command(
    subjects: list[str] | None = SUBJECT,
    workers: int | None = typer.Option(None, min=1, help="Number of compiling processes.  [default: one per core]"),
    into: Path | None = typer.Option(
        None, metavar="FOLDER", help="Compile for a wheel into this folder, for most CPUs, and far more kernels."
    ),
) -> None:
    """Compile all kernels now, on all cores, so that no later command waits for the compiler.

    It asks each command a small question. What is compiled is kept on disk for all installations of this code, in the
    user's cache or in NUMBA_CACHE_DIR: the next time, nothing is left to do.
    """
    from tempfile import TemporaryDirectory

    questions = _chosen(subjects or ())
    settings: dict[str, str] = {}
    asked = _Asked.before()
    if into is None:
        questions = tuple(question for question in questions if not asked.has(question))
    else:
        from ropewalk.compiled import settings_for_wheels

        into = into.resolve()
        into.mkdir(parents=True, exist_ok=True)
        questions, settings = (*questions, *FOR_WHEELS), settings_for_wheels(into)
    began, many = time.monotonic(), workers or _cores()
    if questions:
        typer.echo(f"compiling kernels in {many} processes: about a minute", err=True)
    with shown_progress(when_stopped="kernels compiled so far are kept") as progress, TemporaryDirectory() as folder:
        Path(folder, "jobs.csv").write_text(JOBS)
        for done, question in enumerate(_answered(questions, many, folder, settings), 1):
            progress(done, len(questions), f"ropewalk {question}")
            if into is None:
                asked.note(question)
        if into is not None:
            _run([sys.executable, "-m", "ropewalk.compiled", str(into)], folder, settings)
    which = f"kernels for {', '.join(subjects)}" if subjects else "all kernels"
    typer.echo(f"{which} are compiled ({time.monotonic() - began:.0f} s)", err=True)


@dataclass(frozen=True)
class _Asked:
    """Which questions were asked already of this very code, on this CPU: their kernels are kept."""

    folder: Path
    code: str

    @classmethod
    def before(cls) -> _Asked:
        from ropewalk.compiled import code_digest, kept

        return cls(kept() / "asked", code_digest())

    def has(self, question: str) -> bool:
        return self._note(question).exists()

    def note(self, question: str) -> None:
        with suppress(OSError):  # a home that cannot be written to: kernels are kept elsewhere
            self.folder.mkdir(parents=True, exist_ok=True)
            self._note(question).touch()

    def _note(self, question: str) -> Path:
        return self.folder / hashlib.sha256(f"{self.code} {question}".encode()).hexdigest()


def _chosen(subjects: Sequence[str]) -> tuple[str, ...]:
    """Questions that compile what these subjects need; all of them where none is named."""
    for subject in subjects:
        if subject not in SUBJECTS:
            raise InputError(f"there are no kernels for {subject!r}: use one of {', '.join(SUBJECTS)}")
    return tuple(question for question, uses in QUESTIONS.items() if not subjects or set(uses) & set(subjects))


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _answered(questions: Sequence[str], workers: int, folder: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Ask all questions, so many at once; gives each as soon as it is answered."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ThreadPoolExecutor(workers) as pool:
        asked = {pool.submit(_ask, question, folder, settings): question for question in questions}
        try:
            for one in as_completed(asked):
                one.result()
                yield asked[one]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ask(question: str, folder: str, settings: Mapping[str, str]) -> None:
    """Run a command in a process of its own and drop its answer."""
    ran = _run([sys.executable, "-m", "ropewalk", *question.split()], folder, settings)
    if ran.returncode:
        said = ran.stderr.strip().removeprefix("ropewalk: ") or f"exit code {ran.returncode}"
        raise RopewalkError(f"`ropewalk {question}` failed: {said}")


def _run(command: list[str], folder: str, settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **settings}
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
