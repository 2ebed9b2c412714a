"""Small spaces, searched by bounds and searched whole: the same optimum."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from small_searches import searched, small_question, uniform_search

from ropewalk.device.pricer import pricer
from ropewalk.hardware import read_cluster
from ropewalk.planner.cuts import best_cuts
from ropewalk.planner.enumerated import enumerate_space
from ropewalk.planner.pricing import StrategyPrices
from ropewalk.planner.space import Space
from ropewalk.planner.tailored import Tailor
from ropewalk.training.network import NetworkUse, transport_of
from ropewalk.workload.source import open_workload

CASES = 8


@pytest.mark.parametrize("seed", range(CASES))
def test_the_search_finds_the_optimum_of_small_random_spaces(seed: int) -> None:
    found, every = uniform_search(seed)
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
    prices = StrategyPrices(workload, pricer(cluster.device), cluster.fabric(), use)
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


@pytest.mark.parametrize("seed", [2, 4, 39, 57])
def test_nothing_in_the_whole_space_is_faster_than_the_answer(seed: int) -> None:
    """All strands are on. With seed 4 the best strategy is not the best with rings and usual buckets; with seed 39
    another placement pays with other collectives alone; with seed 57 the best cut does not have the shortest replay."""
    everything = searched(small_question(seed))
    assert not list(everything.faster())
    assert everything.answer.bound.seconds <= everything.answer.best.seconds
    assert everything.bounded


def test_what_the_whole_space_is_pruned_by_is_not_above_what_is_simulated() -> None:
    everything = searched(small_question(5), within=1.01)
    assert not list(everything.faster())
    assert everything.simulated
