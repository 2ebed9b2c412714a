"""Collectives of a step whose reductions have to be added up: beside what is sent, or piece after piece."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives.choice import CollectiveChoice
from ropewalk.collectives.mixer import FREE, Mixer, MixPlace
from ropewalk.errors import GraphError
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task.expand import expand
from ropewalk.task.graph import TaskKind
from ropewalk.task.lockstep import ADDER
from ropewalk.task.step import Act, StepSketch
from ropewalk.task.transport import Transport

RANKS = 4
SIZE = 4.0
ONE_WAY = CollectiveChoice("ring-one-way")


def expanded(act=Act.ALL_REDUCE, *, rate=np.inf, mode="fluid", start_up_s=0.0, times=1, collectives=ONE_WAY):
    sketch = StepSketch(RANKS)
    for _ in range(times):
        sketch.collective(act, range(RANKS), SIZE)
    transport = Transport(start_up_s=start_up_s, mixer=Mixer(rate))
    fabric = IdealSwitch(RANKS, bandwidth=1.0).build()
    return expand(
        sketch.step(), range(RANKS), fabric, transport=transport, mode=mode, router=shortest, collectives=collectives
    )


def seconds(*given, **asked):
    expansion = expanded(*given, **asked)
    routed, routes = expansion.routed(shortest)
    return simulate(routed.graph, routes).makespan


@pytest.mark.parametrize(("rate", "longer"), [(0.25, 12.0), (0.5, 6.0), (10.0, 6.0)])
def test_rounds_that_flow_together_take_the_longer_of_sending_and_adding(rate, longer):
    assert seconds(rate=rate) == pytest.approx(longer, rel=1e-12)
    assert seconds(rate=rate, start_up_s=2.0) == pytest.approx(2.0 + longer, rel=1e-12)


@pytest.mark.parametrize("rate", [0.25, 0.5, 10.0])
def test_rounds_that_are_written_out_send_and_add_in_turn(rate):
    assert seconds(rate=rate, mode="rounds") == pytest.approx(6.0 + 3.0 / rate, rel=1e-12)


@pytest.mark.parametrize("mode", ["fluid", "rounds"])
def test_gathering_adds_nothing_and_scattering_adds_it_all(mode):
    assert seconds(Act.ALL_GATHER, rate=0.1, mode=mode) == seconds(Act.ALL_GATHER, mode=mode)
    added = 30.0 if mode == "fluid" else 33.0
    assert seconds(Act.REDUCE_SCATTER, rate=0.1, mode=mode) == pytest.approx(added, rel=1e-12)


@pytest.mark.parametrize("mode", ["fluid", "rounds"])
def test_collectives_at_the_same_time_take_turns_at_the_adder(mode):
    alone = seconds(rate=0.25, mode=mode)
    assert seconds(rate=0.25, mode=mode, times=2) >= 24.0 > alone


def test_collectives_that_flow_beside_each_other_take_as_long_as_they_add_together():
    assert seconds(rate=0.25, times=3) == pytest.approx(36.0, rel=1e-12)
    assert seconds(rate=0.25, times=3, collectives=CollectiveChoice("forest")) == pytest.approx(36.0, rel=1e-12)
    assert seconds(Act.ALL_GATHER, rate=0.25, times=3) == seconds(Act.ALL_GATHER, times=3)


def test_an_adder_that_keeps_up_with_all_that_arrives_leaves_no_trace():
    kept_up, free = expanded(rate=1.0).graph, expanded().graph
    for column in ("kind", "place", "peer", "amount", "start_up", "rate_cap", "dep"):
        assert np.array_equal(getattr(kept_up, column), getattr(free, column))


@pytest.mark.parametrize("mode", ["fluid", "rounds"])
def test_adds_run_on_a_stream_of_their_own_where_they_were_received(mode):
    graph = expanded(rate=0.5, mode=mode).graph
    adds = graph.kind == TaskKind.COMPUTE
    assert set(graph.stream[adds].tolist()) == {ADDER}
    assert np.bincount(graph.place[adds], graph.amount[adds]).tolist() == [3 / 4 * SIZE / 0.5] * RANKS


def test_paths_of_a_schedule_bring_their_share_of_what_is_added():
    forest = CollectiveChoice("forest")
    free, mixed = seconds(collectives=forest), seconds(rate=0.1, collectives=forest)
    assert mixed == pytest.approx(max(free, 3 / 4 * SIZE / 0.1), rel=1e-6)


def test_ranks_do_not_add_in_switches():
    with pytest.raises(GraphError, match="leave network out"):
        Transport(mixer=Mixer(1e9, MixPlace.NETWORK))
    assert Transport().mixer == FREE
