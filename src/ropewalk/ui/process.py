"""One worker process as the server sees it: started ahead, asked one thing at a time, ended when it takes too much."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropewalk.documents import parse_foreign_json
from ropewalk.errors import InputError
from ropewalk.units import show_seconds, show_size

LOOK_S = 0.25
"""How often memory and time are looked at."""
LINE_BYTES = 64 * 1024 * 1024
"""Of one reply: answers of commands are JSON in one line."""
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    """What one question may take."""

    seconds: float = 600.0
    memory_bytes: float = 8e9


class WorkerLost(Exception):
    """The process ended, or was ended, before it had answered; the message says why, for the one who asked."""


class WorkerProcess:
    """A process that runs `module` and speaks lines of JSON."""

    def __init__(self, module: str, nice: int = 0) -> None:
        """Processes that are nicer leave the processor to others."""
        self._module, self._nice = module, nice
        self._process: asyncio.subprocess.Process | None = None
        self._ready = False

    async def start(self) -> None:
        """Start it, if it does not run; what it imports takes seconds, so this is done ahead."""
        if self._process is not None and self._process.returncode is None:
            return
        self._ready = False
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._module, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, limit=LINE_BYTES, start_new_session=True,
        )  # fmt: skip
        if self._nice:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, self._nice)

    async def ask(
        self, request: dict[str, Any], limits: Limits, tell: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        """Send a request and wait for its answer; progress goes to `tell`."""
        await self.start()
        assert self._process is not None
        waiting = asyncio.create_task(self._answer(request, tell))
        left_s = limits.seconds
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=LOOK_S)
                if done:
                    return waiting.result()
                left_s -= LOOK_S
                if left_s <= 0:
                    raise WorkerLost(
                        f"it took longer than {show_seconds(limits.seconds)}: ask for less, or in a terminal"
                    )
                if resident_bytes(self._process.pid) > limits.memory_bytes:
                    raise WorkerLost(
                        f"it took more than {show_size(limits.memory_bytes)} of memory: ask for less, or in a terminal"
                    )
        finally:
            if not waiting.done() or waiting.cancelled() or waiting.exception() is not None:
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError, WorkerLost):
                    await waiting
                await self.end()

    async def end(self) -> None:
        """End it and what it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, 9)
        await process.wait()

    async def _answer(self, request: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if not self._ready:
                await self._line(process.stdout)
                self._ready = True
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
            while True:
                reply = await self._line(process.stdout)
                if "done" in reply:
                    found: dict[str, Any] = reply["done"]
                    return found
                tell(reply["progress"])
        except (ConnectionError, ValueError, InputError) as problem:
            raise WorkerLost(f"the process that worked on it ended ({problem}): ask again") from None

    @staticmethod
    async def _line(stream: asyncio.StreamReader) -> dict[str, Any]:
        line = await stream.readline()
        if not line:
            raise ConnectionError("without an answer")
        found: dict[str, Any] = parse_foreign_json(line.decode(), "its reply", InputError)
        return found


def resident_bytes(pid: int) -> float:
    """Memory of a process and of its children; 0 where nobody can tell."""
    total = 0.0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * PAGE
            children = Path(f"/proc/{one}/task/{one}/children").read_text().split()
        except (OSError, IndexError, ValueError):
            continue
        waiting += [int(child) for child in children]
    return total
