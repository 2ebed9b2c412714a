"""How fast a service answers over HTTP: submit and end at 32,768 GPUs, paced and as fast as it goes.

    python benchmarks/serve_http.py [--gpus 32768] [--rate 1000] [--seconds 20] [--connections 16]

The service is one process with SQLite (every commit on disk), without tokens; clients are another process on the same
machine, over keep-alive connections. The cluster is filled to 90 % first. Paced requests are timed from the moment they
were due. CPU is that of the service's process per operation.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np
import uvloop

from measure import SUMMARY, machine
from serve_load import Connection, Serving, Work, paced, serving, unpaced


async def measure(there: Serving, asked: argparse.Namespace) -> None:
    connections = [Connection(there.port) for _ in range(asked.connections)]
    for one in connections:
        await one.open()
    work = Work(asked.gpus, seed=1)
    while work.used < 0.9 * asked.gpus:
        await work.step(connections[0], time.perf_counter())
    await unpaced(work, connections, 2.0)  # warm
    await said(f"paced {asked.rate:g}/s", there, work, paced(work, connections, asked.rate, asked.seconds))
    await said("unpaced", there, work, unpaced(work, connections, asked.seconds))
    print("requests:", ", ".join(f"{what} {count}" for what, count in sorted(work.counts.items())))


async def said(name: str, there: Serving, work: Work, run: object) -> None:
    work.taken.clear()
    cpu, own = there.cpu_s(), time.process_time()
    took = await run  # type: ignore[misc]
    cpu, own = there.cpu_s() - cpu, time.process_time() - own
    ms = np.array(work.taken) * 1e3
    p50, p90, p99, most = np.percentile(ms, [50, 90, 99, 100])
    print(
        f"{SUMMARY}serve_http, {name}: {len(ms) / took:.0f} operations/s, p50 {p50:.2f} ms, p90 {p90:.2f}, "
        f"p99 {p99:.2f}, most {most:.1f}; service {1e3 * cpu / len(ms):.3f} CPU ms each, clients "
        f"{1e3 * own / len(ms):.3f}; service {there.rss_mib():.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=32768)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--connections", type=int, default=16)
    asked = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        there = serving(Path(folder), asked.gpus)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(measure(there, asked))
        finally:
            code = there.stop()
        print(f"the service ended with exit code {code}")


if __name__ == "__main__":
    main()
