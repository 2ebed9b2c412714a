"""Ties: what is ready at the same time on one stream starts in the listed order, also where tasks take no time."""

from __future__ import annotations

import flow_reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.fabric import IdealSwitch
from ropewalk.routing import Routes, shortest
from ropewalk.sim.flow.system import run_system, system_of
from ropewalk.sim.packet import PacketSettings, Roce, simulate_packets
from ropewalk.task import Sketch, TaskGraph, TaskKind

NOWHERE: Routes = shortest(IdealSwitch(2).build(), np.array([0]), np.array([1]))
MS = 1e-3


@st.composite
def rows(draw: st.DrawFn) -> TaskGraph:
    """Computations on two GPUs with two streams each, every other of no length."""
    sketch = Sketch()
    for task in range(draw(st.integers(2, 12))):
        after = draw(st.lists(st.integers(0, task - 1), max_size=2, unique=True)) if task else []
        if draw(st.integers(0, 5)) == 0:
            sketch.marker(after=after)
        else:
            length = draw(st.sampled_from([0.0, 0.0, 1.0, 2.0])) * MS
            gpu, stream, priority = (draw(st.integers(0, most)) for most in (1, 1, 1))
            sketch.compute(gpu, length, stream=stream, priority=priority, after=after)
    return sketch.graph()


def _flow(graph):
    times = run_system(system_of(graph, NOWHERE))
    return times.start, times.end


def _packet(graph):
    trace = simulate_packets(graph, NOWHERE, PacketSettings(Roce()))
    return trace.start, trace.end


@pytest.mark.parametrize("level", [_flow, _packet])
@settings(max_examples=300, deadline=None)
@given(graph=rows())
def test_both_levels_run_streams_as_the_plain_reference_does(level, graph: TaskGraph) -> None:
    start, end = level(graph)
    wanted_start, wanted_end = flow_reference.simulate(graph, NOWHERE)
    assert start == pytest.approx(wanted_start, abs=1e-12)
    assert end == pytest.approx(wanted_end, abs=1e-12)


@pytest.mark.parametrize("level", [_flow, _packet])
@settings(max_examples=300, deadline=None)
@given(graph=rows())
def test_of_two_equally_urgent_tasks_ready_at_once_the_first_listed_starts_no_later(level, graph: TaskGraph) -> None:
    start, end = level(graph)
    ready = [max((end[dep] for dep in _deps(graph, task)), default=0.0) for task in range(graph.tasks)]
    computes = np.flatnonzero(graph.kind == TaskKind.COMPUTE)
    for one in computes:
        for other in computes:
            alike = all(column[one] == column[other] for column in (graph.place, graph.stream, graph.priority, ready))
            # What takes no time may run before all that becomes ready at the same instant is known.
            at_once = graph.amount[other] == 0 and start[other] == ready[other]
            if one < other and alike and not at_once:
                assert start[one] <= start[other]


def _deps(graph: TaskGraph, task: int) -> list[int]:
    return graph.dep[graph.dep_start[task] : graph.dep_start[task + 1]].tolist()


@pytest.mark.parametrize("level", [_flow, _packet])
def test_what_a_task_of_no_length_makes_ready_is_there_before_streams_choose(level) -> None:
    sketch = Sketch()
    at_once = sketch.compute(0, 0.0, stream=1)
    first = sketch.compute(0, MS, after=[at_once])
    second = sketch.compute(0, MS)
    start, _ = level(sketch.graph())
    assert (start[first], start[second]) == pytest.approx((0.0, MS))
