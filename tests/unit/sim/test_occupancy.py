"""Times of ranks are swept in blocks of ranks: how many fit into a block makes no difference."""

import numpy as np
import pytest
from tiny_steps import pipeline_step, run_step

from ropewalk.sim import occupancy
from ropewalk.sim.occupancy import rank_times
from ropewalk.task.step import Act, StepSketch

STREAMS = ("compute", "tensor", "data")


def _idle_ranks_between_busy_ones():
    sketch = StepSketch(9, STREAMS)
    for rank in (1, 4, 7):
        sketch.compute(rank, float(rank))
    sketch.collective(Act.ALL_REDUCE, [1, 7], 1e8, stream=2)
    return sketch.step()


@pytest.mark.parametrize("block", [1, 5, 40])
@pytest.mark.parametrize("step", [pipeline_step(stages=3, tensor=2, data=2), _idle_ranks_between_busy_ones()])
def test_small_blocks_of_ranks_give_the_same_times_as_one_large_block(step, block, monkeypatch):
    run = run_step(step)
    whole = rank_times(step, run.occupied, run.trace.makespan)
    monkeypatch.setattr(occupancy, "BLOCK", block)
    parts = rank_times(step, run.occupied, run.trace.makespan)
    for name in ("compute_s", "communication_s", "exposed_communication_s", "bubble_s"):
        assert (getattr(parts, name) == getattr(whole, name)).all()
    assert list(parts.exposed_by_purpose_s) == list(whole.exposed_by_purpose_s)
    for purpose, seconds in parts.exposed_by_purpose_s.items():
        assert (seconds == whole.exposed_by_purpose_s[purpose]).all()


def test_a_rank_without_work_idles_for_the_whole_step():
    step = _idle_ranks_between_busy_ones()
    run = run_step(step)
    times = rank_times(step, run.occupied, run.trace.makespan)
    assert times.compute_s.tolist() == [0, 1, 0, 0, 4, 0, 0, 7, 0]
    assert times.bubble_s[[0, 2, 8]] == pytest.approx(np.full(3, run.trace.makespan))


def test_a_purpose_that_was_never_in_flight_is_not_named():
    sketch = StepSketch(2, STREAMS)
    sketch.collective(Act.ALL_REDUCE, [0], 1e8, stream=1)
    sketch.collective(Act.ALL_REDUCE, [0, 1], 1e8, stream=2)
    run = run_step(sketch.step())
    assert list(rank_times(run.step, run.occupied, run.trace.makespan).exposed_by_purpose_s) == ["data"]
