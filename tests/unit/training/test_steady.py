"""Steps in a row on a network: what the next one waits for."""

import numpy as np
import pytest
from ordered_models import AsMeasured, step_seconds, workload_of

from ropewalk.fabric import IdealSwitch
from ropewalk.overlap.tensors import from_layers
from ropewalk.strategy import Order, Placement, Strategy
from ropewalk.strategy.order import launches_of
from ropewalk.task.lower import lower_steps
from ropewalk.task.perturb import perturb
from ropewalk.task.transport import Transport
from ropewalk.training.network import NetworkUse, expand_on, run_on
from ropewalk.training.steady import changes_from_step_to_step

GB = 1e9
FABRIC = IdealSwitch(2, bandwidth=GB).build()
FREE = NetworkUse(transport=Transport())
THREE = from_layers([3 * GB, 6 * GB, 3 * GB], backward_s=[2.0] * 3, forward_s=[2.0] * 3)


class WithUpdates(AsMeasured):
    """A third of a second for every GB that is updated."""

    def update(self, parameters, tensors, optimiser):
        return parameters / (3 * GB)


def in_a_row(tensors, order, prices, use=FREE, jitter=0.0):
    strategy = Strategy(data=2, order=order)
    row = lower_steps(workload_of(tensors), strategy, Placement(strategy), prices, 4, "layer")
    step = perturb(row.step, seed=1, jitter=jitter) if jitter else row.step
    run = run_on(step, expand_on(step, FABRIC, use), FABRIC, use)
    return run, row.ends


def ends_s(run, ends):
    return [float(run.times.end[over].max()) for over in ends]


def test_the_first_step_waits_for_nothing_and_the_others_take_equally_long():
    run, ends = in_a_row(THREE, Order(fusion=0.0, across_steps=True), AsMeasured())
    assert ends_s(run, ends) == pytest.approx([12.0, 32.0, 52.0, 72.0])
    assert not changes_from_step_to_step(run, ends)


def test_across_the_barrier_only_the_update_of_the_last_tensor_is_waited_for():
    """12 GB are updated in 4 s; across the barrier all but 1 s of it passes while the GPU waits for the last tensor."""
    steps = {}
    for across in (False, True):
        run, ends = in_a_row(THREE, Order(fusion=0.0, across_steps=across), WithUpdates())
        steps[across] = np.diff(ends_s(run, ends))[-1]
    assert steps == pytest.approx({False: 20.0 + 4.0, True: 20.0 + 1.0})


def test_an_update_never_holds_up_a_pass_that_could_run():
    """All sums are there when the backward pass ends at 12 s: each layer goes before the updates of later ones."""
    fast = from_layers([6e3, 3e3], backward_s=[2.0] * 3, forward_s=[2.0] * 3, layer=[1, 2])

    class Slow(AsMeasured):
        def update(self, parameters, tensors, optimiser):
            return 3.0

    run, _ = in_a_row(fast, Order(fusion=0.0, across_steps=True), Slow())
    step, start = run.step, run.times.start
    first = {step.name_of(one): float(start[one]) for one in reversed(range(step.operations)) if step.rank[one] == 0}
    assert [first[f"tensor {at} update"] for at in range(2)] == pytest.approx([14.0, 18.0])


def test_a_launch_that_goes_on_starts_up_once():
    """All three are launched at 12 s: 12 s of bytes behind one start-up, of which the first layer waits for 3 s."""
    order = Order(launches_of([[f"tensor {at}" for at in (2, 1, 0)]]), arrival="streamed", across_steps=True)
    for mode in ("fluid", "rounds"):
        started = NetworkUse(transport=Transport(start_up_s=0.5), collectives=mode)
        # Layers of 2 s start at 15.5, 21.5 and 24.5 s of a step whose backward pass ended at 6 s.
        assert step_seconds(THREE, 2, order, FABRIC, started) == pytest.approx(0.5 + 3 + 6 + 3 + 2 + 6)


def test_steps_that_differ_are_not_called_steady():
    run, ends = in_a_row(THREE, Order(fusion=0.0, across_steps=True), AsMeasured(), jitter=0.1)
    assert changes_from_step_to_step(run, ends)
