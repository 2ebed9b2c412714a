"""Task graphs: columns that fit, amounts that are possible, dependencies that point back."""

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import GraphError
from ropewalk.task import Sketch, TaskGraph, TaskKind, make_graph


def small() -> TaskGraph:
    """forward on gpu 0, its transfer to host 1, a marker."""
    sketch = Sketch()
    forward = sketch.compute(0, 0.5, label="forward", stream=1, priority=3)
    sent = sketch.transfer(0, 1, 8.0, after=[forward], start_up=0.25, rate_cap=4.0, label="gradient")
    sketch.marker(after=[forward, sent], label="join")
    return sketch.graph()


def changed(column: str, task: int, value: float) -> TaskGraph:
    graph = small()
    values = getattr(graph, column).copy()
    values[task] = value
    return replace(graph, **{column: values})


def test_a_sketch_becomes_columns() -> None:
    graph = small()
    assert graph.tasks == 3
    assert graph.kind.tolist() == [TaskKind.COMPUTE, TaskKind.TRANSFER, TaskKind.MARKER]
    assert graph.place.tolist() == [0, 0, -1]
    assert graph.peer.tolist() == [-1, 1, -1]
    assert graph.stream.tolist() == [1, 0, 0]
    assert graph.amount.tolist() == [0.5, 8.0, 0.0]
    assert graph.start_up.tolist() == [0.0, 0.25, 0.0]
    assert graph.priority.tolist() == [3, 0, 0]
    assert graph.rate_cap.tolist() == [np.inf, 4.0, np.inf]
    assert [graph.name_of(task) for task in range(3)] == ["forward", "gradient", "join"]
    assert graph.dep_start.tolist() == [0, 0, 1, 3]
    assert graph.dep.tolist() == [0, 0, 1]


def test_sources_wait_for_nobody_and_nobody_waits_for_sinks() -> None:
    graph = small()
    assert graph.sources().tolist() == [0]
    assert graph.sinks().tolist() == [2]


def test_scalars_are_spread_over_all_tasks() -> None:
    graph = make_graph(
        [TaskKind.TRANSFER] * 3, [0, 1, 2], [1, 2, 0], 8.0, [0, 0, 0, 0], [], priority=2, labels=("ring",)
    )
    graph.check()
    assert graph.amount.tolist() == [8.0, 8.0, 8.0]
    assert graph.priority.tolist() == [2, 2, 2]
    assert graph.name_of(2) == "ring"


@pytest.mark.parametrize(
    ("column", "task", "value", "finding"),
    [
        ("kind", 2, 7, "task 2 (join) has an unknown kind"),
        ("amount", 1, -1.0, "task 1 (gradient) has a negative or infinite amount"),
        ("amount", 0, np.inf, "task 0 (forward) has a negative or infinite amount"),
        ("amount", 0, np.nan, "task 0 (forward) has a negative or infinite amount"),
        ("start_up", 1, -0.5, "task 1 (gradient) has a negative or infinite start-up time"),
        ("start_up", 1, np.nan, "task 1 (gradient) has a negative or infinite start-up time"),
        ("rate_cap", 1, 0.0, "task 1 (gradient) has a rate cap that is not positive"),
        ("rate_cap", 1, np.nan, "task 1 (gradient) has a rate cap that is not positive"),
        ("peer", 1, 0, "task 1 (gradient) is a transfer from a host to itself"),
        ("peer", 1, -1, "task 1 (gradient) is a transfer without both ends"),
        ("place", 1, -1, "task 1 (gradient) is a transfer without both ends"),
        ("place", 0, -1, "task 0 (forward) computes on no gpu"),
        ("dep", 0, 1, "a task waits for itself or for a later task"),
        ("dep", 0, 2, "a task waits for itself or for a later task"),
        ("dep", 0, -1, "a task waits for itself or for a later task"),
    ],
)
def test_a_graph_that_cannot_run_is_refused(column: str, task: int, value: float, finding: str) -> None:
    with pytest.raises(GraphError) as refusal:
        changed(column, task, value).check()
    assert finding in str(refusal.value)


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(GraphError, match="the columns differ in length"):
        replace(small(), priority=np.zeros(2, np.int32)).check()
    with pytest.raises(GraphError, match="the columns differ in length"):
        replace(small(), dep_start=np.zeros(3, np.int64)).check()


def test_dependencies_that_are_not_all_owned_are_refused() -> None:
    graph = small()
    with pytest.raises(GraphError, match="are not contiguous"):
        replace(graph, dep=np.append(graph.dep, 0).astype(np.int32)).check()


def test_all_findings_come_in_one_message_with_their_number() -> None:
    graph = replace(small(), amount=np.array([-1.0, -8.0, 0.0]), start_up=np.array([0.0, -1.0, 0.0]))
    with pytest.raises(GraphError) as refusal:
        graph.check()
    assert "2 findings" in str(refusal.value)
    assert "(2 such tasks)" in str(refusal.value)
    assert "start-up" in str(refusal.value)


def test_an_empty_graph_is_a_graph() -> None:
    graph = Sketch().graph()
    assert graph.tasks == 0
    assert graph.sinks().tolist() == []


@pytest.mark.parametrize("dep_start", [[1, 1, 2, 3], [0, 2, 1, 3], [0, 0, 1, 2]])
def test_dependencies_that_do_not_start_where_the_last_ones_end_are_refused(dep_start: list[int]) -> None:
    with pytest.raises(GraphError):
        replace(small(), dep_start=np.array(dep_start, np.int64)).check()
