"""Small spaces, searched by bounds and searched whole: the same optimum."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.device.pricer import pricer
from ropewalk.hardware import Given, read_cluster
from ropewalk.planner.best_first import best_first
from ropewalk.planner.pricing import Prices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space, enumerate_space
from ropewalk.training.network import NetworkUse, transport_of
from ropewalk.workload.source import open_workload

SHAPES = (("2x2", None), ("2x4", 1), ("4x1", None), ("3x2", 1))
CASES = 8


@pytest.mark.parametrize("seed", range(CASES))
def test_the_search_finds_the_optimum_of_small_random_spaces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, nics = SHAPES[seed % len(SHAPES)]
    given = Given(nics=nics, nic_bandwidth=float(rng.choice([1.25e9, 12.5e9])))
    cluster = read_cluster(shape, given)
    layers, hidden = int(rng.integers(2, 7)), int(rng.choice([256, 512]))
    model = f"gpt:layers={layers},hidden={hidden},heads=4"
    workload = open_workload(model, 1, 128)
    batch = cluster.gpus * int(rng.choice([2, 4]))
    space = Space(
        server=cluster.servers[0].gpus, micro_batch=(1, 2), recompute=("none", "full"),
        zero=tuple(sorted(rng.choice(4, 2, replace=False).tolist())), schedules=("1f1b", "interleaved", "zb-h1"),
    )  # fmt: skip
    prices = Prices(
        workload, pricer(cluster.device), cluster.fabric(), NetworkUse(transport=transport_of(cluster.device))
    )
    priced = prices.price(enumerate_space(space, workload, cluster.gpus, batch))
    simulator = Simulator(PlannerQuestion(model, cluster, batch, 128))

    def seconds(at: int) -> float:
        return simulator.seconds(priced.strategy(at, workload))

    found = best_first(priced.floor_s, priced.replay, seconds, most=10_000)
    every = np.array([seconds(at) for at in np.flatnonzero(priced.fits).tolist()])
    assert found.complete
    assert found.seconds[found.best] == pytest.approx(every.min(), rel=1e-12)
    assert len(found.order) < len(every)
