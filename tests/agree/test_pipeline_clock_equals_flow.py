"""The clock of timetables and the flow simulator give every pass of a step the same times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quiet_steps import simulated, times_of_step, wired
from tiny_models import FlopPrices, transformer

from ropewalk.routing import ROUTERS
from ropewalk.sim.flow.system import run_system, system_of
from ropewalk.strategy import Order, Part, Placement, Strategy
from ropewalk.task import Sketch, TaskKind
from ropewalk.task.lower import lower
from ropewalk.timetable import automatic
from ropewalk.timetable.clock import run, stage_times
from ropewalk.timetable.named import TIMETABLES, timetable

DEVICES, MICRO_BATCHES = 4, 12
SIDE_BY_SIDE = {"dualpipe", "dualpipev", "1f1b-overlap"}
"""Timetables that run passes side by side."""


def as_tasks(table, times):
    """Passes on streams, transfers behind each other on links, all-reduces on a stream of their own."""
    sketch = Sketch()
    task, arrival = {}, {}
    last_on_link, last_in_row, last_of_piece = {}, {}, {}
    at = table.row_start[:-1].tolist()
    while any(at[device] < table.row_start[device + 1] for device in range(table.devices)):
        for device in range(table.devices):
            while at[device] < table.row_start[device + 1]:
                one = at[device]
                source = int(table.source[one])
                if source >= 0 and source not in arrival:
                    break
                after = [arrival[source]] if source >= 0 else []
                after += [last_in_row[device]] if device in last_in_row else []
                kind, piece = int(table.kind[one]), int(table.piece[one])
                whole = times.backward[piece] + times.weight[piece]
                took = (times.forward[piece], whole, times.backward[piece], times.weight[piece])[kind]
                task[one] = arrival[one] = last_in_row[device] = sketch.compute(device, took, after=after)
                last_of_piece[piece] = task[one]
                taker = int(table.consumer[one])
                if taker >= 0 and table.device[taker] != device:
                    way = device, int(table.device[taker])
                    behind = [task[one]] + ([last_on_link[way]] if way in last_on_link else [])
                    amount = times.send_forward[piece] if kind == 0 else times.send_backward[piece - 1]
                    arrival[one] = last_on_link[way] = sketch.transfer(*way, amount, after=behind)
                at[device] += 1
    for piece, last in last_of_piece.items():
        sketch.compute(int(table.device_of_piece[piece]), times.all_reduce[piece], after=[last], stream=1)
    return sketch.graph(), np.array([task[one] for one in range(table.passes)])


def times_of(pieces, seed):
    draw = np.random.default_rng(seed)
    columns = (draw.uniform(0.5, 2, pieces) for _ in range(3))
    onward, back = (draw.uniform(0, 1, pieces - 1) for _ in range(2))
    return stage_times(*columns, onward, back, draw.uniform(0, 4, pieces))


def made(name):
    if name == "zb-auto":
        return automatic(times_of(DEVICES, 1), MICRO_BATCHES).timetable
    return timetable(name, DEVICES, MICRO_BATCHES)


@pytest.mark.parametrize("name", sorted(TIMETABLES.keys() - SIDE_BY_SIDE))
def test_the_flow_simulator_sees_every_pass_when_the_clock_does(name):
    table = made(name)
    times = times_of(table.pieces, 5)
    graph, tasks = as_tasks(table, times)
    moving = graph.kind == TaskKind.TRANSFER
    routes = ROUTERS["shortest"].make(0)(wired(table.devices), graph.place[moving], graph.peer[moving])
    flow = run_system(system_of(graph, routes))
    seen = run(table, times)
    np.testing.assert_allclose(flow.start[tasks], seen.start, rtol=1e-12)
    np.testing.assert_allclose(flow.end[tasks], seen.end, rtol=1e-12)
    assert flow.end.max() == pytest.approx(seen.makespan, rel=1e-12)


class Untaught(FlopPrices):
    """Updates are free: the clock knows none."""

    def update(self, parameters, tensors, optimiser="adamw"):
        return 0.0


@pytest.mark.parametrize("bandwidth", [1e-3, 0.05, 1e6])
@pytest.mark.parametrize("data", [1, 2])
@pytest.mark.parametrize(
    ("name", "devices"),
    # Two devices of DualPipe reduce gradients over the links that carry activations; the clock keeps them apart.
    [(name, devices) for name in TIMETABLES for devices in (2, DEVICES) if (name, devices) != ("dualpipe", 2)],
)
def test_a_lowered_step_on_a_quiet_fabric_takes_what_the_clock_says(name, devices, data, bandwidth):
    """Real steps, with one bucket per piece; links range from slower than any stage to faster than all."""
    strategy = Strategy(data=data, pipeline=devices, micro_batches=MICRO_BATCHES, schedule=name, order=Order(1e18),
                        interleave=2 if name == "interleaved" else 1)  # fmt: skip
    model, prices = transformer(9), Untaught()
    step = lower(model, strategy, Placement(strategy), prices, "stage")
    times = times_of_step(model, strategy, prices, bandwidth)
    seen = run(strategy.timetable, times)
    assert simulated(step, bandwidth) == pytest.approx(seen.makespan, rel=1e-9)


def strategy_of_parts(name, replicas, micro_batch, layers):
    """Stages with these numbers of replicas, GPUs in order; pieces of the model as even as they come."""
    ends = np.cumsum(replicas)
    sets = [tuple(range(end - count, end)) for end, count in zip(ends.tolist(), replicas, strict=True)]
    each = 2 if name == "interleaved" else TIMETABLES[name].pieces_each
    homes = timetable(name, len(replicas), MICRO_BATCHES, each).device_of_piece.tolist()[: each * len(replicas)]
    cuts = np.linspace(0, layers, len(homes) + 1).astype(int).tolist()
    parts = tuple(Part(a, b - 1, sets[home]) for home, a, b in zip(homes, cuts, cuts[1:], strict=False))
    return Strategy(pipeline=len(replicas), micro_batch=micro_batch, micro_batches=MICRO_BATCHES, schedule=name,
                    parts=parts, order=Order(1e18), interleave=2 if name == "interleaved" else 1)  # fmt: skip


SHAPES = {name: [(1, 2), (4, 2, 1), (1, 4, 2, 2)] for name in TIMETABLES} | {"dualpipe": [(1, 4, 2, 2), (2, 2, 1, 4)]}


@pytest.mark.parametrize("bandwidth", [1e-3, 0.05, 1e6])
@pytest.mark.parametrize(("name", "replicas"), [(name, one) for name, shapes in SHAPES.items() for one in shapes])
def test_a_step_of_stages_with_their_own_replicas_takes_what_the_clock_says(name, replicas, bandwidth):
    strategy = strategy_of_parts(name, replicas, 4, 9)
    model, prices = transformer(9), Untaught()
    step = lower(model, strategy, Placement(strategy), prices, "stage")
    seen = run(strategy.timetable, times_of_step(model, strategy, prices, bandwidth))
    assert simulated(step, bandwidth) == pytest.approx(seen.makespan, rel=1e-9)


@settings(max_examples=15)
@given(
    st.sampled_from([1, 2]).flatmap(lambda half: st.tuples(*[st.sampled_from([1, 2, 4])] * 2 * half)), st.integers(0, 2)
)
def test_two_copies_with_any_replicas_take_what_the_clock_says_where_gradients_are_free(replicas, speed):
    """Gradients of two copies travel between neighbours in the middle, which the clock keeps apart."""
    bandwidth = (1e-3, 0.05, 1e6)[speed]
    strategy = replace(strategy_of_parts("dualpipe", replicas, 4, 5), gradient_bytes=1e-15)
    model, prices = transformer(5), Untaught()
    step = lower(model, strategy, Placement(strategy), prices, "stage")
    seen = run(strategy.timetable, times_of_step(model, strategy, prices, bandwidth))
    assert simulated(step, bandwidth) == pytest.approx(seen.makespan, rel=1e-9)


UNEVEN = [(3, 2), (2, 3, 1), (1, 3, 2, 2)]


@pytest.mark.parametrize("bandwidth", [1e-3, 0.05, 1e6])
@pytest.mark.parametrize(
    ("name", "replicas"),
    [(name, shape) for name in ("1f1b", "gpipe", "zb-h1", "zb-v") for shape in UNEVEN] + [("dualpipe", UNEVEN[-1])],
)
def test_where_replicas_do_not_divide_the_clock_is_an_upper_bound(name, replicas, bandwidth):
    """The clock gives a stage one arrival, that of the largest message; replicas with smaller ones start sooner."""
    strategy = strategy_of_parts(name, replicas, 6, 9)
    model, prices = transformer(9), Untaught()
    step = lower(model, strategy, Placement(strategy), prices, "stage")
    seen = run(strategy.timetable, times_of_step(model, strategy, prices, bandwidth))
    assert simulated(step, bandwidth) <= seen.makespan * (1 + 1e-9)
