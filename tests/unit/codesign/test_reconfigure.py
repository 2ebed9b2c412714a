"""Circuits that follow the demand: how they are chosen, and windows of dark and live time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.codesign.circuits import greedy_circuits
from ropewalk.codesign.reconfigure import CircuitSwitch, run_on_circuits
from ropewalk.errors import InputError
from ropewalk.task.step import Act, StepSketch


def test_the_largest_demand_gets_a_cable_and_then_counts_half():
    demand = np.zeros((4, 4))
    demand[0, 1], demand[0, 2], demand[0, 3] = 10.0, 6.0, 4.0
    cables = greedy_circuits(demand, 2, connect=False)
    assert cables[0].tolist() == [0, 1, 1, 0]


def test_a_demand_that_is_much_larger_gets_parallel_cables():
    demand = np.zeros((4, 4))
    demand[0, 1], demand[0, 2] = 10.0, 1.0
    assert greedy_circuits(demand, 2, connect=False)[0].tolist() == [0, 2, 0, 0]


@given(st.integers(3, 12), st.integers(2, 5), st.integers(0, 10_000))
def test_circuits_keep_to_the_ports_and_with_relays_leave_nobody_alone(servers, degree, seed):
    draw = np.random.default_rng(seed)
    demand = draw.random((servers, servers)) * (draw.random((servers, servers)) < 0.4)
    np.fill_diagonal(demand, 0.0)
    for connect in (False, True):
        cables = greedy_circuits(demand, degree, connect=connect)
        assert (cables == cables.T).all()
        assert not np.diagonal(cables).any()
        assert (cables.sum(axis=1) <= degree).all()
        if connect:
            reach = np.linalg.matrix_power((cables > 0) + np.eye(servers, dtype=int), servers)
            assert (reach > 0).all()


def one_transfer(size_bytes: float = 1e6):
    sketch = StepSketch(2)
    sketch.send(0, 1, size_bytes)
    return sketch.step()


def test_a_transfer_waits_for_its_circuit_and_then_has_it_alone():
    run = run_on_circuits(one_transfer(), CircuitSwitch(1, 1e9, delay_s=10e-3))
    assert run.seconds == pytest.approx(11e-3)
    assert (run.changes, run.dark_s) == (1, pytest.approx(10e-3))


def test_circuits_that_stay_the_same_cost_no_dark_time():
    run = run_on_circuits(one_transfer(1e9), CircuitSwitch(1, 1e9, delay_s=10e-3))
    assert run.seconds == pytest.approx(1.01)
    assert run.changes == 1


def test_computation_goes_on_in_the_dark_and_is_not_waited_for_twice():
    sketch = StepSketch(2)
    sent = sketch.send(0, 1, 1e6)
    busy = sketch.compute(1, 8e-3)
    sketch.compute(1, 1e-3, after=[sent, busy])
    run = run_on_circuits(sketch.step(), CircuitSwitch(1, 1e9, delay_s=10e-3))
    assert run.seconds == pytest.approx(12e-3)


def test_without_relays_a_second_peer_waits_for_the_next_window():
    sketch = StepSketch(3)
    sketch.send(0, 1, 2e6)
    sketch.send(0, 2, 1e6)
    alone = run_on_circuits(sketch.step(), CircuitSwitch(1, 1e9, delay_s=1e-3, live_s=4e-3, forwarding=False))
    # dark 1, live 4 with the larger one, dark 1, then the smaller one for 1 ms
    assert alone.seconds == pytest.approx(7e-3)
    assert alone.changes == 2
    assert alone.tax == pytest.approx(1.0)


def test_with_relays_a_line_of_three_carries_both_at_once_and_pays_the_tax():
    sketch = StepSketch(3)
    sketch.send(0, 1, 2e6)
    sketch.send(1, 2, 2e6)
    sketch.send(0, 2, 1e6)
    relayed = run_on_circuits(sketch.step(), CircuitSwitch(2, 1e9, delay_s=1e-3))
    assert relayed.seconds == pytest.approx(3e-3)
    assert relayed.tax == pytest.approx(1.0)  # three servers with two ports each: everybody is a neighbour


def test_a_sum_goes_round_both_ways_and_its_rounds_pay_the_latency():
    sketch = StepSketch(4)
    sketch.collective(Act.ALL_REDUCE, range(4), 4e6)
    run = run_on_circuits(sketch.step(), CircuitSwitch(2, 1e9, delay_s=1e-3, latency=1e-5))
    assert run.seconds == pytest.approx(1e-3 + 6 * 1e6 / 2 / 1e9 + 6e-5)


@given(st.integers(0, 1000))
def test_a_step_never_gets_faster_by_slower_switching(seed):
    draw = np.random.default_rng(seed)
    sketch = StepSketch(4)
    for _ in range(6):
        a, b = draw.choice(4, 2, replace=False).tolist()
        done = sketch.compute(a, float(draw.random() * 1e-3))
        sketch.send(a, b, float(draw.random() * 1e6), after=[done])
    step = sketch.step()
    quick, slow = (
        run_on_circuits(step, CircuitSwitch(2, 1e9, delay_s=delay, live_s=5e-3)).seconds for delay in (1e-6, 10e-3)
    )
    assert quick <= slow


def test_a_switch_without_ports_or_time_is_refused():
    with pytest.raises(InputError, match="3 findings"):
        CircuitSwitch(0, 0.0, delay_s=0.0)
