"""Laws of the flow level: the kernel and the engine equal a plain reference, and every rate is physical and fair."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import flow_reference
import numpy as np
import pytest
from fair_rates import max_min
from flow_worlds import routed, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.fabric import FabricDraft, IdealSwitch
from ropewalk.routing import Routes, shortest
from ropewalk.sim.flow.system import System, Times, run_system, system_of
from ropewalk.task import Sketch, TaskGraph, TaskKind

CLOSE = 1e-9

weights = st.sampled_from([Fraction(1), Fraction(1), Fraction(1, 2), Fraction(1, 4), Fraction(3)])


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Fraction], list[flow_reference.Flow]]:
    capacity = draw(st.lists(st.integers(1, 12).map(Fraction), min_size=1, max_size=8))
    uses = st.dictionaries(st.integers(0, len(capacity) - 1), weights, min_size=1, max_size=5)
    cap = st.one_of(st.none(), st.none(), st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(2), Fraction(50)]))
    flows = st.lists(st.builds(flow_reference.Flow, uses, cap), min_size=1, max_size=12)
    return capacity, draw(flows)


@settings(max_examples=200, deadline=None)
@given(problems())
def test_the_kernel_gives_the_rates_of_progressive_filling(
    problem: tuple[list[Fraction], list[flow_reference.Flow]],
) -> None:
    capacity, flows = problem
    start = np.cumsum([0, *(len(flow.uses) for flow in flows)])
    link = np.array([link for flow in flows for link in flow.uses], np.int32)
    weight = np.array([float(weight) for flow in flows for weight in flow.uses.values()])
    cap = np.array([np.inf if flow.cap is None else float(flow.cap) for flow in flows])
    rate, bound_by = max_min(np.array(capacity, float), start, link, weight, cap)
    wanted = flow_reference.max_min(capacity, flows)
    assert rate == pytest.approx([float(value) for value in wanted], rel=CLOSE)
    for number, flow in enumerate(flows):
        if bound_by[number] < 0:
            assert flow.cap == wanted[number]
        else:
            load = sum(
                other.uses.get(int(bound_by[number]), 0) * value for other, value in zip(flows, wanted, strict=True)
            )
            assert int(bound_by[number]) in flow.uses
            assert load == capacity[bound_by[number]]


@settings(max_examples=30, deadline=None)
@given(problems(), st.data())
def test_a_class_of_equal_flows_gets_what_its_flows_would_get(
    problem: tuple[list[Fraction], list[flow_reference.Flow]], data: st.DataObject
) -> None:
    capacity, flows = problem
    count = data.draw(st.lists(st.integers(1, 4), min_size=len(flows), max_size=len(flows)))
    start = np.cumsum([0, *(len(flow.uses) for flow in flows)])
    link = np.array([link for flow in flows for link in flow.uses], np.int32)
    weight = np.array([float(weight) for flow in flows for weight in flow.uses.values()])
    cap = np.array([np.inf if flow.cap is None else float(flow.cap) for flow in flows])
    rate, _ = max_min(np.array(capacity, float), start, link, weight, cap, np.array(count, float))
    one_by_one = [flow for flow, many in zip(flows, count, strict=True) for _ in range(many)]
    wanted = flow_reference.max_min(capacity, one_by_one)
    assert np.repeat(rate, count) == pytest.approx([float(value) for value in wanted], rel=CLOSE)


@settings(max_examples=250, deadline=None)
@given(worlds())
def test_the_engine_has_the_times_of_the_plain_reference(world: tuple[TaskGraph, Routes]) -> None:
    graph, routes = world
    times = run_system(system_of(graph, routes))
    start, end = flow_reference.simulate(graph, routes)
    assert times.end == pytest.approx(end, rel=CLOSE, abs=1e-12)
    assert times.start == pytest.approx(start, rel=CLOSE, abs=1e-12)


class Rates:
    """The rate log of a run as intervals: (begin, length, bytes/s of every class, live transfers of every class)."""

    def __init__(self, system: System, times: Times) -> None:
        assert times.rate_time is not None
        assert times.rate_flow is not None
        assert times.rate is not None
        assert (np.diff(times.rate_time) >= 0).all()
        classes = len(system.flow_priority)
        self.use = np.zeros((classes, len(system.capacity)))
        owner = np.repeat(np.arange(classes), np.diff(system.use_start))
        self.use[owner, system.use_link] = system.use_weight
        transfer = np.flatnonzero((system.kind == TaskKind.TRANSFER) & (system.amount > 0))
        arrival = times.start[transfer] + system.delay[transfer]
        self.intervals = []
        rate = np.zeros(classes)
        instants = np.append(np.unique(times.rate_time), np.inf)
        for begin, stop in pairwise(instants):
            now = times.rate_time == begin
            for flow, value in zip(times.rate_flow[now], times.rate[now], strict=True):
                rate[flow] = value  # later entries of a class replace earlier ones
            if stop == np.inf:
                assert (rate == 0).all(), "something still flows after the last change"
                continue
            middle = (begin + stop) / 2
            live = np.zeros(classes)
            np.add.at(live, system.place[transfer], (arrival <= middle) & (middle < times.end[transfer]))
            self.intervals.append((float(begin), float(stop - begin), rate.copy(), live))


def recorded(world: tuple[TaskGraph, Routes]) -> tuple[System, Times, Rates]:
    system = system_of(*world)
    times = run_system(system, record_rates=True)
    return system, times, Rates(system, times)


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_no_link_is_ever_above_its_capacity(world: tuple[TaskGraph, Routes]) -> None:
    system, _, rates = recorded(world)
    for _, _, rate, _ in rates.intervals:
        assert (rate @ rates.use <= system.capacity * (1 + CLOSE)).all()


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_every_live_flow_has_a_bottleneck(world: tuple[TaskGraph, Routes]) -> None:
    """Its cap, or a full link on which no flow of its class or a less urgent one is faster."""
    system, _, rates = recorded(world)
    for _, _, total, live in rates.intervals:
        rate = np.divide(total, live, out=np.zeros(len(live)), where=live > 0)
        full = total @ rates.use >= system.capacity * (1 - CLOSE)
        for flow in np.flatnonzero(live):
            at_cap = rate[flow] >= system.flow_cap[flow] * (1 - CLOSE)
            rivals = (live > 0) & (system.flow_priority >= system.flow_priority[flow])
            fastest = np.max(np.where(rivals[:, None] & (rates.use > 0), rate[:, None], 0.0), axis=0)
            slack = CLOSE * system.capacity
            assert at_cap or (full & (rates.use[flow] > 0) & (rate[flow] >= fastest - slack)).any()


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_every_byte_is_sent_exactly_once(world: tuple[TaskGraph, Routes]) -> None:
    system, _, rates = recorded(world)
    sent = sum((length * rate for _, length, rate, _ in rates.intervals), np.zeros(len(system.flow_priority)))
    transfer = system.kind == TaskKind.TRANSFER
    asked = np.bincount(system.place[transfer], weights=system.amount[transfer], minlength=len(sent))
    assert sent == pytest.approx(asked, rel=CLOSE, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(worlds(), st.sampled_from([2.0, 4.0, 0.5]))
def test_a_network_that_is_faster_in_everything_is_faster_in_proportion(
    world: tuple[TaskGraph, Routes], factor: float
) -> None:
    graph, routes = world
    fabric = routes.fabric
    quick = replace(fabric, bandwidth=fabric.bandwidth * factor, latency=fabric.latency / factor)
    hurried = replace(
        graph,
        amount=np.where(graph.kind == TaskKind.COMPUTE, graph.amount / factor, graph.amount),
        start_up=graph.start_up / factor,
        rate_cap=graph.rate_cap * factor,
    )
    slow = run_system(system_of(graph, routes))
    fast = run_system(system_of(hurried, replace(routes, fabric=quick)))
    # Powers of two change no digit, so nothing is rounded differently.
    assert np.array_equal(fast.end * factor, slow.end)
    assert np.array_equal(fast.start * factor, slow.start)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 30), st.integers(0, 20)), min_size=1, max_size=8),
    st.floats(1.0, 10.0),
)
def test_into_one_host_more_bandwidth_never_takes_longer(sends: list[tuple[int, int, int]], factor: float) -> None:
    """One shared link that is never idle while bytes wait. (On many links there are exceptions: see below.)"""
    sketch = Sketch()
    for src, size, start_up in sends:
        sketch.transfer(src, 0, float(size), start_up=float(start_up))
    graph = sketch.graph()
    slow, fast = (
        run_system(system_of(graph, routed(graph, IdealSwitch(6, bandwidth=speed).build(), "shortest"))).end.max()
        for speed in (1.0, factor)
    )
    assert fast <= slow * (1 + CLOSE)
    assert fast >= sum(size for _, size, _ in sends) / factor * (1 - CLOSE)


def test_a_faster_link_can_make_the_whole_later() -> None:
    """Why no law says that time falls when one link gets faster: an early rival delays the critical chain."""
    ends = []
    for first_link in (1.0, 2.0):
        draft = FabricDraft("detour")
        draft.add_hosts(["a", "b", "c", "d"])
        draft.add_links([0, 1, 2], [1, 2, 3], [first_link, 1.0, 1.0], duplex=False)
        fabric = draft.freeze()
        sketch = Sketch()
        opening = sketch.transfer(0, 1, 1.0)
        sketch.transfer(1, 2, 1.0, after=[opening])
        critical = sketch.transfer(1, 2, 1.0)
        sketch.transfer(2, 3, 10.0, after=[critical])
        routes = shortest(fabric, np.array([0, 1, 2], np.int32), np.array([1, 2, 3], np.int32))
        ends.append(run_system(system_of(sketch.graph(), routes)).end.max())
    assert ends == pytest.approx([11.0, 11.5])


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_the_same_world_gives_the_same_bytes(world: tuple[TaskGraph, Routes]) -> None:
    first, second = (run_system(system_of(*world), record_rates=True) for _ in range(2))
    for name in ("start", "end", "bound_by", "rate_time", "rate_flow", "rate"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
