"""Laws of passes: bytes are conserved, nobody reads what is not summed, and passes that should commute do."""

from math import inf

import numpy as np
from data_parallel_steps import data_parallel
from hypothesis import given, settings
from hypothesis import strategies as st
from sequence_pass import sequence
from tiny_gradients import gradients_of_layers, lowered_gradients
from tiny_models import EvenPrices, clocked, transformer

from ropewalk.strategy import Order, Placement, Strategy
from ropewalk.task.lower import lower
from ropewalk.task.passes import (
    TensorArrival,
    by_consumer,
    credit,
    cross_barrier,
    fuse,
    prioritise,
    split,
    stream,
    with_barrier,
    woven,
)
from ropewalk.task.step import Act

BYTE_S = 0.25


@st.composite
def by_hand(draw):
    layers = draw(st.integers(1, 5))
    seconds = st.lists(st.integers(0, 4).map(float), min_size=layers, max_size=layers)
    owner = sorted(draw(st.lists(st.integers(0, layers - 1), min_size=1, max_size=6)))
    sizes = draw(st.lists(st.integers(0, 16).map(float), min_size=len(owner), max_size=len(owner)))
    return data_parallel(draw(st.integers(2, 3)), sizes, draw(seconds), draw(seconds), layer=owner, update_s=2.0)


@st.composite
def lowered(draw):
    strategy = Strategy(
        data=draw(st.integers(2, 3)),
        tensor=draw(st.sampled_from([1, 2])),
        pipeline=draw(st.sampled_from([1, 2])),
        micro_batches=draw(st.integers(1, 3)),
        schedule=draw(st.sampled_from(["1f1b", "gpipe"])),
    )
    return lowered_gradients(transformer(draw(st.integers(2, 4))), strategy)


worlds = st.one_of(by_hand(), lowered())


