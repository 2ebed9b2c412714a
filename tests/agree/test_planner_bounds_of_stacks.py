"""What a stack does and how ranks meet, in bulk prices: memory to rounding, bounds never above the simulated step."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from ropewalk.device.pricer import pricer
from ropewalk.hardware import Cluster, Given, read_cluster
from ropewalk.planner.anywhere import floors_of, narrow_of, spread_of
from ropewalk.planner.enumerated import enumerate_space
from ropewalk.planner.pricing import Priced, StrategyPrices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import Space
from ropewalk.strategy import Order, Strategy
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.training.inside import inside_of
from ropewalk.training.network import NetworkUse
from ropewalk.workload.source import open_workload
from ropewalk.workload.zoo.stacks import stack_of

SCHEDULES = ("1f1b", "interleaved", "zb-h1")
SHARED = "deepseek-v2-lite:layers=3,hidden=1024,stack=megatron"
NARROW = "llama-3.2-1b:layers=3,stack=megatron"
NARROW_EXPERTS = "mixtral-8x7b:layers=3,hidden=1024,stack=megatron"
FOUR_BLOCKS = "mixtral-8x7b:layers=4,hidden=1024,stack=megatron"
COPIED_EXPERTS = "mixtral-8x7b:layers=3,hidden=1024,stack=fsdp2"
FAST, SLOW = read_cluster("2x4"), read_cluster("4x2", Given(nics=1, nic_bandwidth=5e9))
B200 = read_cluster("2x4", Given(device="b200"))

RING, HEADS = {"context": (2, 4), "exchange": ("ring",)}, {"context": (2, 4), "exchange": ("ulysses",)}
FOLDED = {"context": (1, 2), "fold": (True,)}
BESIDE = {"schedules": ("1f1b-overlap",), "zero": (0, 1), "pipeline": (2,)}
USUAL = Strategy()

Case = tuple[str, Cluster, str, Strategy] | tuple[str, Cluster, str, Strategy, dict[str, Any]]
CASES: dict[str, Case] = {
    "shared experts overlapped": (SHARED, FAST, "bf16", Strategy(shared_overlap=True)),
    "shared experts that hide little": (SHARED, SLOW, "bf16", Strategy(shared_overlap=True)),
    "weights in 8 bits alone": (NARROW, B200, "fp8-delayed", Strategy(narrow_weights=True)),
    "weights in blocks of 8 bits alone": (NARROW, B200, "mxfp8", Strategy(narrow_weights=True)),
    "experts in 8 bits alone": (NARROW_EXPERTS, B200, "fp8-delayed", Strategy(narrow_weights=True)),
    "updated weights gathered ahead": (NARROW, SLOW, "bf16", Strategy(gather_ahead=True), {"zero": (1,)}),
    "narrow weights gathered ahead": (NARROW, B200, "fp8-delayed", Strategy(narrow_weights=True, gather_ahead=True)),
    "gradients behind the backward pass": (
        NARROW,
        FAST,
        "bf16",
        Strategy(order=Order(overlap=False)),
        {"zero": (0, 1)},
    ),
    "passes side by side": (FOUR_BLOCKS, FAST, "bf16", USUAL, BESIDE),
    "passes side by side on a slow network": (FOUR_BLOCKS, SLOW, "bf16", Strategy(gather_ahead=True), BESIDE),
    "products behind what ranks gather": (NARROW, FAST, "bf16", Strategy(tensor_overlap=False)),
    "keys that go round while attention runs": (NARROW, FAST, "bf16", USUAL, RING),
    "keys that go round on a slow network": (NARROW, SLOW, "bf16", USUAL, RING),
    "heads of whole sequences": (NARROW, FAST, "bf16", USUAL, HEADS),
    "heads of whole sequences on a slow network": (NARROW, SLOW, "bf16", USUAL, HEADS),
    "folded experts": (NARROW_EXPERTS, FAST, "bf16", USUAL, FOLDED),
    "folded experts on a slow network": (NARROW_EXPERTS, SLOW, "bf16", USUAL, FOLDED),
    "folded experts in shards that are copied": (COPIED_EXPERTS, FAST, "bf16", USUAL, {**FOLDED, "zero": (3,)}),
    "keys and tokens beside attention and shared experts": (SHARED, FAST, "bf16", Strategy(shared_overlap=True), RING),
}
SEQUENCE, BATCH, CHOSEN = 512, 16, 16


def cluster_of(name: str) -> Cluster:
    return CASES[name][1]


@lru_cache(maxsize=1)
def priced(name: str) -> tuple[StrategyPrices, Priced, Simulator]:
    model, cluster, precision, usual, *chosen = CASES[name]
    workload, listed = open_workload(model, 1, SEQUENCE), pricer(cluster.device, precision)
    use = NetworkUse(algorithm="ring").settled(cluster.device, cluster)
    inside = inside_of(cluster, use, DEFAULT_ORDER, listed.device, stack_of(workload))
    prices = StrategyPrices(workload, listed, cluster.fabric(), use, inside=inside)
    told = {"schedules": SCHEDULES, **dict(*chosen)}
    space = Space(server=cluster.servers[0].gpus, micro_batch=(1, 2), usual=usual, **told)
    found = prices.price(enumerate_space(space, workload, cluster.gpus, BATCH))
    return prices, found, Simulator(PlannerQuestion(model, cluster, BATCH, SEQUENCE, precision=precision))


@pytest.mark.parametrize("name", CASES)
def test_no_bound_is_above_the_simulated_step_and_memory_is_its_own(name: str) -> None:
    prices, found, simulator = priced(name)
    chosen = np.random.default_rng(5).choice(np.flatnonzero(found.fits), CHOSEN, replace=False)
    replays = found.replay(chosen)
    exact = 0
    for at, replay in zip(chosen.tolist(), replays.tolist(), strict=True):
        strategy = found.strategy(at, prices.workload)
        seconds = simulator.seconds(strategy, algorithm="ring")
        one = np.array([at])
        anywhere = narrow_of(prices, found, at) if strategy.pipeline == 1 else spread_of(prices, found, at)
        for bound in (found.floor_s[at], replay, floors_of(prices, found, one, seconds)[0], anywhere):
            assert bound <= seconds * (1 + 1e-9), strategy.said()
        exact += seconds <= replay * (1 + 1e-3)
        assert prices.memory_of(strategy) == pytest.approx(float(found.memory_bytes[at]), rel=1e-12)
    assert exact or cluster_of(name) is SLOW or "side by side" in name, "no replay is the step itself"


def test_every_candidate_has_what_is_usual_where_it_applies() -> None:
    _, found, _ = priced("shared experts overlapped")
    strategies = [found.candidates.strategy(at) for at in range(len(found.candidates))]
    assert {one.shared_overlap for one in strategies if one.expert > 1} == {True}
    assert {one.shared_overlap for one in strategies if one.expert == 1} == {False}
    assert all(found.candidates.place(one) is not None for one in strategies[::50])


def test_weights_are_gathered_ahead_where_the_optimisers_state_alone_is_shared_out() -> None:
    _, found, _ = priced("narrow weights gathered ahead")
    strategies = [found.candidates.strategy(at) for at in range(len(found.candidates))]
    assert {(one.zero, one.gather_ahead) for one in strategies} == {(0, False), (1, True), (2, False)}
    assert all(found.candidates.place(one) is not None for one in strategies[::50])


def test_weights_in_8_bits_alone_are_not_gathered_for_every_pass() -> None:
    _, found, _ = priced("weights in 8 bits alone")
    assert set(found.candidates.column("zero").tolist()) == {0, 1, 2}
