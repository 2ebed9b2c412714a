"""Does a service stay as it is? Many clients for many minutes: memory, file descriptors, connections, nothing lost.

    python benchmarks/serve_soak.py [--minutes 30] [--clients 100] [--gpus 2048] [--every 30]

Each client has a connection of its own and a mind of its own: it submits jobs with an idempotency key, repeats some
requests, ends and cancels jobs, asks for the queue, what-if and explanations, drains and restores, follows the events
for a while, sends nonsense, and goes away in the middle of requests now and then. At the end all jobs are ended, and
every GPU and every link must be free, and the history must have every job that was acknowledged. The database grows by
the history, which is kept for 90 days; memory must not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import uvloop

from measure import SUMMARY, machine
from serve_load import Connection, Serving, serving

PAUSE_S = 0.2
"""Between two requests of one client, at the mean."""
SIZES = (1, 2, 4, 8, 8, 16, 32, 64)
MOST_JOBS = 4
"""Of one client: together they ask for somewhat more than there is, so that there always is a queue."""


@dataclass
class Seen:
    """What all clients together saw."""

    requests: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    taken: list[float] = field(default_factory=list)
    """Seconds of changes and plain reads."""
    ahead: list[float] = field(default_factory=list)
    """Of questions about the future."""
    submitted: set[str] = field(default_factory=set)
    events: int = 0
    broken: int = 0
    wrong: list[str] = field(default_factory=list)

    def note(self, path: str, status: int, seconds: float) -> None:
        self.requests += 1
        self.statuses[status] = self.statuses.get(status, 0) + 1
        (self.ahead if path.endswith(("what-if", "explain")) else self.taken).append(seconds)


class Client:
    """One of many."""

    def __init__(self, number: int, port: int, seen: Seen) -> None:
        self.number, self.port, self.seen = number, port, seen
        self.random = random.Random(number)
        self.mine: list[str] = []
        self.asked = 0

    async def run(self, until: float) -> None:
        await self._connect()
        while time.monotonic() < until:
            await asyncio.sleep(self.random.expovariate(1 / PAUSE_S))
            try:
                await self._something()
            except (OSError, asyncio.IncompleteReadError):
                self.seen.broken += 1
                await self._connect()
        self.connection.close()

    async def _connect(self) -> None:
        self.connection = Connection(self.port)
        await self.connection.open()

    async def _ask(self, method: str, path: str, body: object = None, key: str | None = None) -> tuple[int, object]:
        began = time.perf_counter()
        status, text = await self.connection.ask(method, path, body, key)
        self.seen.note(path, status, time.perf_counter() - began)
        if status >= 500:
            self.seen.wrong.append(f"{method} {path}: {status} {text}")
        return status, text

    async def _something(self) -> None:
        dice = self.random.random()
        if dice < 0.40 and len(self.mine) < MOST_JOBS:
            await self._submit()
        elif dice < 0.80 and self.mine:
            job = self.mine.pop(self.random.randrange(len(self.mine)))
            await self._ask("POST", f"/v1/jobs/{job}/{self.random.choice(('end', 'end', 'cancel'))}", {}, f"x{job}")
        elif dice < 0.90:
            path = self.random.choice(("/v1/status", "/v1/queue?limit=20", "/v1/jobs?limit=20", "/metrics"))
            await self._ask("GET", path)
        elif dice < 0.94:
            await self._ask("POST", "/v1/what-if", {"gpus": self._size()})
            if self.mine:
                await self._ask("GET", f"/v1/jobs/{self.mine[0]}/explain")
        elif dice < 0.96:
            part = {"parts": [f"server:server{self.random.randrange(8)}"]}
            await self._ask("POST", "/v1/drain", part)
            await self._ask("POST", "/v1/restore", part)
        elif dice < 0.98:
            await self._follow()
        elif dice < 0.99:
            await self._ask("POST", "/v1/jobs", {"name": "x" * 1000, "gpus": -1})
        else:
            self.connection.writer.write(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            self.connection.close()
            await self._connect()

    async def _submit(self) -> None:
        self.asked += 1
        body = {"name": f"c{self.number}", "gpus": self._size(), "expected_s": 60, "user": f"u{self.number}"}
        key = f"c{self.number}-{self.asked}"
        status, text = await self._ask("POST", "/v1/jobs", body, key)
        if status not in (201, 202):
            return
        job = json.loads(text)["id"]  # type: ignore[arg-type]
        if self.random.random() < 0.1:
            again, same = await self._ask("POST", "/v1/jobs", body, key)
            if (again, same) != (status, text):
                self.seen.wrong.append(f"the key {key} gave two answers")
        if job in self.seen.submitted:
            self.seen.wrong.append(f"{job} was given twice")
        self.seen.submitted.add(job)
        self.mine.append(job)

    async def _follow(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        try:
            async with asyncio.timeout(self.random.uniform(0.5, 5.0)):
                while line := await reader.readline():
                    self.seen.events += line.startswith(b"data: ")
        except TimeoutError:
            pass
        writer.close()

    def _size(self) -> int:
        return self.random.choice(SIZES)


async def watch(there: Serving, seen: Seen, until: float, every: float) -> list[tuple[float, float, int]]:
    """(minutes, MiB, descriptors) over time."""
    began, found = time.monotonic(), []
    while time.monotonic() < until:
        await asyncio.sleep(every)
        found.append(((time.monotonic() - began) / 60, there.rss_mib(), there.descriptors()))
        minutes, mib, files = found[-1]
        print(f"{minutes:6.1f} min  {mib:7.1f} MiB  {files:4} descriptors  {seen.requests:9} requests", flush=True)
    return found


async def soak(there: Serving, asked: argparse.Namespace) -> bool:
    seen = Seen()
    clients = [Client(number, there.port, seen) for number in range(asked.clients)]
    until = time.monotonic() + 60 * asked.minutes
    tasks = [asyncio.create_task(one.run(until)) for one in clients]
    memory = await watch(there, seen, until, asked.every)
    await asyncio.gather(*tasks)
    fine = await settle(there, seen)
    report(there, seen, memory, asked)
    return fine and not seen.wrong


async def settle(there: Serving, seen: Seen) -> bool:
    """End everything; then nothing may be held, and the history must have every job once."""
    connection = Connection(there.port)
    await connection.open()
    while True:
        _, text = await connection.ask("GET", "/v1/jobs?state=live&limit=1000")
        jobs = json.loads(text)["jobs"]
        if not jobs:
            break
        for job in jobs:
            await connection.ask("POST", f"/v1/jobs/{job['id']}/cancel", {})
    status = json.loads((await connection.ask("GET", "/v1/status"))[1])
    submitted: set[str] = set()
    ended: set[str] = set()
    after: int | None = 0
    while after is not None:
        page = json.loads((await connection.ask("GET", f"/v1/history?limit=1000&after={after}"))[1])
        after = page["next"]
        submitted |= {event["job"] for event in page["events"] if event["kind"] == "job-submitted"}
        ended |= {event["job"] for event in page["events"] if event["kind"] == "job-ended"}
    connection.close()
    gpus, links = status["gpus"], status["links"]
    facts = {
        "every GPU is free": gpus["used"] == 0 and gpus["free"] == gpus["total"],
        "every link is free": links["free"] == links["total"],
        "every acknowledged job is in the history": seen.submitted <= submitted,
        "every submitted job has ended": submitted == ended,
    }
    for fact, holds in facts.items():
        print(f"{'yes' if holds else 'NO '}  {fact}")
    return all(facts.values())


def report(there: Serving, seen: Seen, memory: list[tuple[float, float, int]], asked: argparse.Namespace) -> None:
    p50, p99 = np.percentile(np.array(seen.taken) * 1e3, [50, 99])
    ahead = np.percentile(np.array(seen.ahead or [0.0]) * 1e3, [50, 99])
    later = [mib for minutes, mib, _ in memory if minutes >= 0.2 * asked.minutes] or [memory[-1][1]]
    half = len(later) // 2 or 1
    print("statuses:", ", ".join(f"{status}: {count}" for status, count in sorted(seen.statuses.items())))
    for text in seen.wrong[:5]:
        print("WRONG:", text)
    print(
        f"{SUMMARY}serve_soak: {asked.clients} clients, {asked.minutes:g} min: {seen.requests} requests "
        f"({seen.requests / asked.minutes / 60:.0f}/s), p50 {p50:.2f} ms, p99 {p99:.2f}; what-if and explain p50 "
        f"{ahead[0]:.1f} ms, p99 {ahead[1]:.0f}; {len(seen.submitted)} jobs, {seen.events} events streamed, "
        f"{len(seen.wrong)} wrong answers; memory {np.mean(later[:half]):.0f} MiB in the first half after the start, "
        f"{np.mean(later[-half:]):.0f} MiB in the second (most {max(later):.0f}); descriptors {memory[0][2]} -> "
        f"{there.descriptors()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--gpus", type=int, default=2048)
    parser.add_argument("--every", type=float, default=30.0)
    asked = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        there = serving(Path(folder), asked.gpus, "--max-streams", "1000")
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                fine = runner.run(soak(there, asked))
        finally:
            code = there.stop()
        print(f"the service ended with exit code {code}; its database has "
              f"{(Path(folder) / 'serve.db').stat().st_size / 2**20:.1f} MiB")  # fmt: skip
    raise SystemExit(0 if fine and code == 0 else 1)


if __name__ == "__main__":
    main()
