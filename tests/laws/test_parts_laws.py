"""Laws of steps whose stages have their own replicas: nothing is lost between stages, and equal parts are degrees."""

from itertools import pairwise
from math import gcd

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from quiet_steps import simulated
from tiny_models import FlopPrices, on_stream, transformer

from ropewalk.strategy import Part, Placement, Strategy
from ropewalk.task.lower import lower
from ropewalk.task.lower.roster import messages
from ropewalk.task.step import Act

LAYERS, SEQUENCE, HIDDEN = 6, 8, 16
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


@given(shapes, st.sampled_from(["1f1b", "gpipe", "zb-h1"]), st.integers(0, 3), st.booleans(), st.integers(1, 4))
def test_every_activation_crosses_once_and_its_gradient_comes_back(shape, schedule, zero, scatter, many):
    zero = zero if max(replicas for replicas, _ in shape) > 1 else 0
    strategy = Strategy(pipeline=len(shape), parts=parts_of(shape), micro_batch=4, micro_batches=many, zero=zero,
                        schedule=schedule, scatter_gather=scatter)  # fmt: skip
    step = lower(transformer(LAYERS, 1, SEQUENCE, HIDDEN), strategy, Placement(strategy), FlopPrices())
    sends = step.act == Act.SEND
    activation = 4 * SEQUENCE * HIDDEN * 2
    copies = sum(1 if scatter else a + b for (_, a), (_, b) in pairwise(shape))
    expected = (2 if scatter else 1) * copies * activation * many
    assert np.isclose(step.amount[sends].sum(), expected, rtol=1e-12)
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


@given(st.integers(1, 3), st.sampled_from([1, 2]), st.sampled_from(["1f1b", "gpipe", "zb-h2"]), st.booleans())
def test_equal_parts_take_as_long_as_equal_degrees(replicas, tensor, schedule, scatter):
    model = transformer(LAYERS, 1, SEQUENCE, HIDDEN)
    usual = Strategy(pipeline=2, micro_batches=3, schedule=schedule, scatter_gather=scatter)
    parts = parts_of([(replicas, tensor)] * 2)
    even = Strategy(**{**vars(usual), "data": replicas, "tensor": tensor, "stages": tuple(one.first for one in parts)})
    same = Strategy(**{**vars(usual), "micro_batch": replicas, "parts": parts})
    steps = [lower(model, one, Placement(one, "tp-dp-pp"), FlopPrices()) for one in (even, same)]
    assert simulated(steps[0], 0.05) == simulated(steps[1], 0.05)
