"""How fast a whole space of strategies is bounded and its best proved: candidates per second of one core.

    python benchmarks/planner.py [--large]

Seconds are of the processor, so other work on the machine does not count. The peers: Calculon's search takes about a
minute for a 530B model on 5,128 GPUs, exhaustive over tensor, pipeline, interleaving and recomputation, without a
network; here ZeRO, sequence parallelism and the routed network are in the space as well.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from ropewalk.device.pricer import pricer
from ropewalk.fabric.interconnect import gpu_in
from ropewalk.hardware import read_cluster
from ropewalk.planner.best_first import best_first
from ropewalk.planner.enumerated import enumerate_space
from ropewalk.planner.pricing import StrategyPrices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space
from ropewalk.training.network import NetworkUse
from ropewalk.workload.source import open_workload

CASES = {
    "llama3-70b on 512 H100": ("llama3-70b", "dgx-h100:64", 1024, 8192, Space()),
}
LARGE = {
    "530B GPT on 5,120 A100": (
        "megatron-530b", "dgx-a100:640", 2560, 2048,
        Space(pipeline=(1, 2, 4, 5, 7, 8, 10, 16, 20, 32, 35, 40, 64), schedules=("1f1b", "interleaved")),
    ),
}  # fmt: skip


def measured(name: str, model: str, place: str, batch: int, sequence: int, space: Space) -> None:
    cluster, workload = read_cluster(place), open_workload(model, 1, sequence)
    prices = pricer(cluster.device)
    use = NetworkUse(algorithm="ring").settled(gpu_in(prices.device.title) or prices.device.name, cluster)
    fabric = cluster.fabric()
    StrategyPrices(workload, prices, fabric, use).price(
        enumerate_space(Space(tensor=(8,), micro_batch=(1,)), workload, cluster.gpus, batch)
    )
    start = time.process_time()
    candidates = enumerate_space(space, workload, cluster.gpus, batch)
    search = StrategyPrices(workload, prices, fabric, use)
    first = search.price(candidates)
    priced_s = time.process_time() - start
    start = time.process_time()
    again = search.price(candidates)
    kernels_s = time.process_time() - start
    simulator = Simulator(PlannerQuestion(model, cluster, batch, sequence))
    start = time.process_time()
    found = best_first(again.floor_s, again.replay, lambda at: simulator.seconds(again.strategy(at, workload)), 200)
    proved_s = time.process_time() - start
    best = again.strategy(found.best, workload)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    known = len(candidates) / kernels_s
    print(f"{name}: {len(candidates):,} strategies, {int(first.fits.sum()):,} fit, {most:.2f} GiB")
    print(f"  all priced in {priced_s:.1f} s; once layers and layouts are known, {known:,.0f} per s")
    replays = int(np.isfinite(found.replay_s).sum())
    print(f"  proved in {proved_s:.1f} s more: {replays} replays, {len(found.order)} simulations")
    print(f"  best: {best.said()}, {found.seconds[found.best]:.2f} s; complete: {found.complete}")


if __name__ == "__main__":
    for name, case in (CASES | (LARGE if "--large" in sys.argv else {})).items():
        measured(name, *case)
