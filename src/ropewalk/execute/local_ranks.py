"""Processes on this machine that are the ranks of a Gloo group over loopback, and call functions when told.

They are gone when the block ends, however it ends: by an error, by Ctrl-C, and also when the process that started
them is killed, for each of them ends when nobody is left to tell it something.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import IO, Any, Self

from ropewalk.errors import ProgramError, RopewalkError
from ropewalk.execute.torch_extra import require_torch

MOST_RANKS = 64
"""Processes that may be started on one machine: each holds a quarter of a gigabyte."""

_FAREWELL_S = 5.0
_CAUSE_S = 2.0
"""How long others are heard after one has failed: its failure may only be what became of theirs."""
_ENDED_S = float("-inf")
"""When a process failed that ended without a word: before all that could say something about it."""


class RunFailed(RopewalkError):
    """A process that ran a program ended or did not answer; what it wrote is in the message."""


class LocalRanks:
    """So many processes, for the length of a `with` block; functions and arguments travel as pickles.

    with LocalRanks(8) as processes:
        sums = processes.call(function_of_a_module, [(argument,)] * 8)
    """

    def __init__(self, ranks: int, *, timeout_s: float = 300.0) -> None:
        require_torch()
        if not 1 <= ranks <= MOST_RANKS:
            raise ProgramError(
                f"{ranks} ranks cannot be run as processes of one machine: give 1 to {MOST_RANKS}, or run the program "
                "under torchrun"
            )
        self.ranks = ranks
        self.timeout_s = timeout_s
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection[Any, Any]] = []
        self._written: list[IO[bytes]] = []

    @property
    def process_ids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def __enter__(self) -> Self:
        try:
            for rank in range(self.ranks):
                self._start(rank)
            port = self._answers("start")[0]
            self._tell([port] * self.ranks)
            self._answers("meet")
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._processes:
            self._tell([None] * self.ranks)
            deadline = time.monotonic() + _FAREWELL_S
            for process in self._processes:
                try:
                    process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    break
        self._kill()

    def call(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function of a module on every rank, each with its own arguments; what the ranks return.

        Where a rank refuses or fails, all processes are ended.
        """
        if not self._processes:
            raise RunFailed("the processes have ended: start them again")
        try:
            self._tell([(function, given) for given in arguments])
            return self._answers(getattr(function, "__name__", "run"))
        except BaseException:
            self._kill()
            raise

    def _start(self, rank: int) -> None:
        ours, theirs = Pipe()
        written = tempfile.TemporaryFile()  # noqa: SIM115 (read when the process fails, closed by _kill)
        self._connections.append(ours)
        self._written.append(written)
        with theirs:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "ropewalk.execute.worker", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=written,
                    stderr=written,
                    pass_fds=[theirs.fileno()],
                    env=_environment(),
                    start_new_session=True,  # Ctrl-C is for the process that started them
                )
            )
        ours.send((rank, self.ranks, self.timeout_s))

    def _tell(self, messages: Sequence[Any]) -> None:
        for rank, (connection, message) in enumerate(zip(self._connections, messages, strict=True)):
            try:
                connection.send(message)
            except OSError:
                raise self._ended(rank) from None

    def _answers(self, doing: str) -> list[Any]:
        """One answer from every rank; where some refuse or fail, the first that did so is raised.

        A rank that fails takes others with it, whose complaints may arrive earlier than its own.
        """
        answers: dict[int, Any] = {}
        failures: dict[int, tuple[float, RopewalkError]] = {}
        deadline = time.monotonic() + self.timeout_s
        while missing := {self._connections[rank]: rank for rank in self._silent(answers, failures)}:
            ready = wait(list(missing), max(0.0, deadline - time.monotonic()))
            if not ready and failures:
                break
            if not ready:
                late = ", ".join(map(str, missing.values()))
                raise RunFailed(
                    f"ranks {late} did not answer to {doing} within {self.timeout_s:g} s: "
                    "allow more time, or run fewer ranks"
                )
            for connection in ready:
                rank = missing[connection]  # type: ignore[index]
                outcome, answer = self._heard(rank)
                if outcome == "done":
                    answers[rank] = answer
                else:
                    failures[rank] = answer
                    deadline = min(deadline, time.monotonic() + _CAUSE_S)
        if failures:
            raise min(failures.values(), key=lambda failure: failure[0])[1]
        return [answers[rank] for rank in range(self.ranks)]

    def _silent(self, *heard: dict[int, Any]) -> list[int]:
        return [rank for rank in range(self.ranks) if not any(rank in ranks for ranks in heard)]

    def _heard(self, rank: int) -> tuple[str, Any]:
        """What a rank has answered; a failure comes with the moment at which it happened."""
        try:
            outcome, answer = self._connections[rank].recv()
        except (EOFError, OSError):
            return "ended", (_ENDED_S, self._ended(rank))
        if outcome == "failed":
            return outcome, (answer[0], RunFailed(f"rank {rank} failed:\n{answer[1]}"))
        return outcome, answer

    def _ended(self, rank: int) -> RunFailed:
        status = self._processes[rank].wait()
        self._written[rank].seek(0)
        text = self._written[rank].read().decode(errors="replace").strip()[-2000:]
        return RunFailed(f"rank {rank} ended with status {status}: {text or 'it wrote nothing'}")

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        for connection, written in zip(self._connections, self._written, strict=True):
            connection.close()
            written.close()
        self._processes, self._connections, self._written = [], [], []


def _environment() -> dict[str, str]:
    """That of this process, with its path of modules, one thread a process and nothing but loopback."""
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "OMP_NUM_THREADS": "1",
        **({"GLOO_SOCKET_IFNAME": loopback} if loopback else {}),
    }
