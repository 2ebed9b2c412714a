"""Laws of steps whose stages have their own replicas: nothing is lost between stages, and equal parts are degrees."""

from itertools import pairwise
from math import gcd

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from quiet_steps import simulated
from tiny_models import FlopPrices, Products, on_stream, transformer

from ropewalk.strategy import Order, Part, Placement, Strategy
from ropewalk.strategy.shares import share_of
from ropewalk.task.lower import lower
from ropewalk.task.lower.roster import messages
from ropewalk.task.step import Act

LAYERS, SEQUENCE, HIDDEN = 6, 8, 16
TINY = transformer(LAYERS, 4, SEQUENCE, HIDDEN)
shapes = st.lists(st.tuples(st.integers(1, 4), st.sampled_from([1, 2])), min_size=2, max_size=3)


def parts_of(shape):
    """Parts with these (replicas, tensor ranks), ranks in order."""
    cuts = np.linspace(0, LAYERS, len(shape) + 1).astype(int).tolist()
    found, free = [], 0
    for (replicas, tensor), first, end in zip(shape, cuts, cuts[1:], strict=False):
        workers = tuple(range(free, free + replicas * tensor))
        free += len(workers)
        found.append(Part(first, end - 1, workers, tensor))
    return tuple(found)


@given(
    shapes, st.sampled_from(["1f1b", "gpipe", "zb-h1"]), st.integers(0, 3),
    st.sampled_from(["", "scatter", "sequence"]), st.integers(1, 4),
)  # fmt: skip
def test_every_activation_crosses_once_and_its_gradient_comes_back(shape, schedule, zero, parted, many):
    """In parts that are gathered, or in those of the sequence; otherwise each tensor rank gets all of it."""
    zero = zero if max(replicas for replicas, _ in shape) > 1 else 0
    strategy = Strategy(pipeline=len(shape), parts=parts_of(shape), micro_batch=4, micro_batches=many, zero=zero,
                        schedule=schedule, scatter_gather=parted == "scatter",
                        sequence_parallel=parted == "sequence" and max(tensor for _, tensor in shape) > 1)  # fmt: skip
    step = lower(transformer(LAYERS, 1, SEQUENCE, HIDDEN), strategy, Placement(strategy), FlopPrices())
    sends = step.act == Act.SEND
    activation = 4 * SEQUENCE * HIDDEN * 2
    in_parts = strategy.scatter_gather or strategy.sequence_parallel
    copies = sum(2 if in_parts else a + b for (_, a), (_, b) in pairwise(shape))
    assert np.isclose(step.amount[sends].sum(), copies * activation * many, rtol=1e-12)
    stage = Placement(strategy).stage_of()
    assert (abs(stage[step.rank[sends]] - stage[step.peer[sends]]) == 1).all()


@given(shapes, st.sampled_from(["1f1b", "zb-h1"]))
def test_replicas_reduce_the_gradients_of_their_part(shape, schedule):
    strategy = Strategy(pipeline=len(shape), parts=parts_of(shape), micro_batch=4, micro_batches=2, schedule=schedule)
    step = lower(transformer(LAYERS, 1, SEQUENCE, HIDDEN), strategy, Placement(strategy), FlopPrices())
    for operation in np.flatnonzero(on_stream(step, "data")):
        members = set(step.groups[step.group[operation]].tolist())
        assert any(members == set(one.workers[at :: one.tensor]) for one in strategy.parts for at in range(one.tensor))


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 6), st.integers(1, 3))
def test_messages_carry_every_part_of_a_micro_batch_once(replicas, tensor, others, their_tensor):
    source, target, share = messages(replicas, tensor, others, their_tensor)
    assert np.allclose(np.bincount(source, share), 1 / (replicas * tensor))
    assert np.allclose(np.bincount(target, share), 1 / (others * their_tensor))
    assert len(set(zip(source.tolist(), target.tolist(), strict=True))) == len(share)
    many = replicas + others - gcd(replicas, others)
    assert len(share) == many * (tensor + their_tensor - gcd(tensor, their_tensor))


@st.composite
def mirrored(draw):
    """Strategies whose stages have their own replicas and lie once more on the ranks of the opposite stage."""
    counts = st.sampled_from([1, 2, 4])
    half = draw(st.lists(st.tuples(counts, counts, st.sampled_from([1, 2])), min_size=1, max_size=2))
    shape = [(near, tensor) for near, _, tensor in half] + [(far, tensor) for _, far, tensor in reversed(half)]
    many = draw(st.sampled_from([2, 3])) * len(shape)
    return Strategy(pipeline=len(shape), parts=parts_of(shape), micro_batch=4, micro_batches=many, schedule="dualpipe",
                    zero=draw(st.integers(0, 3)), prefetch=draw(st.booleans()),
                    order=Order(draw(st.sampled_from([1000.0, 25e6])), overlap=draw(st.booleans())))  # fmt: skip


