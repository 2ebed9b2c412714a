"""Lifting gradients out of a step, rewriting how they are launched, weaving them in again."""

from math import inf

import numpy as np
import pytest
from data_parallel_steps import data_parallel, two_ranks
from sequence_pass import sequence

from ropewalk.errors import GraphError
from ropewalk.task.passes import (
    TensorArrival,
    credit,
    cross_barrier,
    fuse,
    gradients_in,
    in_launch_order,
    pack,
    prioritise,
    split,
    stream,
    with_barrier,
    woven,
)
from ropewalk.task.step import Act, StepSketch


def sums_of(step):
    """Labels and bytes of the all-reduces of a step, in its order."""
    at = np.flatnonzero(step.act == Act.ALL_REDUCE)
    return [(step.name_of(one), float(step.amount[one])) for one in at]


def awaited(step, operation):
    """What an operation waits for, directly or not."""
    found, left = set(), [operation]
    while left:
        at = left.pop()
        for dep in step.dep[step.dep_start[at] : step.dep_start[at + 1]].tolist():
            if dep not in found:
                found.add(dep)
                left.append(dep)
    return found


def named(step, label):
    return [at for at in range(step.operations) if step.name_of(at) == label]


def test_gradients_are_launched_as_they_appear_and_the_last_layer_first():
    assert sums_of(woven(two_ranks([4, 8, 2])).step) == [
        ("tensor 2 gradients", 2.0),
        ("tensor 1 gradients", 8.0),
        ("tensor 0 gradients", 4.0),
    ]


def test_the_update_waits_for_all_sums_and_a_sum_for_its_own_layer_alone():
    step = woven(two_ranks([4, 8])).step
    (update, _), (last,) = named(step, "update"), named(step, "tensor 1 gradients")
    assert set(np.flatnonzero(step.act == Act.ALL_REDUCE)) <= awaited(step, update)
    assert not awaited(step, last) & set(named(step, "layer 0 backward"))


def test_a_fused_sum_waits_for_the_last_of_its_gradients():
    step = woven(fuse(two_ranks([4, 8, 2]), [[2, 1], [0]])).step
    assert [size for _, size in sums_of(step)] == [10.0, 4.0]
    (fused,) = named(step, "tensor 1 … tensor 2 gradients")
    assert set(named(step, "layer 1 backward")) <= awaited(step, fused)
    assert not set(named(step, "layer 0 backward")) & awaited(step, fused)


def test_a_split_launch_is_cut_through_all_its_tensors():
    cut = split(fuse(two_ranks([4, 8, 2]), [[2, 1], [0]]), 5)
    assert cut.launch_bytes.tolist() == [5.0, 5.0, 4.0]
    assert [(int(cut.tensor[shard]), size) for shard, size in zip(cut.shard, cut.piece_bytes, strict=True)] == [
        (2, 2.0), (1, 3.0), (1, 5.0), (0, 4.0)
    ]  # fmt: skip


def test_a_tensor_without_bytes_is_still_launched():
    assert split(two_ranks([0, 8]), 5).launch_bytes.tolist() == [5.0, 3.0, 0.0]


def test_the_order_of_launches_is_the_order_of_their_dependencies():
    step = woven(sequence(two_ranks([4, 8, 2]), [1, 2, 0])).step
    chain = [named(step, f"tensor {tensor} gradients")[0] for tensor in (1, 0, 2)]
    assert chain[0] in awaited(step, chain[1])
    assert chain[1] in awaited(step, chain[2])


def test_credit_hands_over_in_order_while_room_is_left():
    step = woven(credit(two_ranks([4, 4, 4]), 8)).step
    third, second, first = (named(step, f"tensor {tensor} gradients")[0] for tensor in (0, 1, 2))
    assert first not in awaited(step, second)
    assert first in awaited(step, third)
    assert second not in awaited(step, third)
    gates = named(step, "hand-over")
    assert gates[0] in awaited(step, second)


def test_credit_without_limit_makes_no_sum_wait_for_another():
    step = woven(credit(two_ranks([4, 4, 4]), inf)).step
    sums = set(np.flatnonzero(step.act == Act.ALL_REDUCE).tolist())
    assert all(not awaited(step, one) & sums for one in sums)


def test_launches_are_as_urgent_as_the_most_urgent_tensor_in_them():
    fused = prioritise(fuse(two_ranks([4, 8, 2]), [[2, 0], [1]]))
    assert fused.priority.tolist() == [1, 2]
    step = woven(fused).step
    assert step.priority[named(step, "tensor 1 gradients")].tolist() == [2]


def test_first_in_first_out_gives_every_launch_its_place():
    assert in_launch_order(two_ranks([4, 8, 2])).priority.tolist() == [1, 2, 3]


