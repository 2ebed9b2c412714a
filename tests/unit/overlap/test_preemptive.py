"""The best preemptive order on examples with known answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from grouping_oracles import largest_subset

from ropewalk.errors import GraphError
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.link import Link
from ropewalk.overlap.preemptive import preemptive_jobs, preemptive_optimum
from ropewalk.overlap.tensors import from_layers

CASES = json.loads((Path(__file__).parents[2] / "data" / "fused_sums.json").read_text())["heads_tails"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["value"]))
def test_largest_tail_first_reaches_the_known_optimum(case):
    columns = list(zip(*case["jobs"], strict=True))
    best = preemptive_jobs(*columns)
    assert best.value_s == case["value"] == largest_subset(*columns)
    assert best.done_s.tolist() == case["done"]
    if "pieces" in case:
        found = list(zip(best.job.tolist(), best.begin_s.tolist(), best.end_s.tolist(), strict=True))
        assert found == [tuple(piece) for piece in case["pieces"]]


def test_the_published_layers_become_jobs_with_value_17():
    tensors = from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3)
    best = preemptive_optimum(one_stream_sums(tensors), Link(bandwidth=1))
    assert best.done_s.tolist() == [9, 13, 14]
    assert tensors.step_s(best.done_s) == best.value_s == 17


def test_a_job_of_equal_tail_is_not_put_aside():
    best = preemptive_jobs([0, 1], [2, 2], [3, 3])
    assert best.job.tolist() == [0, 1]
    assert best.done_s.tolist() == [2, 4]


def test_a_release_at_the_end_of_a_job_but_for_rounding_cuts_nothing():
    best = preemptive_jobs([0.0, 0.3], [0.1 + 0.2, 1.0], [0.0, 5.0])
    assert best.job.tolist() == [0, 1]


def test_the_network_idles_until_something_is_ready():
    best = preemptive_jobs([5, 20], [1, 1], [0, 0])
    assert best.begin_s.tolist() == [5, 20]


def test_bad_jobs_are_refused():
    with pytest.raises(GraphError, match="one of each"):
        preemptive_jobs([1, 2], [1], [1])
    with pytest.raises(GraphError, match="negative"):
        preemptive_jobs([1], [-1], [1])
    with pytest.raises(GraphError, match="use preemptive_jobs"):
        largest_subset([0] * 21, [1] * 21, [0] * 21)
