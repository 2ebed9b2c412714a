"""Small spaces, searched by bounds and searched whole: the same optimum."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from ropewalk.device.pricer import pricer
from ropewalk.hardware import Given, read_cluster
from ropewalk.planner.best_first import best_first
from ropewalk.planner.cuts import best_cuts
from ropewalk.planner.pricing import Prices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.refine import BUCKETS
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space, enumerate_space
from ropewalk.planner.study import answer
from ropewalk.planner.tailored import Tailor
from ropewalk.strategy.order import Order
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


@pytest.mark.parametrize("seed", range(2))
def test_cuts_of_small_models_are_the_best_of_all_cuts_that_fit(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    cluster = read_cluster("dgx-a100:2")
    layers = int(rng.integers(8, 15))
    # So wide and so long that some stages have to recompute some of their layers.
    model = f"gpt:layers={layers},hidden=8192,heads=64,positions=4096"
    workload = open_workload(model, 1, 4096)
    space = Space(tensor=(4,), pipeline=(2, 4), micro_batch=(4, 8), zero=(1,), interleave=(2,))
    use = NetworkUse(transport=transport_of(cluster.device))
    prices = Prices(workload, pricer(cluster.device), cluster.fabric(), use)
    priced = prices.price(enumerate_space(space, workload, cluster.gpus, 64))
    tight = 0
    for at in np.flatnonzero(~priced.candidates.by_block).tolist():
        tailor = Tailor(prices, priced, at)
        if tailor.pieces > 4:
            continue
        every = np.array([(0, *cut) for cut in combinations(range(1, layers + 2), tailor.pieces - 1)])
        best, all_of_them = best_cuts(tailor, alike=False), tailor.cut(every, alike=False)
        assert best.replay_s[0] <= all_of_them.replay_s.min() * (1 + 1e-12), tailor.strategy(best, 0).said()
        tight += int(np.isfinite(best.replay_s[0]) and best.again.sum() > 0)
    assert tight


@pytest.mark.parametrize("seed", range(3))
def test_the_answer_is_no_slower_than_any_cut_bucket_and_placement(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = read_cluster("2x2", Given(nics=1, nic_bandwidth=float(rng.choice([1.25e9, 12.5e9]))))
    model = f"gpt:layers={int(rng.integers(2, 5))},hidden=256,heads=4"
    space = Space(
        server=2, tensor=(1,), micro_batch=(1, 2), recompute=("none",), zero=(0, int(rng.choice([1, 3]))),
        schedules=("1f1b",),
    )  # fmt: skip
    found = answer(PlannerQuestion(model, cluster, 8, 128, space=space))
    simulator, best = Simulator(found.question), np.inf
    layers = len(open_workload(model, 1, 128).layers)
    for at in np.flatnonzero(found.priced.fits).tolist():
        whole = found.priced.candidates.strategy(at)
        cuts = (
            [(0, *cut) for cut in combinations(range(1, layers), whole.pipeline - 1)] if whole.pipeline > 1 else [None]
        )
        orders = [Order(fusion=size) for size in BUCKETS]
        for cut, order, placement in product(cuts, orders, ("tp-cp-ep-dp-pp", "tp-cp-pp-ep-dp")):
            best = min(best, simulator.seconds(replace(whole, stages=cut, order=order), placement))
    assert found.best.seconds <= best * (1 + 1e-9)
    assert found.bound.seconds <= best
