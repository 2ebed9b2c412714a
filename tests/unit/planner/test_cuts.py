"""Pipelines with cuts of their own: pieces that differ, and recompute as little as it takes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ropewalk.device.pricer import pricer
from ropewalk.hardware import read_cluster
from ropewalk.planner.anywhere import floors_anywhere
from ropewalk.planner.cuts import best_cuts, moves
from ropewalk.planner.enumerated import enumerate_space
from ropewalk.planner.finalists import finalists
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space, recomputed_in
from ropewalk.planner.tailored import Tailor
from ropewalk.strategy.frameworks import runnable
from ropewalk.training.network import NetworkUse, transport_of
from ropewalk.training.prepared import prepared
from ropewalk.training.question import TrainingQuestion
from ropewalk.workload.source import open_workload

MODEL, CLUSTER, BATCH, SEQUENCE = "llama2-70b", read_cluster("dgx-a100:8"), 128, 4096
SPACE = Space(tensor=(8,), pipeline=(2,), micro_batch=(4,), zero=(1,), sequence=(True,), interleave=(2,))


@pytest.fixture(scope="module")
def search() -> tuple[StrategyPrices, Priced]:
    workload = open_workload(MODEL, 1, SEQUENCE)
    use = NetworkUse(transport=transport_of(CLUSTER.device))
    prices = StrategyPrices(workload, pricer(CLUSTER.device), CLUSTER.fabric(), use)
    return prices, prices.price(enumerate_space(SPACE, workload, CLUSTER.gpus, BATCH))


def without_recomputation(priced: Priced, schedule: str) -> int:
    column, space = priced.candidates.column, priced.candidates.space
    wanted = (column("recompute") == space.recompute.index("none")) & (
        column("schedule") == space.schedules.index(schedule)
    )
    return int(np.flatnonzero(wanted)[0])


def test_stages_that_keep_fewer_micro_batches_recompute_less_and_hold_more(search):
    prices, priced = search
    tailor = Tailor(prices, priced, without_recomputation(priced, "1f1b"))
    cuts = best_cuts(tailor, alike=False)
    again, first = cuts.again[0].tolist(), int(cuts.firsts[0, 1])
    assert not priced.fits[tailor.at]
    assert again[0] > again[1]
    assert first < len(prices.workload.layers) - first
    by_block = np.flatnonzero(priced.candidates.by_block & priced.fits)
    simulator = Simulator(PlannerQuestion(MODEL, CLUSTER, BATCH, SEQUENCE))
    of_space = min(simulator.seconds(priced.strategy(at, prices.workload)) for at in by_block.tolist())
    assert simulator.seconds(tailor.strategy(cuts, 0)) < 0.97 * of_space


def test_a_cut_has_the_memory_of_its_step_and_one_block_less_does_not_fit(search):
    prices, priced = search
    tailor = Tailor(prices, priced, without_recomputation(priced, "1f1b"))
    cuts = tailor.cut(np.array([[0, 37]]), alike=False)
    plan = tailor.strategy(cuts, 0)
    asked = TrainingQuestion(MODEL, CLUSTER, sequence=SEQUENCE, decided=plan)
    assert prepared(asked).memory.most == pytest.approx(float(cuts.memory_bytes[0]), rel=1e-12)
    assert recomputed_in(plan, (0, 37), prices.workload) == tuple(cuts.again[0].tolist())
    for piece in np.flatnonzero(cuts.again[0] > 0).tolist():
        fewer = cuts.again.copy()
        fewer[0, piece] -= 1
        assert np.isinf(tailor.cut_as(cuts.firsts, fewer).replay_s[0])


def test_where_pieces_are_alike_all_recompute_as_many_blocks_and_megatron_runs_it(search):
    prices, priced = search
    tailor = Tailor(prices, priced, without_recomputation(priced, "1f1b"))
    own, alike = (best_cuts(tailor, alike=alike) for alike in (False, True))
    assert len({*alike.again[0].tolist()}) == 1
    assert own.replay_s[0] <= alike.replay_s[0]
    assert runnable(tailor.strategy(alike, 0), prices.workload)["megatron"] is None
    assert "cannot recompute layers by name" in (runnable(tailor.strategy(own, 0), prices.workload)["megatron"] or "")


def test_a_cut_of_ones_own_is_not_slower_than_the_even_one(search):
    prices, priced = search
    for at in np.flatnonzero(priced.fits & ~priced.candidates.by_block).tolist():
        tailor = Tailor(prices, priced, at)
        assert best_cuts(tailor, alike=True).replay_s[0] <= priced.replay(np.array([at]))[0] * (1 + 1e-12)


def test_a_strategy_stands_where_its_degrees_do_whatever_its_cut(search):
    prices, priced = search
    at = without_recomputation(priced, "interleaved")
    plan = priced.strategy(at, prices.workload)
    assert priced.candidates.place(replace(plan, stages=(0, 20, 40, 60))) == at
    assert priced.candidates.place(replace(plan, tensor=4)) is None


def test_finalists_are_below_the_time_to_beat_and_above_their_floors(search):
    prices, priced = search
    floors = floors_anywhere(prices, priced, 1e9)
    found = finalists(prices, priced, floors, 1e9)
    assert all(one.floor_s <= one.replay_s for one in found)
    assert [one.replay_s for one in found] == sorted(one.replay_s for one in found)
    assert not finalists(prices, priced, floors, float(np.nanmin(floors)))


def test_a_layer_moves_through_all_pieces_between_two():
    found = moves(np.array([0, 2, 4]), 6).tolist()
    assert [0, 3, 5] in found
    assert [0, 1, 3] in found
    assert all(first < after for cut in found for first, after in pairwise(cut))