def lowered(strategy, prices=None, detail="layer"):
    return lower(
        transformer(LAYERS, 1, SEQUENCE, HIDDEN), strategy, Placement(strategy), prices or FlopPrices(), detail
    )


@settings(max_examples=40)
@given(mirrored())
def test_half_of_the_activations_go_through_each_copy_of_the_model(strategy):
    step = lowered(strategy)
    sends = step.act == Act.SEND
    stage = Placement(strategy).stage_of()
    onward = stage[step.peer[sends]] > stage[step.rank[sends]]
    expected = (strategy.pipeline - 1) * 4 * SEQUENCE * HIDDEN * 2 * strategy.micro_batches
    assert np.isclose(step.amount[sends][onward].sum(), expected, rtol=1e-12)
    assert np.isclose(step.amount[sends][~onward].sum(), expected, rtol=1e-12)


@settings(max_examples=40)
@given(mirrored())
def test_gradients_of_a_stage_are_reduced_over_the_replicas_of_both_copies(strategy):
    step, parts = lowered(strategy), strategy.parts
    reduced = np.flatnonzero(on_stream(step, "data"))
    groups = {
        frozenset((*one.workers[at :: one.tensor], *other.workers[at :: one.tensor]))
        for one, other in zip(parts, reversed(parts), strict=True)
        for at in range(one.tensor)
    }
    assert {frozenset(step.groups[step.group[at]].tolist()) for at in reduced} == groups
    gathered = np.flatnonzero(on_stream(step, "zero"))
    assert {frozenset(step.groups[step.group[at]].tolist()) for at in gathered} == (groups if strategy.zero else set())
    views = strategy.on_stages()
    held = sum(
        view.tensor * sum(share_of(TINY.layers[at], view).parameters for at in one.layers)
        for view, one in zip(views, parts, strict=True)
    )
    # Each copy has a micro-batch in every pass whose gradients are shared out.
    times = strategy.micro_batches // 2 if strategy.zero >= 2 else 1
    assert step.amount[reduced].sum() == times * held * 2


@settings(max_examples=40)
@given(mirrored())
def test_replicas_of_both_copies_together_compute_every_sample_once(strategy):
    """A replica of a part with r of them sees 1/(2 r) of the batch in each of its two stages."""
    prices = Products()
    prices.update = lambda *_: 0.0
    step = lowered(strategy, prices)
    alone = step.act == Act.COMPUTE
    computed = np.bincount(step.rank[alone], step.amount[alone], step.ranks)
    once = [prices.forward(layer.operators) + prices.backward(layer.operators) for layer in TINY.layers]
    for one, other in zip(strategy.parts, reversed(strategy.parts), strict=True):
        work = sum(once[at] for part in (one, other) for at in part.layers) * strategy.micro_batches / 2
        assert np.allclose(computed[list(one.workers)], work / len(one.workers), rtol=1e-12)
    assert np.isclose(computed.sum(), sum(once) * strategy.micro_batches, rtol=1e-12)


@settings(max_examples=50)
@given(
    st.integers(1, 3), st.sampled_from([1, 2]), st.sampled_from(["1f1b", "gpipe", "zb-h2", "dualpipe"]), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_equal_parts_take_as_long_as_equal_degrees(replicas, tensor, schedule, scatter, sequence):
    model = transformer(LAYERS, 1, SEQUENCE, HIDDEN)
    many = 4 if schedule == "dualpipe" else 3
    usual = Strategy(pipeline=2, micro_batches=many, schedule=schedule, scatter_gather=scatter,
                     sequence_parallel=sequence and tensor > 1)  # fmt: skip
    parts = parts_of([(replicas, tensor)] * 2)
    even = Strategy(**{**vars(usual), "data": replicas, "tensor": tensor, "stages": tuple(one.first for one in parts)})
    same = Strategy(**{**vars(usual), "micro_batch": replicas, "parts": parts})
    steps = [lower(model, one, Placement(one, "tp-dp-pp"), FlopPrices()) for one in (even, same)]
    assert simulated(steps[0], 0.05) == simulated(steps[1], 0.05)
