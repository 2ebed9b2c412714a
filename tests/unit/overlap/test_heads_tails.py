"""Heads and tails on graphs that can be drawn on a napkin."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.errors import GraphError
from ropewalk.overlap.heads_tails import StepGraph, one_stream_sums, step_graph
from ropewalk.overlap.link import Link
from ropewalk.overlap.preemptive import preemptive_optimum
from ropewalk.overlap.tensors import from_layers, tensors_of
from ropewalk.workload.source import open_workload

UNIT = Link(bandwidth=1)


def test_a_chain_has_the_heads_and_tails_of_its_sums_of_times():
    sums = step_graph(from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3)).sums(UNIT)
    assert sums.head_s.tolist() == [6, 4, 2]
    assert sums.tail_s.tolist() == [6, 4, 2]
    assert sums.computing_s == 12


def branches():
    """A stem, two branches of different length side by side, and a head that reads both."""
    return from_layers(
        [1, 1, 1, 1], backward_s=[1, 5, 2, 1], forward_s=[1, 4, 2, 1], inputs=((), (0,), (0,), (1, 2)), model="fork"
    )


def test_branches_are_side_by_side_in_the_relaxation_and_in_turn_on_one_stream():
    graph = step_graph(branches())
    free, stream = graph.sums(UNIT), graph.on_one_stream().sums(UNIT)
    # The stem's gradient waits for the longer branch only, its tail is the longer branch only.
    assert free.head_s.tolist() == [7, 6, 3, 1]
    assert free.tail_s.tolist() == [6, 5, 3, 1]
    assert stream.head_s.tolist() == [9, 8, 3, 1]
    assert stream.tail_s.tolist() == [8, 7, 3, 1]
    assert (free.computing_s, stream.computing_s) == (13, 17)


def test_one_stream_of_the_graph_is_what_the_tensors_say():
    tensors = branches()
    stream, direct = step_graph(tensors).on_one_stream().sums(UNIT), one_stream_sums(tensors)
    np.testing.assert_allclose(stream.head_s, direct.head_s)
    np.testing.assert_allclose(stream.tail_s, direct.tail_s)
    assert stream.computing_s == direct.computing_s == tensors.compute_s


def test_a_sum_that_waits_for_another_never_runs_before_it():
    graph = StepGraph.of(
        ("b", "f"), [1, 1], [("b", "first"), ("first", "second"), ("second", "f")], sums={"first": 2, "second": 3}
    )
    sums = graph.sums(UNIT)
    assert sums.head_s.tolist() == [1, 3]
    assert sums.tail_s.tolist() == [4, 1]
    best = preemptive_optimum(sums, UNIT)
    assert best.done_s.tolist() == [3, 6]
    assert graph.step_s(best.done_s) == sums.step_s(best.done_s) == 7


def test_dependencies_in_a_circle_are_named_and_refused():
    with pytest.raises(GraphError, match=r"one → two → one|two → one → two.*remove one"):
        StepGraph.of(("one", "two", "three"), [1, 1, 1], [("one", "two"), ("two", "one"), ("two", "three")], sums={})


def test_a_node_that_waits_for_itself_is_a_circle_too():
    with pytest.raises(GraphError, match="one → one"):
        StepGraph.of(("one",), [1], [("one", "one")], sums={})


def test_everything_wrong_with_a_graph_is_said_at_once():
    with pytest.raises(GraphError) as error:
        StepGraph.of(("a", "a"), [1, -1], [("a", "b")], sums={"s": -1.0})
    for part in ("listed twice", "negative", "names 'b'", "-1 bytes"):
        assert part in str(error.value)


def test_a_model_with_branches_has_earlier_heads_than_one_stream():
    tensors = tensors_of(open_workload("dlrm", batch=64))
    graph = step_graph(tensors)
    free, stream = graph.sums(UNIT), graph.on_one_stream().sums(UNIT)
    assert (free.head_s <= stream.head_s + 1e-12).all()
    assert (free.tail_s <= stream.tail_s + 1e-12).all()
    # The lookups stand beside the dense features, so that something really is gained.
    assert free.computing_s < stream.computing_s
