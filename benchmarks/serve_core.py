"""How long the controller's core takes for one operation, and how many operations a second its one writer commits.

    python benchmarks/serve_core.py [--quick] [--store sqlite] [--store postgres]

A cluster of 32,768 GPUs is filled with jobs of random sizes; when one does not fit, some end. Timed is
`Controller.apply`, which allocates, places, starts whoever may start and makes the answer, in memory; "with answer"
adds the bytes of the answer and of what the store keeps. The wall clock also counts other work on the machine; CPU time
does not. The writer takes operations from 64 askers that each wait for their answer, with idempotency keys, and commits
every batch to disk.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np

from measure import machine

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))

import postgres_server

from ropewalk.serve.controller import Controller
from ropewalk.serve.encoding import encode
from ropewalk.serve.operation import Cancel, End, Operation, Submit
from ropewalk.serve.outcome import Outcome
from ropewalk.serve.service import open_writer, warm_up
from ropewalk.serve.settings import Settings
from ropewalk.serve.store import open_store
from ropewalk.tenancy.plant import plant

PLANT, GPUS_PER_SERVER = "leaf-spine:256x128x128", 8
SIZES = (8, 16, 32, 64, 96, 128, 192, 256, 512, 768, 1024)
CHANCES = (10, 10, 15, 20, 4, 15, 4, 12, 6, 2, 2)
ASKERS = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--store", action="append", choices=("sqlite", "postgres"), default=None)
    asked = parser.parse_args()
    print(machine())
    core_times(2_000 if asked.quick else 20_000)
    for store in asked.store or ("sqlite", "postgres"):
        writer_rate(store, 2.0 if asked.quick else 15.0)


def core_times(operations: int) -> None:
    """p50, p99 and the longest of submits and ends on a cluster that is nearly full.

    A job that does not fit is cancelled, so that every submit looks for a place.
    """
    chance = random.Random(0)
    controller = Controller.empty(plant(PLANT, GPUS_PER_SERVER), Settings("vclos"))
    warm_up("vclos", controller.state.plant)
    times: dict[str, list[tuple[float, float]]] = {
        "submit, starts": [], "submit, waits": [], "all submits": [], "with answer": [], "end": []
    }  # fmt: skip
    running: list[str] = []
    while len(times["all submits"]) < operations:
        asks = Submit("job", chance.choices(SIZES, CHANCES)[0], expected_s=3600.0)
        outcome, apply = _timed(lambda one=asks: controller.apply(one, 0.0))
        _, written = _timed(lambda done=outcome: _bytes(done))
        starts = outcome.answer["state"] == "running"
        times["submit, starts" if starts else "submit, waits"].append(apply)
        times["all submits"].append(apply)
        times["with answer"].append((apply[0] + written[0], apply[1] + written[1]))
        if starts:
            running.append(outcome.answer["id"])
            continue
        controller.apply(Cancel(outcome.answer["id"]), 0.0)
        for _ in range(chance.randint(1, 4)):
            job = running.pop(chance.randrange(len(running)))
            times["end"].append(_timed(lambda at=job: controller.apply(End(at), 0.0))[1])
    used = controller.state.occupancy.used
    print(f"{PLANT}: {len(running)} jobs on {used} of {controller.state.plant.gpus} GPUs in the end")
    print(f"{'ms':>16} {'p50':>8} {'p99':>8} {'max':>8}   {'p50 CPU':>8} {'p99 CPU':>8} {'max CPU':>8}")
    for kind, taken in times.items():
        wall, cpu = np.array(taken).T * 1e3
        cells = [f"{value:8.3f}" for one in (wall, cpu) for value in (*np.percentile(one, [50, 99]), one.max())]
        print(f"{kind:>16} {' '.join(cells[:3])}   {' '.join(cells[3:])}   of {len(taken)}")


def _timed(act: Callable[[], Outcome]) -> tuple[Outcome, tuple[float, float]]:
    """(wall, CPU) seconds."""
    wall, cpu = time.perf_counter(), time.thread_time()
    outcome = act()
    return outcome, (time.perf_counter() - wall, time.thread_time() - cpu)


def _bytes(outcome: Outcome) -> Outcome:
    encode(outcome.answer)
    for job in outcome.changed:
        encode(job.as_document())
    return outcome


def writer_rate(kind: str, seconds: float) -> None:
    """Operations per second of one writer, each committed and acknowledged."""
    if kind == "sqlite":
        folder = tempfile.mkdtemp(prefix="ropewalk-serve-")
        try:
            _measure_writer(kind, f"{folder}/state.db", seconds)
        finally:
            shutil.rmtree(folder)
        return
    lack = postgres_server.missing()
    if lack is not None:
        print(f"postgres: {lack}")
        return
    with postgres_server.postgres() as url:
        _measure_writer(kind, url, seconds)


def _measure_writer(kind: str, url: str, seconds: float) -> None:
    store = open_store(url)
    writer = open_writer(store, plant(PLANT, GPUS_PER_SERVER), Settings("vclos")).start()
    batches: list[int] = []
    writer.on_batch = batches.append
    latencies: list[list[float]] = [[] for _ in range(ASKERS)]
    until = time.monotonic() + seconds

    def asker(number: int) -> None:
        chance, mine, count = random.Random(number), [], 0
        while time.monotonic() < until:
            count += 1
            asks: Operation
            if len(mine) < 4 or chance.random() < 0.5:
                asks = Submit("job", chance.choices(SIZES, CHANCES)[0])
            else:
                asks = End(mine.pop(chance.randrange(len(mine))))
            began = time.perf_counter()
            answer = writer.submit(asks, idempotency_key=f"{number}-{count}").result()
            latencies[number].append(time.perf_counter() - began)
            if isinstance(asks, Submit):
                mine.append(answer.document["id"])

    threads = [Thread(target=asker, args=(number,)) for number in range(ASKERS)]
    began, cpu = time.monotonic(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, used = time.monotonic() - began, time.process_time() - cpu
    all_of_them = np.concatenate(latencies) * 1e3
    p50, p99 = np.percentile(all_of_them, [50, 99])
    print(
        f"writer on {kind}: {len(all_of_them) / took:.0f} operations per second ({len(all_of_them)} in {took:.0f} s, "
        f"{used / took:.0%} of a core), {np.mean(batches):.1f} per commit, p50 {p50:.1f} ms, p99 {p99:.1f} ms with "
        f"{ASKERS} askers"
    )
    writer.close()
    store.close()


if __name__ == "__main__":
    main()
