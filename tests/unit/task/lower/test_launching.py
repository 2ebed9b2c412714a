"""Gradients of lowered models in a custom order: groups, pieces, priorities, credit, streams, consecutive steps."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from tiny_models import EvenPrices, FlopPrices, clocked, transformer

from ropewalk.errors import StrategyError
from ropewalk.strategy import ORDERS, Order, Part, Placement, Strategy
from ropewalk.strategy.order import launches_of
from ropewalk.task.lower import STREAMS, lower, lower_steps
from ropewalk.task.step import Act

DATA = STREAMS.index("data")
BLOCK = 12 * 16**2 + 13 * 16
"""Parameters of a block of the tiny transformer."""


def ordered(strategy, order, prices=EvenPrices, detail="layer", **model):
    planned = replace(strategy, order=order)
    return lower(transformer(**model), planned, Placement(planned), prices(), detail)


def launches(step, rank=0):
    """Label, bytes, collectives that it stands for and priority of what a rank launches, in its order."""
    mine = [at for at in np.flatnonzero((step.stream == DATA) & (step.act != Act.BARRIER)).tolist()
            if rank in step.groups[step.group[at]]]  # fmt: skip
    return [(step.name_of(at), float(step.amount[at]), int(step.priority[at])) for at in mine]


def sizes(step, rank=0):
    whole = step.amount[step.stream == DATA].max()
    return [size / whole for _, size, _ in launches(step, rank)]


STRATEGIES = [
    (Strategy(data=2), {}),
    (Strategy(data=2, tensor=2, pipeline=2, micro_batches=3), {}),
    (Strategy(data=2, pipeline=2, interleave=2, schedule="interleaved", micro_batches=2), {}),
    (Strategy(data=2, pipeline=2, schedule="zb-h1", micro_batches=4), {}),
    (Strategy(data=2, pipeline=2, schedule="dualpipe", micro_batches=4), {}),
    (Strategy(data=4, expert=2, pipeline=2, micro_batches=2), {"mixture": 2}),
    (Strategy(data=2, pipeline=2, micro_batches=2), {"words": 10}),
    (Strategy(data=2, zero=1), {}),
    (Strategy(data=3, order=Order(overlap=False)), {}),
]


@pytest.mark.parametrize(("strategy", "model"), STRATEGIES)
@pytest.mark.parametrize("bucket", [1.0, 1e4, 2e4])
def test_buckets_by_passes_are_the_buckets_of_lowering(strategy, model, bucket):
    usual = ordered(strategy, replace(strategy.order, fusion=bucket), **model)
    # Priorities among launches that go one at a time change nothing, but the gradients go through all passes.
    passed = ordered(strategy, replace(strategy.order, fusion=bucket, priority="queued"), **model)
    assert np.sort(clocked(passed, 1e-3)[1]) == pytest.approx(np.sort(clocked(usual, 1e-3)[1]))
    assert passed.repeats.sum() == usual.repeats.sum()


def test_stages_launch_their_own_layers_in_the_order_that_is_listed():
    order = Order(fusion=launches_of([["block 2", "block 1"], ["block 3"], ["block 0"]]))
    step = ordered(Strategy(data=2, pipeline=2, micro_batches=2), order, blocks=4)
    first, last = (launches(step, rank) for rank in (0, 3))
    assert [label for label, *_ in first] == ["block 1 gradients", "block 0 gradients"]
    assert [label for label, *_ in last] == ["block 2 gradients", "block 3 gradients"]


def test_experts_are_launched_with_their_layer_among_those_who_have_them():
    step = ordered(Strategy(data=4, expert=2), Order(fusion=launches_of([["block 1", "block 0"]])), blocks=2, mixture=2)
    assert [label for label, *_ in launches(step)] == [
        "block 0 … block 1 gradients", "block 0 experts … block 1 experts gradients"
    ]  # fmt: skip
    assert sorted({len(step.groups[at]) for at in step.group[step.stream == DATA]}) == [2, 4]


@pytest.mark.parametrize("name", ORDERS)
def test_stages_with_replicas_of_their_own_reduce_among_those(name):
    parts = Part(0, 1, (0, 1, 2)), Part(2, 3, (3, 4))
    strategy = Strategy(pipeline=2, micro_batch=6, micro_batches=4, parts=parts)
    step = ordered(strategy, ORDERS[name].make, blocks=4, batch=6)
    groups = {tuple(step.groups[at].tolist()) for at in step.group[step.stream == DATA]}
    assert groups == {(0, 1, 2), (3, 4)}
    assert sum(size for _, size, _ in launches(step, 0)) == sum(size for _, size, _ in launches(step, 4))


def test_launches_are_cut_into_pieces():
    step = ordered(Strategy(data=2), Order(fusion=0.0, partition_bytes=BLOCK), blocks=2)
    assert [size for _, size, _ in launches(step)] == [BLOCK] * 4


def test_a_part_of_a_layer_goes_where_it_is_listed():
    order = Order(fusion=((("block 1", 0.25),), (("block 0", 1.0),), (("block 1", 0.75),)))
    assert sizes(ordered(Strategy(data=2), order, blocks=2)) == pytest.approx([0.25, 1.0, 0.75])


def test_the_first_layer_is_the_most_urgent_and_all_else_goes_before():
    step = ordered(Strategy(data=2, tensor=2), ORDERS["priority"].make, blocks=3)
    assert [(label, priority) for label, _, priority in launches(step)] == [
        ("block 2 gradients", 3), ("block 1 gradients", 2), ("block 0 gradients", 1)
    ]  # fmt: skip
    assert not step.priority[step.stream != DATA].any()


def test_streamed_layers_start_up_once_and_the_most_urgent_goes_first():
    step = ordered(Strategy(data=2), Order(arrival="streamed"), blocks=3)
    assert [label for label, *_ in launches(step)] == ["block 0 gradients", "block 1 gradients", "block 2 gradients"]
    assert step.goes_on[step.stream == DATA].tolist() == [False, True, True]


def test_credit_hands_over_as_much_as_fits():
    def in_flight(credit):
        step = ordered(Strategy(data=2), Order(fusion=0.0, credit_bytes=credit), blocks=4)
        start, end = barrier_clock(step, 10.0)
        sums = np.flatnonzero((step.stream == DATA) & (step.act == Act.ALL_REDUCE))
        return max(int(((start[sums] <= at) & (end[sums] > at)).sum()) for at in start[sums])

    assert [in_flight(credit) for credit in (0.0, 4 * BLOCK, inf)] == [1, 2, 4]


def test_layers_that_are_left_out_or_unknown_are_all_named():
    with pytest.raises(StrategyError) as refused:
        ordered(Strategy(data=2), Order(fusion=launches_of([["block 1", "block 7"]])), blocks=3)
    for fact in (
        "'block 7', which is not a layer",
        "block 0 has gradients that no launch has",
        "block 2 has gradients",
    ):
        assert fact in str(refused.value)


@pytest.mark.parametrize(("strategy", "model"), [pair for pair in STRATEGIES if not pair[0].zero])
@pytest.mark.parametrize("detail", ["layer", "stage"])
def test_the_next_step_waits_for_each_layer_alone_and_is_never_later(strategy, model, detail):
    workload = transformer(**model)

    def ends(across):
        planned = replace(strategy, order=Order(fusion=0.0, across_steps=across))
        made = lower_steps(workload, planned, Placement(planned), FlopPrices(), 4, detail)
        _, end = barrier_clock(made.step, 1e-3)
        return np.array([end[over].max() for over in made.ends])

    apart, together = ends(True), ends(False)
    assert (np.diff(apart) <= np.diff(together) * (1 + 1e-12)).all()
    assert np.diff(together) == pytest.approx(together[0])


def test_steps_across_the_barrier_compute_the_same():
    strategy = Strategy(data=2, micro_batches=2, order=Order(across_steps=True))
    one, many = (lower_steps(transformer(3), strategy, Placement(strategy), FlopPrices(), steps) for steps in (1, 3))
    update = one.step.amount[[one.step.name_of(at) == "update" for at in range(one.step.operations)]].sum()
    computed = [made.step.amount[made.step.act == Act.COMPUTE].sum() for made in (one, many)]
    # The update of the last step is left to the step behind it.
    assert computed[1] == pytest.approx(3 * computed[0] - update)
    assert one.step.flops == many.step.flops


def barrier_clock(step, byte_s):
    """Operations as soon as what they wait for is done, one at a time on the stream of a rank's computations."""
    start, end = np.zeros(step.operations), np.zeros(step.operations)
    for at in range(step.operations):
        start[at] = max((end[dep] for dep in step.dep[step.dep_start[at] : step.dep_start[at + 1]]), default=0.0)
        took = {Act.COMPUTE: 1.0, Act.BARRIER: 0.0}.get(Act(step.act[at]), byte_s)
        end[at] = start[at] + took * step.amount[at]
    return start, end
