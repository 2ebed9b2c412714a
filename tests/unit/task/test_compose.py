"""Graphs put together: one after the other, side by side, again and again."""

import numpy as np
import pytest

from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim.flow.system import run_system, system_of
from ropewalk.task import Sketch, TaskGraph, TaskKind, parallel, sequence


def fan(label: str, size: float = 8.0) -> TaskGraph:
    """Two transfers out of host 0, one of them followed by an answer."""
    sketch = Sketch()
    first = sketch.transfer(0, 1, size, label=label, priority=1)
    sketch.transfer(0, 2, size, label="other", start_up=0.5, rate_cap=2.0)
    sketch.transfer(1, 0, size, after=[first], label=label)
    return sketch.graph()


def waits(graph: TaskGraph) -> list[list[int]]:
    return [graph.dep[graph.dep_start[t] : graph.dep_start[t + 1]].tolist() for t in range(graph.tasks)]


def names(graph: TaskGraph) -> list[str]:
    return [graph.name_of(task) for task in range(graph.tasks)]


def test_side_by_side_nothing_of_one_waits_for_the_other() -> None:
    both = parallel(fan("a"), fan("b"))
    both.check()
    assert waits(both) == [[], [], [0], [], [], [3]]
    assert names(both) == ["a", "other", "a", "b", "other", "b"]


def test_in_sequence_the_sources_wait_for_the_sinks_through_a_marker() -> None:
    one_after_the_other = sequence(fan("a"), fan("b"))
    one_after_the_other.check()
    assert one_after_the_other.kind.tolist() == [TaskKind.TRANSFER] * 3 + [TaskKind.MARKER] + [TaskKind.TRANSFER] * 3
    assert waits(one_after_the_other) == [[], [], [0], [1, 2], [3], [3], [4]]
    assert names(one_after_the_other) == ["a", "other", "a", "join", "b", "other", "b"]


def test_composition_keeps_every_column() -> None:
    both = sequence(fan("a"), fan("b", 16.0))
    assert both.amount.tolist() == [8.0, 8.0, 8.0, 0.0, 16.0, 16.0, 16.0]
    assert both.priority.tolist() == [1, 0, 0, 0, 1, 0, 0]
    assert both.start_up.tolist() == [0.0, 0.5, 0.0, 0.0, 0.0, 0.5, 0.0]
    assert both.rate_cap.tolist() == [np.inf, 2.0, np.inf, np.inf, np.inf, 2.0, np.inf]
    assert both.place.tolist() == [0, 0, 1, -1, 0, 0, 1]
    assert both.peer.tolist() == [1, 2, 0, -1, 1, 2, 0]


def test_once_is_the_graph_itself() -> None:
    once = sequence(fan("a"))
    assert waits(once) == waits(fan("a"))
    assert names(once) == names(fan("a"))


def test_compositions_nest() -> None:
    nested = sequence(parallel(fan("a"), fan("b")), sequence(fan("c"), fan("c")))
    nested.check()
    assert waits(nested)[6] == [1, 2, 4, 5]
    assert waits(nested)[7:9] == [[6], [6]]


def test_time_adds_up_in_sequence_and_overlaps_side_by_side() -> None:
    fabric = IdealSwitch(4, bandwidth=8.0).build()
    sketches = []
    for src, dst in ((0, 1), (2, 3)):
        sketch = Sketch()
        sketch.transfer(src, dst, 16.0)
        sketches.append(sketch.graph())
    routes = shortest(fabric, np.array([0, 2], np.int32), np.array([1, 3], np.int32))
    spans = [run_system(system_of(way(*sketches), routes)).end.max() for way in (parallel, sequence)]
    assert spans == pytest.approx([2.0, 4.0])


def test_an_empty_graph_in_between_does_not_break_the_order() -> None:
    with_a_gap = sequence(fan("a"), Sketch().graph(), fan("b"))
    with_a_gap.check()
    first_of_b = names(with_a_gap).index("b")
    before: list[int] = list(waits(with_a_gap)[first_of_b])
    for task in before:
        before.extend(waits(with_a_gap)[task])
    assert set(before) >= {1, 2}


def test_nothing_put_together_is_an_empty_graph() -> None:
    assert [graph.tasks for graph in (sequence(), parallel())] == [0, 0]
