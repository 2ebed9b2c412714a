"""How much slower the Python of ranks is that wait for each other, against a rank alone, into one JSON file.

    python benchmarks/gpu_hosts.py hosts.json [--ranks 1,2,4,8] [--seconds 5] [--repeats 3]

Every rank trains layers too small to keep anything busy but its own Python, each on a core of its own: on the GPU at
hand (which the ranks share through NVIDIA's multi-process service where it starts) and on the CPU, where nothing but
Python and PyTorch's own dispatch is left. Ranks that exchange something in every layer wait for the slowest of them,
so its time counts: the longest of every step that all ranks made at about the same moment.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as processes
import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

LAYERS, WIDTH, ROWS = 24, 64, 8
"""A step takes 3 to 6 ms: about as long as the host of a mixture's layer."""
WARM_UP_S = 1.5
PATIENCE_S = 120


def layer() -> nn.Module:
    """A norm, two products and what stands between them."""
    return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))


def rank(place: str, core: set[int], seconds: float, start: Any, found: Any) -> None:
    """Trains for `seconds` once all ranks are there, and says how long a layer took in each step."""
    os.sched_setaffinity(0, core)
    torch.set_num_threads(1)
    model = nn.Sequential(*(layer() for _ in range(LAYERS))).to(place)
    rows = torch.randn(ROWS, WIDTH, device=place)
    start.wait()
    taken, warm = [], time.perf_counter() + WARM_UP_S
    while (begin := time.perf_counter()) < warm + seconds:
        model(rows).sum().backward()
        if place == "cuda":
            torch.cuda.synchronize()
        if begin > warm:
            taken.append((time.perf_counter() - begin) / LAYERS)
    found.put(taken)


def cores() -> list[set[int]]:
    """The hardware threads of each core."""
    found: dict[tuple[str, str], set[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        at = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        key = ((at / "physical_package_id").read_text().strip(), (at / "core_id").read_text().strip())
        found.setdefault(key, set()).add(cpu)
    return list(found.values())


def together(place: str, ranks: int, seconds: float) -> dict[str, Any]:
    """Microseconds of a layer of `ranks` ranks that train at the same time."""
    context = processes.get_context("spawn")
    start, found = context.Barrier(ranks), context.Queue()
    workers = [context.Process(target=rank, args=(place, core, seconds, start, found)) for core in cores()[:ranks]]
    for worker in workers:
        worker.start()
    steps = [found.get(timeout=PATIENCE_S) for _ in workers]
    for worker in workers:
        worker.join(timeout=PATIENCE_S)
    seconds_of = {
        "median": statistics.median(map(statistics.median, steps)),
        "mean": statistics.fmean(map(statistics.fmean, steps)),
        "slowest": statistics.fmean(map(max, zip(*steps, strict=False))),
    }
    return {"place": place, "ranks": ranks} | {f"{name}_us": round(1e6 * one, 2) for name, one in seconds_of.items()}


def shares_the_gpu() -> bool:
    """Whether the GPU's multi-process service could be started."""
    try:
        started = subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False, timeout=30, capture_output=True)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return started.returncode == 0


def main() -> None:
    """Measures every number of ranks in turn, several times over, and writes the file after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the JSON file that is written")
    parser.add_argument("--ranks", default="1,2,4,8", help="numbers of ranks, with commas between")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each trains")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    counts = [int(text) for text in options.ranks.split(",")]
    if max(counts) > len(cores()):
        parser.error(f"{max(counts)} ranks need {max(counts)} cores, and there are {len(cores())}: give fewer --ranks")
    cuda = torch.cuda.is_available()
    answer: dict[str, Any] = {"cores": len(cores()), "torch": torch.__version__, "shared": cuda and shares_the_gpu()}
    answer["runs"] = []
    for place in ("cpu", "cuda")[: 1 + cuda]:
        for _ in range(options.repeats):
            for count in counts:
                answer["runs"].append(together(place, count, options.seconds))
                print(answer["runs"][-1], flush=True)
                options.file.write_text(json.dumps(answer, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