def test_streamed_tensors_follow_each_other_and_start_up_once():
    whole = woven(stream(fuse(two_ranks([4, 8, 2]), [[2, 1], [0]])))
    assert sums_of(whole.step) == [
        ("tensor 1 gradients", 8.0),
        ("tensor 2 gradients", 2.0),
        ("tensor 0 gradients", 4.0),
    ]
    assert [whole.step.name_of(at) for at in np.flatnonzero(whole.step.goes_on)] == ["tensor 2 gradients"]


def test_gathered_tensors_are_scattered_together():
    whole = woven(stream(fuse(two_ranks([4, 8, 2]), [[2, 1], [0]]), TensorArrival.GATHERED))
    acts = [Act(int(act)) for act in whole.step.act if act >= Act.ALL_REDUCE]
    assert acts == [Act.REDUCE_SCATTER, Act.ALL_GATHER, Act.ALL_GATHER, Act.REDUCE_SCATTER, Act.ALL_GATHER]
    assert whole.step.goes_on.sum() == 3


def test_across_the_barrier_a_layer_waits_for_its_own_tensors_only():
    gradients = sequence(data_parallel(2, [4, 12], [1.0] * 2, [1.0] * 2, update_s=8.0), [1, 0])
    step = woven(cross_barrier(gradients, 2)).step
    begins = named(step, "layer 0 forward")[2]
    assert named(step, "tensor 0 gradients")[0] in awaited(step, begins)
    assert named(step, "tensor 1 gradients")[0] not in awaited(step, begins)
    assert named(step, "tensor 1 gradients")[0] in awaited(step, named(step, "layer 1 forward")[2])


def test_the_update_is_shared_out_by_bytes():
    step = woven(cross_barrier(data_parallel(2, [4, 12], [1.0] * 2, [1.0] * 2, update_s=8.0), 2)).step
    assert [step.amount[named(step, f"tensor {at} update")].tolist() for at in (0, 1)] == [[2.0, 2.0], [6.0, 6.0]]
    assert not named(step, "update")


def test_nothing_is_updated_before_the_backward_pass_is_over():
    step = woven(cross_barrier(two_ranks([4, 8]), 2)).step
    assert named(step, "layer 0 backward")[0] in awaited(step, named(step, "tensor 1 update")[0])


def test_with_a_barrier_a_step_waits_for_the_whole_update():
    step = woven(with_barrier(two_ranks([4, 8]), 2)).step
    assert named(step, "update")[0] in awaited(step, named(step, "layer 0 forward")[2])


def test_a_reader_of_one_gradient_reads_that_one_alone():
    sketch = StepSketch(2)
    sums = [sketch.collective(Act.ALL_REDUCE, [0, 1], 4.0, label="gradients") for _ in range(2)]
    sketch.compute(0, 1.0, after=sums[:1], label="update")
    gradients = gradients_in(sketch.step(), [0, 1, -1], ["a", "b"])
    assert gradients.read_by.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda g: pack(g, [[(0, 1.0)]]), "tensor 1.*launched 0 times"),
        (lambda g: pack(g, [[(0, 1.0), (1, 1.0)], [(1, 0.5)]]), "launched 1.5 times"),
        (lambda g: pack(g, [[(0, 1.0)], [(5, 1.0)]]), "tensors are 0…1"),
        (lambda g: pack(g, [[(0, 1.0), (1, 1.0)], []]), "empty"),
        (lambda g: split(g, 0), "positive partition size"),
        (lambda g: split(g, 1e-9), "give a partition size"),
        (lambda g: sequence(g, [0, 0]), "exactly once"),
        (lambda g: credit(g, -1), "give 0"),
        (lambda g: prioritise(g, lambda _: np.zeros(3, np.int64)), "give one for each"),
        (lambda g: cross_barrier(cross_barrier(g, 2), 2), "repeat one step"),
        (lambda g: gradients_in(g.base, [0], ["a"]), "for each"),
    ],
)
def test_plans_that_cannot_be_are_refused_with_a_remedy(spoil, complaint):
    with pytest.raises(GraphError, match=complaint):
        spoil(two_ranks([4, 8]))


def test_an_order_in_which_something_would_wait_for_itself_is_refused():
    sketch = StepSketch(2)
    early = sketch.collective(Act.ALL_REDUCE, [0, 1], 4.0, label="gradients")
    between = sketch.compute(0, 1.0, after=[early], label="block backward")
    sketch.collective(Act.ALL_REDUCE, [0, 1], 4.0, after=[between], label="gradients")
    gradients = gradients_in(sketch.step(), [0, -1, 1], ["a", "b"])
    woven(gradients)
    with pytest.raises(GraphError, match="wait for itself"):
        woven(sequence(gradients, [1, 0]))


def test_gradients_that_are_gathered_are_refused():
    sketch = StepSketch(2)
    sketch.collective(Act.ALL_GATHER, [0, 1], 4.0)
    with pytest.raises(GraphError, match="both all-reduce and reduce-scatter"):
        gradients_in(sketch.step(), [0], ["a"])
