"""The flows of one sender stand for all: exchanges between all pairs, folded by translation, equal the plain run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from ropewalk import sync
from ropewalk.collectives import ring_all_reduce
from ropewalk.collectives.act import Act
from ropewalk.collectives.table import program_on
from ropewalk.errors import GraphError, ProgramError
from ropewalk.fabric import BCube, FatTree, Hypercube, IdealSwitch, LeafSpine, Ring, Torus
from ropewalk.routing import ROUTERS, Routes, dimension, dmodk, ecmp
from ropewalk.routing.one_sender import OneSender, one_sender
from ropewalk.sim import simulate_rounds
from ropewalk.sync import SyncQuestion
from ropewalk.task import lockstep
from ropewalk.task.routed import route_rounds

PROGRAMS = {
    "mesh": partial(program_on, name="mesh"),
    "ps-sharded": partial(program_on, name="ps-sharded"),
    "all-to-all": partial(program_on, name="direct", act=Act.ALL_TO_ALL),
}

WORLDS = [
    *((IdealSwitch(hosts), "dmodk") for hosts in (2, 5, 16)),
    *((LeafSpine(*shape), router) for shape in ((4, 4, 4), (4, 2, 4), (3, 2, 4, 2), (4, 8, 4), (1, 2, 4))
      for router in ("dmodk", "spray")),
    (LeafSpine(4, 2, 4, uplink_bandwidth=31e9), "dmodk"),
    *((FatTree(*shape), router) for shape in ((4,), (6,), (4, 2), (4, 3)) for router in ("dmodk", "spray")),
    *((BCube(*shape), router) for shape in ((3, 2), (4, 2), (2, 4), (5, 1))
      for router in ("dimension", "dimension-rotated")),
    *((Torus(shape), router) for shape in ((3, 3), (4, 4), (5, 3), (4, 2), (2, 3, 4), (1, 6))
      for router in ("dimension", "dimension-rotated")),
    (Ring(7), "dimension"), (Ring(8), "dimension"), (Hypercube(4), "dimension"), (Hypercube(3), "dimension-rotated"),
]  # fmt: skip


def _name(value):
    return getattr(value, "expression", value)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("builder", "router"), WORLDS, ids=_name)
def test_one_sender_takes_as_long_as_all_pairs_one_by_one(builder, router, program):
    # With latencies on the links, flows of one round start at different times and share links unevenly in between.
    fabric = replace(builder, latency=3e-6).build()
    rounds = lockstep(PROGRAMS[program](fabric), 1e6, 10e-6)
    routes = route_rounds(rounds, fabric, ROUTERS[router].make(0))
    assert isinstance(routes, OneSender)
    ours = simulate_rounds(rounds, routes)
    whole = route_rounds(rounds, fabric, ROUTERS[router].make(0), symmetry=False)
    assert isinstance(whole, Routes)
    plain = simulate_rounds(rounds, whole, symmetry=False)
    assert ours.makespan == pytest.approx(plain.makespan, rel=1e-9)
    assert ours.link_bytes == pytest.approx(plain.link_bytes, rel=1e-9)
    assert ours.classes <= 2 * fabric.hosts


def test_ranks_may_run_on_hosts_in_any_order():
    fabric = Torus((3, 4)).build()
    shuffled = np.random.default_rng(3).permutation(12).astype(np.int32)
    rounds = lockstep(program_on(fabric, "mesh"), 1e6, hosts=shuffled)
    routes = route_rounds(rounds, fabric, dimension())
    assert isinstance(routes, OneSender)
    plain = simulate_rounds(rounds, dimension()(fabric, *rounds.all_pairs()), symmetry=False)
    assert simulate_rounds(rounds, routes).makespan == pytest.approx(plain.makespan, rel=1e-9)


def test_a_mesh_of_some_of_the_hosts_is_routed_pair_by_pair():
    fabric = Torus((3, 4)).build()
    some = Torus((3, 3)).build()
    rounds = lockstep(program_on(some, "mesh"), 1e6)
    assert isinstance(route_rounds(rounds, fabric, dimension()), Routes)
    with pytest.raises(GraphError, match="all pairs of the 12 hosts"):
        simulate_rounds(rounds, one_sender(fabric, dimension()))


def test_other_programs_are_routed_pair_by_pair():
    fabric = Torus((3, 3)).build()
    rounds = lockstep(ring_all_reduce([range(9)]), 1e6)
    assert isinstance(route_rounds(rounds, fabric, dimension()), Routes)
    with pytest.raises(GraphError, match="route all its pairs"):
        simulate_rounds(rounds, one_sender(fabric, dimension()))


def test_without_symmetry_one_sender_is_refused():
    fabric = FatTree(4).build()
    rounds = lockstep(program_on(fabric, "mesh"), 1e6)
    with pytest.raises(GraphError, match="without symmetry"):
        simulate_rounds(rounds, one_sender(fabric, dmodk), symmetry=False)


def test_a_slower_link_and_hashed_paths_are_simulated_pair_by_pair():
    fabric = Torus((3, 3)).build()
    speed = fabric.bandwidth.copy()
    speed[5] /= 4
    slow = replace(fabric, bandwidth=speed)
    rounds = lockstep(program_on(fabric, "mesh"), 1e6)
    routes = route_rounds(rounds, slow, dimension())
    assert isinstance(routes, Routes)
    assert simulate_rounds(rounds, routes).makespan > simulate_rounds(rounds, one_sender(fabric, dimension())).makespan
    assert isinstance(route_rounds(rounds, fabric, ecmp(1)), Routes)


def test_hashed_paths_of_16384_hosts_are_refused_as_too_many():
    question = SyncQuestion(("mesh",), ("leaf-spine",), (16384,), routing=("ecmp",))
    with pytest.raises(ProgramError, match="the same routes from every host"):
        sync.answer(question)
    rows = sync.answer(replace(question, levels=("closed",))).rows
    assert [row.max_link_share for row in rows] == [None]


def test_the_study_simulates_a_mesh_of_16384_hosts():
    closed, flow = sync.answer(SyncQuestion(("mesh",), ("leaf-spine",), (16384,))).rows
    assert flow.sync_time_s == pytest.approx(closed.sync_time_s, rel=1e-9)
    assert flow.transfers == 2 * 16384 * 16383
    assert flow.max_link_share == pytest.approx(2 * 16383 / 16384)
