"""What a trace tells: the critical path, the throughput of a host, what links carried."""

import numpy as np
import pytest

from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim.simulate import simulate
from ropewalk.sim.trace import Trace
from ropewalk.task import Sketch, TaskKind


def traced(sketch: Sketch, hosts: int = 3, record_rates: bool = False) -> Trace:
    graph = sketch.graph()
    transfer = graph.kind == TaskKind.TRANSFER
    routes = shortest(IdealSwitch(hosts, bandwidth=8.0).build(), graph.place[transfer], graph.peer[transfer])
    return simulate(graph, routes, record_rates=record_rates)


def step() -> Sketch:
    """forward 1 s, then a gradient of 2 s beside a backward of 1 s that waits for the stream, then the update."""
    sketch = Sketch()
    forward = sketch.compute(0, 1.0, label="forward")
    gradient = sketch.transfer(0, 1, 16.0, after=[forward], label="gradient")
    backward = sketch.compute(0, 1.0, after=[forward], label="backward")
    join = sketch.marker(after=[gradient, backward])
    sketch.compute(1, 0.5, after=[join], label="update")
    return sketch


def test_the_critical_path_goes_from_the_first_task_to_the_last() -> None:
    trace = traced(step())
    path = trace.critical_path()
    assert [(one.label, one.start_s, one.end_s) for one in path] == [
        ("forward", 0.0, 1.0),
        ("gradient", 1.0, 3.0),
        ("update", 3.0, 3.5),
    ]
    assert path[0].where == "gpu 0 stream 0"
    assert (path[1].where, path[1].bottleneck) == ("h0->h1", "h0->switch")
    assert trace.makespan == 3.5


def test_a_busy_stream_is_part_of_the_critical_path() -> None:
    sketch = Sketch()
    sketch.compute(0, 2.0, label="long")
    sketch.compute(0, 1.0, label="queued")
    sketch.transfer(0, 1, 0.0)
    assert [one.label for one in traced(sketch).critical_path()] == ["long", "queued"]


def test_an_empty_trace_has_no_critical_path() -> None:
    trace = traced(Sketch())
    assert trace.critical_path() == []
    assert trace.makespan == 0.0


def test_links_carry_what_transfers_send() -> None:
    trace = traced(step())
    names = [trace.routes.fabric.link_name(link) for link in range(trace.routes.fabric.links)]
    assert {name: size for name, size in zip(names, trace.link_bytes.tolist(), strict=True) if size} == {
        "h0->switch": 16.0,
        "switch->h1": 16.0,
    }
    assert trace.hottest_links(1) == [("h0->switch", pytest.approx(2.0 / 3.5))]
    assert trace.busy_seconds() == {"compute": 2.5, "transfer": 2.0, "marker": 0.0}


def test_the_throughput_of_a_host_is_a_step_curve() -> None:
    sketch = Sketch()
    sketch.transfer(0, 2, 8.0)
    sketch.transfer(1, 2, 16.0)
    sketch.transfer(1, 2, 8.0, start_up=5.0)
    trace = traced(sketch, record_rates=True)
    received = [column.tolist() for column in trace.throughput(2)]
    # Full from 0 s to 3 s, whoever sends; silence until 5 s; full again for one second.
    assert received == [[0.0, 2.0, 3.0, 5.0, 6.0], [8.0, 8.0, 0.0, 8.0, 0.0]]
    sent = [column.tolist() for column in trace.throughput(1, sending=True)]
    assert sent == [[0.0, 2.0, 3.0, 5.0, 6.0], [4.0, 8.0, 0.0, 8.0, 0.0]]


def test_throughput_without_recorded_rates_is_refused() -> None:
    with pytest.raises(ValueError, match="record_rates=True"):
        traced(step()).throughput(0)


def test_the_summary_counts_tasks_and_bytes() -> None:
    summary = traced(step()).summary()
    assert summary["makespan_s"] == 3.5
    assert (summary["tasks"], summary["compute_tasks"], summary["transfer_tasks"], summary["marker_tasks"]) == (
        5,
        3,
        1,
        1,
    )
    assert (summary["bytes"], summary["tax"]) == (16.0, 2.0)
    assert np.isfinite(summary["classes"])  # type: ignore[call-overload]