@st.composite
def groupings(draw, tensors):
    order = draw(st.permutations(range(tensors)))
    ends = sorted({*draw(st.lists(st.integers(1, tensors), max_size=3)), tensors})
    return [list(order[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


@st.composite
def passes(draw, gradients):
    """A few passes with their arguments; no fusing, after which an order of launches would mean something else."""
    partition = max(1.0, float(gradients.launch_bytes.max()) / draw(st.integers(1, 3)))
    limit = draw(st.sampled_from([0.0, float(gradients.launch_bytes.max()), inf]))
    arrival = draw(st.sampled_from(list(TensorArrival)))
    return [
        lambda g: split(g, partition),
        lambda g: prioritise(g, by_consumer),
        lambda g: credit(g, limit),
        lambda g: stream(g, arrival),
    ]


def same(left, right):
    """Are two steps the same operations, waiting for the same ones?"""
    return all(
        np.array_equal(getattr(left, name), getattr(right, name))
        for name in ("act", "rank", "group", "amount", "stream", "priority", "dep_start", "dep")
    ) and [left.name_of(at) for at in range(left.operations)] == [right.name_of(at) for at in range(right.operations)]


def wire_bytes(step, gradients):
    """Bytes of gradients: an all-reduce, or a scatter and a gather, of each."""
    mine = step.stream == gradients.stream
    halves = {Act.ALL_REDUCE: 2.0, Act.REDUCE_SCATTER: 1.0, Act.ALL_GATHER: 1.0}
    return sum(weight * float(step.amount[mine & (step.act == act)].sum()) for act, weight in halves.items())


@settings(max_examples=40)
@given(data=st.data(), gradients=worlds)
def test_every_chain_of_passes_conserves_bytes(data, gradients):
    total = 2 * float(gradients.size_bytes.sum())
    made = fuse(gradients, data.draw(groupings(len(gradients.names))))
    for one in data.draw(st.permutations(data.draw(passes(gradients)))):
        made = one(made)
    made = sequence(made, data.draw(st.permutations(range(made.lots))))
    steps = data.draw(st.integers(1, 3))
    repeated = data.draw(st.sampled_from([cross_barrier, with_barrier]))(made, steps)
    assert np.isclose(wire_bytes(woven(repeated).step, gradients), steps * total, rtol=1e-9)


@settings(max_examples=40)
@given(data=st.data(), gradients=worlds)
def test_nobody_reads_before_the_sum_and_nothing_is_summed_before_it_is_made(data, gradients):
    made = fuse(gradients, data.draw(groupings(len(gradients.names))))
    for one in data.draw(passes(gradients)):
        made = one(made)
    made = cross_barrier(made, 2)
    whole = woven(made)
    start, end = clocked_with_barriers(whole.step)
    for shard, maker in made.made_by.tolist():
        assert all(start[at] >= end[whole.base_operation[maker]] for at in whole.sums[shard])
    for shard, reader in made.read_by.tolist():
        assert all(start[whole.base_operation[reader]] >= end[at] for at in whole.sums[shard])


@settings(max_examples=40)
@given(data=st.data(), gradients=worlds)
def test_a_forward_pass_of_the_next_step_waits_for_every_tensor_of_its_layer(data, gradients):
    made = cross_barrier(sequence(gradients, data.draw(st.permutations(range(gradients.lots)))), 2)
    whole = woven(made)
    start, end = clocked_with_barriers(whole.step)
    for shard in np.flatnonzero(made.step_of == 0).tolist():
        label = f"{made.layers[made.tensor[shard]]} forward"
        for rank in made.base.groups[int(made.lane[shard])].tolist():
            mine = np.flatnonzero((whole.step.rank == rank) & (whole.step.act == Act.COMPUTE))
            passes_of = [at for at in mine if whole.step.name_of(at) == label]
            second = passes_of[len(passes_of) // 2]
            assert all(start[second] >= end[at] for at in whole.sums[shard])


@settings(max_examples=30)
@given(data=st.data(), gradients=worlds)
def test_passes_on_one_step_are_passes_on_all_of_them(data, gradients):
    grouping = data.draw(groupings(len(gradients.names)))
    order = data.draw(st.permutations(range(len(grouping))))
    chain = [lambda g: fuse(g, grouping), lambda g: sequence(g, order), *data.draw(passes(gradients))]
    repeat = data.draw(st.sampled_from([cross_barrier, with_barrier]))
    before, after = gradients, repeat(gradients, 2)
    for one in chain:
        before, after = one(before), one(after)
    assert same(woven(repeat(before, 2)).step, woven(after).step)


@settings(max_examples=30)
@given(data=st.data(), gradients=worlds)
def test_cutting_urgency_credit_and_streaming_commute(data, gradients):
    fused = fuse(gradients, data.draw(groupings(len(gradients.names))))
    listed = data.draw(passes(gradients))
    # A launch that is cut has pieces of fewer tensors, so that urgency is given to whole launches or after cutting.
    straight, mixed = fused, fused
    for one in listed:
        straight = one(straight)
    for one in data.draw(st.permutations([listed[0], *listed[2:]])):
        mixed = one(mixed)
    assert same(woven(straight).step, woven(listed[1](mixed)).step)


@settings(max_examples=30)
@given(data=st.data(), gradients=worlds)
def test_only_the_last_fusing_counts(data, gradients):
    first, last = (data.draw(groupings(len(gradients.names))) for _ in range(2))
    assert same(woven(fuse(fuse(gradients, first), last)).step, woven(fuse(gradients, last)).step)


@settings(max_examples=30)
@given(
    blocks=st.integers(1, 4), data=st.integers(2, 3), tensor=st.sampled_from([1, 2]), pipeline=st.sampled_from([1, 2]),
    micro_batches=st.integers(1, 3),
)  # fmt: skip
def test_lifting_out_and_weaving_in_changes_no_time(blocks, data, tensor, pipeline, micro_batches):
    strategy = Strategy(
        data=data, tensor=tensor, pipeline=pipeline, micro_batches=micro_batches, order=Order(100.0)
    )  # fmt: skip
    step = lower(transformer(2 * blocks), strategy, Placement(strategy), EvenPrices(), detail="layer")
    again = woven(gradients_of_layers(step)).step
    assert np.allclose(np.sort(clocked(step, BYTE_S)[1]), np.sort(clocked(again, BYTE_S)[1]), rtol=1e-12)


def clocked_with_barriers(step):
    """The clock of the tiny models, on which a hand-over takes no time."""
    start, end = np.zeros(step.operations), np.zeros(step.operations)
    plain = np.where(step.act == Act.COMPUTE, step.amount, np.where(step.act == Act.BARRIER, 0.0, step.amount * BYTE_S))
    for at in range(step.operations):
        start[at] = max((end[dep] for dep in step.dep[step.dep_start[at] : step.dep_start[at + 1]]), default=0.0)
        end[at] = start[at] + plain[at]
    return start, end
