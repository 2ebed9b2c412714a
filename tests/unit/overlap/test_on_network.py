"""Tensors and plans as steps: what becomes of them, and what cannot become a step."""

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import cut_as_planned, in_ready_order
from ropewalk.overlap.link import Link
from ropewalk.overlap.on_network import as_handed_over, as_launched, as_scheduled, gradients_of
from ropewalk.overlap.policy import Policy
from ropewalk.overlap.scheduler import schedule
from ropewalk.overlap.tensors import from_layers

THREE = from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3)


def test_tensors_keep_their_names_sizes_and_layers():
    tensors = from_layers([3, 6, 3], backward_s=[2, 1], forward_s=[1, 1], layer=[0, 1, 1], names=("a", "b", "c"))
    gradients = gradients_of(tensors, 2)
    assert gradients.names == ("a", "b", "c")
    assert gradients.layers == ("layer 0", "layer 1", "layer 1")
    assert gradients.tensor_bytes.tolist() == [3.0, 6.0, 3.0]


def test_launches_follow_the_schedule():
    run = schedule(THREE, Link(bandwidth=1), Policy(partition_bytes=2))
    gradients = as_scheduled(gradients_of(THREE, 2), run)
    assert gradients.launch_bytes.tolist() == run.pieces.size_bytes[run.order].tolist()
    assert gradients.tensor[gradients.shard].tolist() == run.pieces.tensor[run.order].tolist()
    assert gradients.credit_bytes == 0


def test_a_network_that_is_told_what_comes_next_has_the_credit():
    run = schedule(THREE, Link(bandwidth=1), Policy(partition_bytes=2, credit_bytes=4))
    assert as_handed_over(gradients_of(THREE, 2), run).credit_bytes == 4


def test_parts_of_a_group_that_arrives_together_are_parts_of_each_tensor():
    sums, link = one_stream_sums(THREE), Link(bandwidth=1)
    launches = cut_as_planned(sums, link, Groups(((2, 1), (0,))), Arrival.TOGETHER)
    assert launches.count == 3
    gradients = as_launched(gradients_of(THREE, 2), launches)
    assert gradients.launch_bytes.tolist() == pytest.approx(launches.size_bytes.tolist())
    assert gradients.tensor[gradients.shard].tolist() == [2, 1, 0, 2, 1]


def test_a_gathered_group_that_is_put_aside_is_no_collective():
    sums, link = one_stream_sums(THREE), Link(bandwidth=1)
    with pytest.raises(WorkloadError, match="use in_ready_order"):
        as_launched(gradients_of(THREE, 2), cut_as_planned(sums, link, Groups(((2, 1), (0,))), Arrival.GATHERED))
    whole = in_ready_order(sums, Groups(((2, 1), (0,))), Arrival.GATHERED)
    assert as_launched(gradients_of(THREE, 2), whole).launch_bytes.tolist() == [9.0, 3.0]


def test_gradients_that_were_seen_at_other_times_are_refused():
    seen = from_layers([3, 6], backward_s=[2, 2], forward_s=[2, 2], ready_s=[4, 1])
    with pytest.raises(WorkloadError, match="leave out ready_s"):
        gradients_of(seen, 2)
