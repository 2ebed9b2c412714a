"""Clients of a service, for benchmarks: keep-alive connections on one event loop, jobs that come and go.

The service runs in another process. A request is timed from the moment at which it was due, so that a service that
falls behind is not flattered by clients that wait for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FABRICS = {2048: "leaf-spine:64x32x32", 8192: "leaf-spine:128x64x64", 32768: "leaf-spine:256x128x128"}
SIZES = np.array([8, 16, 32, 64, 96, 128, 192, 256, 512, 768, 1024])
CHANCES = np.array([10, 10, 15, 20, 4, 15, 4, 12, 6, 2, 2]) / 100
"""As in cluster_allocation.py."""


@dataclass
class Serving:
    """A service in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def cpu_s(self) -> float:
        """CPU seconds of all its threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def serving(folder: Path, gpus: int, *more: str) -> Serving:
    """Start a service on an empty cluster and wait until it listens."""
    log = folder / "serve.log"
    command = [
        sys.executable, "-m", "ropewalk", "serve", "--fabric", FABRICS[gpus], "--database", str(folder / "serve.db"),
        "--no-auth", "--port", "0", "--rate-per-address", "1e9", "--rate", "1e9", *more,
    ]  # fmt: skip
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"listening: "):
            return Serving(process, int(line.rsplit(b":", 1)[1]), log)
    raise SystemExit(f"the service did not start: {log.read_text()[-2000:]}")


class Connection:
    """One keep-alive connection."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        if token is not None:
            self._head += f"Authorization: Bearer {token}\r\n"

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)

    async def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        keyed = f"Idempotency-Key: {key}\r\n" if key else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{keyed}Content-Length: {len(content)}\r\n\r\n"
        self.writer.write(head.encode() + content)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        status = int(answer[9:12])
        at = answer.lower().find(b"content-length: ")
        length = int(answer[at + 16 : answer.index(b"\r\n", at)])
        text = await self.reader.readexactly(length) if length else b""
        return status, (text if status < 300 else json.loads(text))

    def close(self) -> None:
        self.writer.close()


@dataclass
class Work:
    """Jobs that come and go near saturation, and how long every request took."""

    gpus: int
    seed: int
    most_used: float = 0.9
    running: list[tuple[str, int]] = field(default_factory=list)
    used: int = 0
    taken: list[float] = field(default_factory=list)
    """Seconds from the moment a request was due to its answer."""
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    async def step(self, connection: Connection, due: float) -> None:
        """End a random job or submit a new one; a job that has to wait is cancelled, so that the queue stays short."""
        if self.used > self.most_used * self.gpus and self.running:
            at = int(self._random.integers(len(self.running)))
            self.running[at], self.running[-1] = self.running[-1], self.running[at]
            job, size = self.running.pop()
            self.used -= size
            status, _ = await connection.ask("POST", f"/v1/jobs/{job}/end", {}, f"e{self.seed}-{job}")
            self._note("end" if status == 200 else f"end {status}", due)
            return
        size = int(self._random.choice(SIZES, p=CHANCES))
        self.used += size
        key = f"s{self.seed}-{len(self.taken)}-{due:.6f}"
        status, text = await connection.ask("POST", "/v1/jobs", {"name": "job", "gpus": size}, key)
        self._note({201: "started", 202: "waits"}.get(status, f"submit {status}"), due)
        if status not in (201, 202):
            self.used -= size
            return
        job = text[7 : text.index(b'"', 7)].decode()
        if status == 201:
            self.running.append((job, size))
            return
        self.used -= size
        due = time.perf_counter()
        status, _ = await connection.ask("POST", f"/v1/jobs/{job}/cancel", {}, f"c{self.seed}-{job}")
        self._note("cancel" if status == 200 else f"cancel {status}", due)

    def _note(self, what: str, due: float) -> None:
        self.taken.append(time.perf_counter() - due)
        self.counts[what] = self.counts.get(what, 0) + 1


async def paced(work: Work, connections: Sequence[Connection], per_second: float, seconds: float) -> float:
    """Requests at equal distances, on whichever connection is free; answers how long it took."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for one in connections:
        free.put_nowait(one)
    began = time.perf_counter()
    tasks: set[asyncio.Task[None]] = set()

    async def one(connection: Connection, due: float) -> None:
        await work.step(connection, due)
        free.put_nowait(connection)

    for number in range(int(per_second * seconds)):
        due = began + number / per_second
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(await free.get(), due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return time.perf_counter() - began


async def unpaced(work: Work, connections: Sequence[Connection], seconds: float) -> float:
    """Every connection asks again as soon as it is answered."""
    began = time.perf_counter()

    async def one(connection: Connection) -> None:
        while time.perf_counter() - began < seconds:
            await work.step(connection, time.perf_counter())

    await asyncio.gather(*(one(connection) for connection in connections))
    return time.perf_counter() - began
