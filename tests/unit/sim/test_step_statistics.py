"""Where the time of a step goes, on steps small enough to work out by hand."""

import numpy as np
import pytest
from tiny_steps import BANDWIDTH, pipeline_step, run_step

from ropewalk.errors import GraphError
from ropewalk.sim.step import StepRun, statistics
from ropewalk.task.step import Act, StepSketch

STREAMS = ("compute", "tensor", "data")


def test_a_rank_that_waits_for_a_collective_exposes_it_and_one_that_computes_hides_it():
    sketch = StepSketch(2, STREAMS)
    first = [sketch.compute(rank, 1.0) for rank in range(2)]
    sketch.collective(Act.ALL_REDUCE, [0, 1], 2 * BANDWIDTH, after=first, stream=1)
    sketch.compute(1, 1.5, after=first[1:])
    found = statistics(run_step(sketch.step()))
    assert found.step_time_s == pytest.approx(3.0)
    assert found.times.compute_s == pytest.approx([1.0, 2.5])
    assert found.times.communication_s == pytest.approx([2.0, 2.0])
    assert found.times.exposed_communication_s == pytest.approx([2.0, 0.5])
    assert found.times.bubble_s == pytest.approx([0.0, 0.0])


def test_waiting_for_a_late_member_is_a_bubble_and_not_communication():
    sketch = StepSketch(2, STREAMS)
    first = [sketch.compute(0, 1.0), sketch.compute(1, 3.0)]
    sketch.collective(Act.ALL_REDUCE, [0, 1], 1 * BANDWIDTH, after=first, stream=1)
    found = statistics(run_step(sketch.step()))
    assert found.times.bubble_s == pytest.approx([2.0, 0.0])
    assert found.times.exposed_communication_s == pytest.approx([1.0, 1.0])


def test_a_send_occupies_both_its_ends():
    sketch = StepSketch(3, STREAMS)
    done = sketch.compute(0, 1.0)
    sketch.send(0, 1, 2 * BANDWIDTH, after=[done], stream=2)
    found = statistics(run_step(sketch.step()))
    assert found.times.exposed_communication_s == pytest.approx([2.0, 2.0, 0.0])
    assert found.times.bubble_s == pytest.approx([0.0, 1.0, 3.0])


def test_two_purposes_at_once_share_the_exposed_time():
    sketch = StepSketch(4, STREAMS)
    sketch.send(0, 1, 2 * BANDWIDTH, stream=1)
    sketch.send(2, 0, 4 * BANDWIDTH, stream=2)
    found = statistics(run_step(sketch.step()))
    assert found.times.exposed_by_purpose_s["tensor"] == pytest.approx([1.0, 2.0, 0.0, 0.0])
    assert found.times.exposed_by_purpose_s["data"] == pytest.approx([3.0, 0.0, 4.0, 0.0])
    assert list(found.exposed_by_purpose_s) == ["data", "tensor"]


def test_overlapping_operations_of_one_purpose_count_once():
    sketch = StepSketch(3, STREAMS)
    sketch.send(0, 1, 2 * BANDWIDTH, stream=1)
    sketch.send(2, 0, 1 * BANDWIDTH, stream=1)
    found = statistics(run_step(sketch.step()))
    assert found.times.communication_s == pytest.approx([2.0, 2.0, 1.0])


def test_a_collective_of_one_rank_takes_no_time():
    sketch = StepSketch(1, STREAMS)
    done = sketch.compute(0, 1.0)
    met = sketch.collective(Act.ALL_REDUCE, [0], 5e9, after=[done], stream=1)
    sketch.compute(0, 1.0, after=[met])
    found = statistics(run_step(sketch.step()))
    assert found.step_time_s == pytest.approx(2.0)
    assert found.communication_s == 0
    assert found.bottleneck is None


def test_the_critical_path_is_told_by_label_and_purpose():
    sketch = StepSketch(2, STREAMS)
    done = sketch.compute(0, 1.0, label="forward")
    again = sketch.compute(0, 1.0, after=[done], label="forward")
    sketch.send(0, 1, 3 * BANDWIDTH, after=[again], stream=2, label="activations")
    sketch.compute(1, 0.5, label="elsewhere")
    found = statistics(run_step(sketch.step()))
    assert [(part.label, part.purpose, part.tasks) for part in found.path] == [
        ("activations", "data", 1),
        ("forward", "compute", 2),
    ]
    assert [part.seconds for part in found.path] == pytest.approx([3.0, 2.0])
    assert found.path_by_purpose_s == pytest.approx({"data": 3.0, "compute": 2.0})


def test_the_bottleneck_is_the_link_that_holds_the_critical_path_back():
    sketch = StepSketch(3, STREAMS)
    slow = [sketch.send(0, 1, 2 * BANDWIDTH, stream=1), sketch.send(0, 2, 2 * BANDWIDTH, stream=1)]
    sketch.compute(1, 1.0, after=slow[:1])
    found = statistics(run_step(sketch.step()))
    assert found.bottleneck.name == "h0->switch"
    assert found.bottleneck.held_s == pytest.approx(4.0)
    assert found.bottleneck.utilisation == pytest.approx(0.8)


def test_without_transfers_on_the_critical_path_the_bottleneck_is_the_most_utilised_link():
    sketch = StepSketch(3, STREAMS)
    sketch.compute(0, 10.0)
    sketch.send(1, 2, 1 * BANDWIDTH, stream=1)
    sketch.send(0, 2, 2 * BANDWIDTH, stream=1)
    found = statistics(run_step(sketch.step()))
    assert found.bottleneck.name == "switch->h2"
    assert found.bottleneck.held_s == 0
    assert found.bottleneck.utilisation == pytest.approx(0.3)


def test_utilisation_and_throughput_are_counted_over_the_step():
    sketch = StepSketch(2, STREAMS)
    sketch.compute(0, 4.0)
    step = sketch.step(flops=8e12)
    found = statistics(run_step(step), peak_flops=2e12, samples=16, tokens=16 * 1024)
    assert found.mfu == pytest.approx(0.5)
    assert found.samples_per_s == pytest.approx(4.0)
    assert found.tokens_per_s == pytest.approx(4096.0)
    assert statistics(run_step(step)).mfu is None


def test_every_rank_of_a_pipeline_accounts_for_the_whole_step():
    found = statistics(run_step(pipeline_step(stages=3, tensor=2, data=2)))
    whole = found.times.compute_s + found.times.exposed_communication_s + found.times.bubble_s
    assert whole == pytest.approx(np.full(12, found.step_time_s))
    by_purpose = sum(found.times.exposed_by_purpose_s.values())
    assert by_purpose == pytest.approx(found.times.exposed_communication_s)
    assert set(found.times.exposed_by_purpose_s) == {"tensor", "data", "pipeline"}


def test_an_empty_step_takes_no_time():
    found = statistics(run_step(StepSketch(2, STREAMS).step()))
    assert (found.step_time_s, found.compute_s, found.bubble_s, found.path) == (0.0, 0.0, 0.0, ())


def test_tasks_without_an_operation_each_are_refused():
    run = run_step(pipeline_step())
    with pytest.raises(GraphError, match="one for each task"):
        StepRun(run.step, run.trace, run.operation_of_task[:-1])
