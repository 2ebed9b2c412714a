"""Bulk pricing against the simulator: memory to rounding, bounds never above the step, equal where nothing contends."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

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
from ropewalk.planner.tailored import Cuts, Tailor
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.training.inside import inside_of
from ropewalk.training.network import NetworkUse, expand_on, run_on, transport_of
from ropewalk.training.prepared import prepared
from ropewalk.training.question import TrainingQuestion
from ropewalk.workload.source import open_workload
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo.stacks import stack_of

EVERY_SCHEDULE = ("1f1b", "interleaved", "gpipe", "1f1b-deep", "zb-h1", "zb-h2", "zb-v")


SKIPS = str(Path(__file__).parents[1] / "data" / "profiles" / "skips-pbs-2.txt")
"""Measured layers, each of which reads the one before; some read an earlier one too."""


@lru_cache(maxsize=1)
def prices_of(model: str, cluster: Cluster, batch: int, sequence: int | None) -> tuple[StrategyPrices, Priced]:
    workload, listed = open_workload(model, 1, sequence), pricer(cluster.device, "bf16")
    space = Space(server=cluster.servers[0].gpus, schedules=EVERY_SCHEDULE)
    use = NetworkUse().settled(cluster.device, cluster).run_by(stack_of(workload))
    inside = inside_of(cluster, use, DEFAULT_ORDER, listed.device, stack_of(workload))
    prices = StrategyPrices(workload, listed, cluster.fabric(), use, inside=inside)
    return prices, prices.price(enumerate_space(space, workload, cluster.gpus, batch))


def priced(model: str, cluster: Cluster, batch: int, sequence: int | None) -> tuple[Priced, Workload]:
    prices, found = prices_of(model, cluster, batch, sequence)
    return found, prices.workload


def simulated(
    model: str, cluster: Cluster, sequence: int | None, found: Priced, at: int, workload: Workload
) -> tuple[float, float]:
    strategy = found.strategy(at, workload)
    made = prepared(TrainingQuestion(model, cluster, sequence=sequence, decided=strategy, detail="stage"))
    step, use = made.write(), made.question.network
    run = run_on(step, expand_on(step, made.fabric, use), made.fabric, use)
    return run.trace.makespan, made.memory.most


ONCE = "mixtral-8x7b:layers=8,stack=megatron,dispatch=deepep,domain=4,imbalance=1.2"
TWO_GPUS = read_cluster("8x2", Given(nics=1))
CLUSTERS = {
    "a NIC per GPU": ("gpt2", read_cluster("2x4"), 16, 256),
    "a NIC per server": ("gpt2", read_cluster("4x2", Given(nics=1)), 16, 256),
    "two spines for four leafs": ("gpt2", replace(TWO_GPUS, network="leaf-spine:4x2x4", rails=False), 32, 128),
    "a ring of GPUs": ("bert-large", replace(read_cluster("6x1"), network="torus:6"), 12, 64),
    "rails that nothing joins": ("gpt2", read_cluster("4x2", Given(network="rail-only", nic_bandwidth=1e9)), 16, 128),
    "half of a fat-tree": ("gpt2", read_cluster("4x4", Given(network="fat-tree:2to1", nic_bandwidth=1e9)), 16, 128),
    "experts, tokens sent once": (ONCE, read_cluster("4x4"), 32, 512),
    "an embedding that is tied": ("gpt2-xl", read_cluster("2x2"), 8, 128),
    "frozen blocks of two kinds": ("gpt-oss-20b:layers=3,window=64,tied=true,lora=8", read_cluster("2x2"), 16, 128),
    "skip connections": (SKIPS, read_cluster("2x4", Given(nics=1, nic_bandwidth=1e9)), 16, None),
    "copies around shards": ("llama-3.2-1b:layers=3,stack=fsdp2", read_cluster("2x2"), 8, 256),
    "products in chunks": ("llama-3.2-1b:layers=3,stack=megatron", read_cluster("2x4"), 8, 512),
    "tables spread over ranks": ("dlrm", read_cluster("2x2"), 64, None),
}  # fmt: skip


@pytest.mark.parametrize("name", CLUSTERS)
def test_bounds_of_random_strategies_are_not_above_their_simulated_steps(name: str) -> None:
    model, cluster, batch, sequence = CLUSTERS[name]
    found, workload = priced(model, cluster, batch, sequence)
    fit = np.flatnonzero(found.fits)
    chosen = np.random.default_rng(7).choice(fit, min(14, len(fit)), replace=False)
    bounds = found.replay(chosen)
    assert (found.floor_s[chosen] <= bounds * (1 + 1e-9)).all()
    for at, bound in zip(chosen.tolist(), bounds.tolist(), strict=True):
        seconds, most = simulated(model, cluster, sequence, found, at, workload)
        assert bound <= seconds * (1 + 1e-9), found.strategy(at, workload).said()
        assert most == pytest.approx(float(found.memory_bytes[at]), rel=1e-12)


@pytest.mark.parametrize("name", CLUSTERS)
def test_no_bound_of_two_thousand_strategies_is_above_its_step(name: str) -> None:
    model, cluster, batch, sequence = CLUSTERS[name]
    found, workload = priced(model, cluster, batch, sequence)
    fit = np.flatnonzero(found.fits)
    chosen = np.random.default_rng(11).choice(fit, min(255, len(fit)), replace=False)
    simulator = Simulator(PlannerQuestion(model, cluster, batch, sequence))
    seconds = np.array([simulator.seconds(found.strategy(at, workload)) for at in chosen.tolist()])
    assert (found.replay(chosen) <= seconds * (1 + 1e-9)).all()


ALGORITHMS = ("ring", "double-tree", "hierarchical-ring", "mesh", "data=hierarchical-ring,zero=bruck")
ORDERS = ("tp-cp-ep-dp-pp", "pp-dp-ep-cp-tp", "dp-tp-pp-ep-cp")
BUCKETS = (0.0, 25.0 * 2**20, 1e9)


def cut_at_random(prices: StrategyPrices, found: Priced, rng: np.random.Generator) -> tuple[Tailor, Cuts] | None:
    """A strategy cut anywhere, with other collectives, buckets and placement; None where it does not fit."""
    column = found.candidates.column
    at = int(rng.choice(np.flatnonzero((column("pipeline") > 1) & ~found.candidates.by_block)))
    algorithm, order, bucket = rng.choice(ALGORITHMS), rng.choice(ORDERS), float(rng.choice(BUCKETS))
    tailor = Tailor(prices, found, at, str(order), str(algorithm), bucket)
    layers = len(prices.workload.layers)
    firsts = np.array([[0, *sorted(rng.choice(np.arange(1, layers), tailor.pieces - 1, replace=False))]])
    cuts = tailor.cut(firsts, alike=bool(rng.integers(2)))
    return (tailor, cuts) if np.isfinite(cuts.replay_s[0]) else None


@pytest.mark.parametrize("name", [name for name, case in CLUSTERS.items() if case[0] != "dlrm"])
def test_no_bound_of_any_cut_collective_bucket_and_placement_is_above_its_step(name: str) -> None:
    model, cluster, batch, sequence = CLUSTERS[name]
    prices, found = prices_of(model, cluster, batch, sequence)
    rng, simulator = np.random.default_rng(5), Simulator(PlannerQuestion(model, cluster, batch, sequence))
    for number in range(32):
        made = cut_at_random(prices, found, rng)
        if made is None:
            continue
        tailor, cuts = made
        strategy = tailor.strategy(cuts, 0)
        plan = replace(strategy, order=replace(strategy.order, fusion=tailor.bucket_bytes))
        seconds = simulator.seconds(plan, tailor.order, tailor.algorithm)
        assert cuts.replay_s[0] <= seconds * (1 + 1e-9), (plan, tailor.order, tailor.algorithm)
        assert floors_of(prices, found, np.array([tailor.at]), seconds)[0] <= seconds * (1 + 1e-9), plan
        assert spread_of(prices, found, tailor.at) <= seconds, plan
        if number < 4:
            asked = TrainingQuestion(model, cluster, sequence=sequence, decided=plan, detail="stage")
            assert prepared(asked).memory.most == pytest.approx(float(cuts.memory_bytes[0]), rel=1e-12)


@pytest.mark.parametrize("name", [name for name, case in CLUSTERS.items() if case[0] != "dlrm"])
def test_what_must_get_through_the_narrowest_cut_takes_no_longer_than_the_step(name: str) -> None:
    model, cluster, batch, sequence = CLUSTERS[name]
    prices, found = prices_of(model, cluster, batch, sequence)
    rng, simulator = np.random.default_rng(9), Simulator(PlannerQuestion(model, cluster, batch, sequence))
    whole = np.flatnonzero(found.fits & (found.candidates.column("pipeline") == 1))
    for at in rng.choice(whole, min(16, len(whole)), replace=False).tolist():
        order, algorithm = str(rng.choice(ORDERS)), str(rng.choice(ALGORITHMS))
        seconds = simulator.seconds(found.strategy(at, prices.workload), order, algorithm)
        assert narrow_of(prices, found, at) <= seconds, (found.strategy(at, prices.workload), order, algorithm)
        assert floors_of(prices, found, np.array([at]), seconds)[0] <= seconds * (1 + 1e-9)


def test_where_nothing_contends_the_replay_is_the_simulated_step() -> None:
    model, cluster, batch, sequence = CLUSTERS["a NIC per GPU"]
    found, workload = priced(model, cluster, batch, sequence)
    quiet = np.flatnonzero(found.fits & found.symmetric & (found.candidates.column("zero") == 0))
    chosen = np.random.default_rng(3).choice(quiet, 10, replace=False)
    for at, bound in zip(chosen.tolist(), found.replay(chosen).tolist(), strict=True):
        seconds, _ = simulated(model, cluster, sequence, found, at, workload)
        assert bound == pytest.approx(seconds, rel=1e-3), found.strategy(at, workload).said()


def test_blocks_are_recomputed_until_it_fits_and_no_further() -> None:
    cluster = read_cluster("1x8", Given(device="a100"))
    found, workload = priced("llama-7b", cluster, 64, 4096)
    by_block = np.flatnonzero(found.candidates.by_block & found.fits)
    assert len(by_block)
    for at in by_block[:: max(1, len(by_block) // 6)].tolist():
        strategy, again = found.strategy(at, workload), int(found.candidates.column("again")[at])
        seconds, most = simulated("llama-7b", cluster, 4096, found, at, workload)
        assert most == pytest.approx(float(found.memory_bytes[at]), rel=1e-12)
        assert found.replay(np.array([at]))[0] <= seconds * (1 + 1e-9)
        fewer = found.candidates.recomputing(found.candidates.column("again") - 1)
        one_less = replace(found, candidates=fewer).strategy(at, workload)
        asked = TrainingQuestion("llama-7b", cluster, sequence=4096, decided=one_less, memory_check=False)
        assert again >= 1
        assert len(one_less.choices) < len(strategy.choices)
        assert prepared(asked).memory.most > 80e9


@pytest.mark.parametrize("precision", ["fp8", "nvfp4"])
def test_bytes_of_narrow_products_are_those_of_the_simulated_step(precision: str) -> None:
    cluster = read_cluster("2x2", Given(device="b200"))
    workload = open_workload("llama-3.2-1b:layers=3,stack=megatron", 1, 256)
    prices = StrategyPrices(
        workload, pricer("b200", precision), cluster.fabric(), NetworkUse(transport=transport_of("b200"))
    )
    found = prices.price(enumerate_space(Space(server=2), workload, cluster.gpus, 8))
    for at in np.random.default_rng(3).choice(np.flatnonzero(found.fits), 12, replace=False).tolist():
        needed = prices.memory_of(found.strategy(at, workload))
        assert needed == pytest.approx(float(found.memory_bytes[at]), rel=1e-12)
