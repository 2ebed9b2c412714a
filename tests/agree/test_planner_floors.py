"""Floors under any choice against all choices of small worlds: every cut, every recomputed block, simulated."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from ropewalk.device.pricer import pricer
from ropewalk.hardware import Cluster, Given, read_cluster
from ropewalk.planner.anywhere import floors_of, narrow_of, spread_of
from ropewalk.planner.best_spread import fullest_stage, in_memory, pieces_of
from ropewalk.planner.enumerated import enumerate_space
from ropewalk.planner.free import free_network
from ropewalk.planner.moments import moments_of
from ropewalk.planner.narrow import narrow_floor, narrowest
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space
from ropewalk.planner.tailored import Cuts, Tailor
from ropewalk.strategy.memory import FRAGMENTATION, WORKSPACE_BYTES, usable_bytes
from ropewalk.training.network import NetworkUse, transport_of
from ropewalk.workload.source import open_workload

BLOCKS, SEQUENCE, BATCH = 7, 4096, 64
WIDE = f"gpt:layers={BLOCKS},hidden=12288,heads=96,positions=4096"
"""So wide and so long that some stages have to recompute some of their layers."""
ORDERS = ("tp-cp-ep-dp-pp", "dp-tp-pp-ep-cp")
SCHEDULES = ("1f1b", "interleaved", "zb-h1", "zb-v")


def priced_on(cluster: Cluster, model: str, sequence: int, batch: int, space: Space) -> tuple[StrategyPrices, Priced]:
    workload, use = open_workload(model, 1, sequence), NetworkUse(transport=transport_of(cluster.device))
    prices = StrategyPrices(workload, pricer(cluster.device), cluster.fabric(), use)
    return prices, prices.price(enumerate_space(space, workload, cluster.gpus, batch))


@pytest.fixture(scope="module")
def tight() -> tuple[StrategyPrices, Priced]:
    space = Space(
        tensor=(4,), pipeline=(2,), context=(1,), micro_batch=(4, 8), zero=(0,), interleave=(2,), sequence=(True,),
        schedules=SCHEDULES, recompute=("none", "blocks"),
    )  # fmt: skip
    return priced_on(read_cluster("dgx-a100:1"), WIDE, SEQUENCE, BATCH, space)


def every_choice(tailor: Tailor) -> Cuts:
    """All cuts with all numbers of recomputed blocks in each of their pieces."""
    firsts, again = [], []
    for cut in combinations(range(1, BLOCKS + 2), tailor.pieces - 1):
        border = np.clip([0, *cut, BLOCKS + 2], 1, BLOCKS + 1)
        for some in product(*(range(many + 1) for many in np.diff(border).tolist())):
            firsts.append((0, *cut))
            again.append(some)
    return tailor.cut_as(np.array(firsts), np.array(again))


def plain_ones(priced: Priced) -> list[int]:
    return [int(at) for at in np.flatnonzero(~priced.candidates.by_block)]


def test_the_best_of_all_cuts_and_recomputed_blocks_is_not_below_its_floor(
    tight: tuple[StrategyPrices, Priced],
) -> None:
    prices, priced = tight
    simulator = Simulator(PlannerQuestion(WIDE, read_cluster("dgx-a100:1"), BATCH, SEQUENCE))
    recomputing = 0
    for at in plain_ones(priced):
        tailor = Tailor(prices, priced, at)
        cuts, best, again = every_choice(tailor), np.inf, 0
        for one in np.argsort(cuts.replay_s, kind="stable").tolist():
            if cuts.replay_s[one] >= best:
                break
            seconds = simulator.seconds(tailor.strategy(cuts, one), tailor.order, tailor.algorithm)
            if seconds < best:
                best, again = seconds, int(cuts.again[one].sum())
        floor = spread_of(prices, priced, at)
        assert 0.85 * best <= floor <= best, tailor.strategy(cuts, 0).said()
        recomputing += again > 0
    assert recomputing == len(SCHEDULES)


def test_what_stages_hold_at_their_moments_is_what_they_hold(tight: tuple[StrategyPrices, Priced]) -> None:
    prices, priced = tight
    room = usable_bytes(prices.room)
    for at in plain_ones(priced):
        tailor = Tailor(prices, priced, at)
        assert prices.use.transport is not None
        rows, network = free_network(priced, np.array([at]), prices.fabric, prices.use)
        made, moments = pieces_of(priced, rows[0], network), moments_of(rows[0], priced.kernels.written)
        assert made is not None
        mine = (tailor.homes[None, :] == np.arange(2)[:, None]).astype(np.float64)
        held, left = in_memory(made, mine, moments, room)
        cuts = every_choice(tailor)
        ends = np.append(cuts.firsts[:, 1:], np.full((len(cuts.firsts), 1), BLOCKS + 2), axis=1)
        blocks = np.clip(ends, 1, BLOCKS + 1) - np.clip(cuts.firsts, 1, BLOCKS + 1)
        full = np.hstack([blocks, cuts.again, np.zeros((len(blocks), 1))]) @ held.T + 1 - left
        exact = (cuts.memory_bytes - WORKSPACE_BYTES) / (1 + FRAGMENTATION) / room
        assert (full.max(1) <= exact).all()
        # Not counted: copies of a tied embedding, and what one block computes again while its backward pass runs.
        assert (full.max(1) >= exact - 0.12).all()


@pytest.mark.parametrize("seed", range(20))
def test_no_deal_of_whole_blocks_has_a_fullest_stage_below_the_least(seed: int) -> None:
    rng = np.random.default_rng(seed)
    begun, block, blocks = rng.uniform(0, 3, 3), rng.uniform(0.5, 2), int(rng.integers(0, 9))
    deals = (deal for deal in product(range(blocks + 1), repeat=3) if sum(deal) == blocks)
    assert fullest_stage(begun, block, blocks) == pytest.approx(
        min(float((begun + block * np.array(deal)).max()) for deal in deals)
    )


def test_passes_that_wait_for_weights_take_no_longer_than_the_step_whatever_collectives_run() -> None:
    cluster, model = read_cluster("4x2", Given(nics=1, nic_bandwidth=4e10)), "llama:layers=8,hidden=4096,heads=32"
    space = Space(server=2, pipeline=(1,), micro_batch=(1, 2, 4), zero=(3,), recompute=("none", "full"))
    prices, priced = priced_on(cluster, model, 2048, 64, space)
    simulator, waiting = Simulator(PlannerQuestion(model, cluster, 64, 2048)), 0
    layouts, which = priced.candidates.layouts
    for at in np.flatnonzero(priced.fits).tolist():
        strategy = priced.strategy(at, prices.workload)
        best = min(
            simulator.seconds(strategy, order, algorithm)
            for order, algorithm in product(ORDERS, ("ring", "hierarchical-ring", "double-tree"))
        )
        floor = narrow_of(prices, priced, at)
        crossing = narrow_floor(priced, priced.kernels.rows[at], layouts[which[at]], narrowest(prices.fabric), 1.0)
        waiting += bool(floor > 1.01 * max(crossing, floors_of(prices, priced, np.array([at]), best)[0]))
        assert floor <= best, strategy.said()
    assert waiting >= 4
