"""Steps in a row on a network: periods, arrivals, and what cannot be asked."""

from dataclasses import replace

import pytest

from ropewalk.errors import GraphError
from ropewalk.fabric import IdealSwitch
from ropewalk.task.passes import cross_barrier, fuse, stream, with_barrier
from ropewalk.task.passes.data_parallel import data_parallel
from ropewalk.task.perturb import perturb
from ropewalk.task.transport import Transport
from ropewalk.training.network import NetworkUse
from ropewalk.training.steady import run_gradients, steady_step_seconds

GB = 1e9
FABRIC = IdealSwitch(2, bandwidth=GB).build()
FREE = NetworkUse(transport=Transport())
THREE = data_parallel(2, [3 * GB, 6 * GB, 3 * GB], [2.0] * 3, [2.0] * 3)


def test_the_first_step_waits_for_nothing_and_the_others_take_equally_long():
    run = run_gradients(cross_barrier(THREE, 4), FABRIC, FREE)
    assert run.ends_s == pytest.approx([12.0, 32.0, 52.0, 72.0])
    assert run.is_steady


def test_gradients_arrive_one_after_the_other():
    run = run_gradients(THREE, FABRIC, FREE)
    assert run.arrival_s.tolist() == pytest.approx([11.0, 17.0, 20.0])
    assert [THREE.names[tensor] for tensor in THREE.tensor] == ["tensor 2", "tensor 1", "tensor 0"]


def test_across_the_barrier_only_the_update_of_the_last_tensor_is_waited_for():
    slow = data_parallel(2, [3 * GB, 6 * GB, 3 * GB], [2.0] * 3, [2.0] * 3, update_s=4.0)
    assert steady_step_seconds(with_barrier(slow, 4), FABRIC, FREE) == pytest.approx(20.0 + 4.0)
    # The other two, with 3 s of it, are updated while the GPU waits for the last one.
    assert steady_step_seconds(cross_barrier(slow, 4), FABRIC, FREE) == pytest.approx(20.0 + 1.0)


def test_an_update_never_holds_up_a_pass_that_could_run():
    """All sums are there when the backward pass ends at 12 s: each layer goes before the updates of later ones."""
    fast = data_parallel(2, [0.0, 6e3, 3e3], [2.0] * 3, [2.0] * 3, update_s=3.0)
    run = run_gradients(cross_barrier(fast, 4), FABRIC, FREE)
    step, start = run.woven.step, run.run.times.start
    first = {step.name_of(one): float(start[one]) for one in reversed(range(step.operations)) if step.rank[one] == 0}
    assert [first[f"tensor {at} update"] for at in range(3)] == pytest.approx([12.0, 14.0, 18.0])
    assert run.periods_s[-1] == pytest.approx(12.0 + 3.0)


def test_a_launch_that_goes_on_starts_up_once():
    started = NetworkUse(transport=Transport(start_up_s=0.5))
    fused = fuse(THREE, [[2, 1, 0]])
    late = run_gradients(stream(fused), FABRIC, started).arrival_s
    # Summed from 12 s on, the most urgent first: 3, 6 and 3 s.
    assert late.tolist() == pytest.approx([24.5, 21.5, 15.5])
    assert run_gradients(fused, FABRIC, started).arrival_s.tolist() == pytest.approx([24.5] * 3)
    rounds = NetworkUse(transport=Transport(start_up_s=0.5), collectives="rounds")
    assert run_gradients(stream(fused), FABRIC, rounds).arrival_s.tolist() == pytest.approx([24.5, 21.5, 15.5])


def test_a_period_needs_steps_in_a_row():
    with pytest.raises(GraphError, match="repeat the step 3 times"):
        steady_step_seconds(cross_barrier(THREE, 2), FABRIC, FREE)


def test_steps_that_differ_are_not_called_steady():
    repeated = cross_barrier(THREE, 4)
    uneven = replace(repeated, base=perturb(repeated.base, seed=1, jitter=0.1))
    assert not run_gradients(uneven, FABRIC, FREE).is_steady
    with pytest.raises(GraphError, match="repeat the step more often"):
        steady_step_seconds(uneven, FABRIC, FREE)
