"""Settling from one max-min solution to the next gives the same times as solving the whole anew at every event."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.fabric import BCube, FatTree, IdealSwitch, LeafSpine, RandomRegular, Torus
from ropewalk.routing import ROUTERS
from ropewalk.sim.flow.system import System, run_system, system_of
from ropewalk.task import TaskKind, make_graph

PLACES = [
    (IdealSwitch(6), "shortest"),
    (FatTree(4), "dmodk"),
    (FatTree(4), "ecmp"),
    (FatTree(4), "spray"),
    (LeafSpine(3, 2, 4, cables=2), "ecmp"),
    (Torus((3, 4)), "dimension-rotated"),
    (BCube(3, 2), "dimension-rotated"),
    (RandomRegular(12, 3, 1), "shortest"),
]


def crowd(number: int, seed: int, transfers: int) -> System:
    """Transfers of many sizes that come one by one, in bursts and after each other, over links of unequal speed."""
    builder, router = PLACES[number]
    dice = np.random.default_rng(seed)
    fabric = builder.build()
    speed = dice.choice([1.0, 2.0, 4.0], fabric.links) if dice.random() < 0.5 else np.ones(fabric.links)
    fabric = replace(fabric, bandwidth=speed * 1e9)
    src = dice.integers(0, fabric.hosts, transfers)
    dst = (src + dice.integers(1, fabric.hosts, transfers)) % fabric.hosts
    size = dice.choice([1e6, 2e6, 5e6], transfers) if dice.random() < 0.3 else dice.uniform(1e5, 1e7, transfers)
    delay = dice.choice([0.0, 1e-3, 2e-3], transfers) if dice.random() < 0.5 else dice.uniform(0, 2e-2, transfers)
    waits = (dice.random(transfers) < 0.5) & (np.arange(transfers) > 0)
    dep = [int(dice.integers(0, task)) for task in np.flatnonzero(waits)]
    graph = make_graph(
        np.full(transfers, TaskKind.TRANSFER),
        src,
        dst,
        size,
        np.concatenate([[0], np.cumsum(waits)]),
        dep,
        start_up=delay,
    )
    return system_of(graph, ROUTERS[router].make(seed)(fabric, src.astype(np.int32), dst.astype(np.int32)))


def solved_anew(system: System) -> System:
    """The same system with a cap that no flow ever reaches: caps are only served by solving anew."""
    return replace(system, flow_cap=np.full_like(system.flow_cap, 1e30))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(PLACES) - 1), st.integers(0, 10**6), st.sampled_from([3, 10, 40, 150]))
def test_settling_gives_the_times_of_solving_anew(number: int, seed: int, transfers: int) -> None:
    system = crowd(number, seed, transfers)
    settled, anew = run_system(system), run_system(solved_anew(system))
    assert settled.end == pytest.approx(anew.end, rel=1e-9)
    assert settled.start == pytest.approx(anew.start, rel=1e-9, abs=1e-15)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(PLACES) - 1), st.integers(0, 10**6), st.sampled_from([10, 60]))
def test_giving_up_in_the_middle_of_settling_does_no_harm(number: int, seed: int, transfers: int) -> None:
    system = crowd(number, seed, transfers)
    hasty, anew = run_system(system, patience=0), run_system(solved_anew(system))
    assert hasty.end == pytest.approx(anew.end, rel=1e-9)


def test_settling_gives_the_times_of_solving_anew_in_a_large_crowd() -> None:
    system = crowd(2, 7, 3000)
    assert run_system(system).end == pytest.approx(run_system(solved_anew(system)).end, rel=1e-9)
