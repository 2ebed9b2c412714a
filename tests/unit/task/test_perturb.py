"""Steps on GPUs that vary and lag."""

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import GraphError
from ropewalk.task.perturb import perturb
from ropewalk.task.step import Act, StepSketch


def many(count=20_000, ranks=4):
    sketch = StepSketch(ranks)
    for number in range(count):
        sketch.compute(number % ranks, 2.0)
    sketch.collective(Act.ALL_REDUCE, range(ranks), 5.0)
    return sketch.step()


def test_jitter_varies_computations_around_their_mean_and_nothing_else():
    step = many()
    varied = perturb(step, seed=1, jitter=0.1)
    factor = varied.amount[:-1] / 2.0
    assert factor.mean() == pytest.approx(1.0, abs=0.003)
    assert np.log(factor).std() == pytest.approx(0.1, rel=0.03)
    assert varied.amount[-1] == 5.0
    assert (step.amount[:-1] == 2.0).all()


def test_sum_of_many_computations_varies_less_than_one():
    step = many()
    step = replace(step, repeats=np.full(step.operations, 25, np.int32))
    assert np.log(perturb(step, jitter=0.1).amount[:-1]).std() == pytest.approx(0.02, rel=0.03)


def test_same_seed_gives_the_same_step_and_another_one_another():
    step = many(100)
    assert (perturb(step, seed=3).amount == perturb(step, seed=3).amount).all()
    assert (perturb(step, seed=3).amount != perturb(step, seed=4).amount).any()


def test_stragglers_are_named_or_drawn():
    step = many(8)
    assert perturb(step, jitter=0, stragglers={2: 3.0}).amount[:4].tolist() == [2.0, 2.0, 6.0, 2.0]
    drawn = perturb(step, seed=5, jitter=0, stragglers=(2, 1.5)).amount[:4]
    assert sorted(drawn.tolist()) == [2.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"jitter": -1.0}, "jitter is -1.0: give 0"),
        ({"seed": -1}, "the seed is -1: give a whole number"),
        ({"stragglers": {9: 2.0}}, "straggler 9 is not a rank: give 0 to 3"),
        ({"stragglers": {1: 0.0}}, "straggler 1 is 0.0 times slower: give a positive factor"),
        ({"stragglers": (5, 2.0)}, "5 stragglers among 4 ranks"),
    ],
)
def test_what_cannot_be_is_refused(given, text):
    with pytest.raises(GraphError, match=text):
        perturb(many(8), **given)
