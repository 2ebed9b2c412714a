"""Laws of lowering: the textbook volumes of every sort of parallelism, and nobody in two places at once."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import FlopPrices, Products, clocked, on_stream, transformer

from ropewalk.device.numbers import Numbers
from ropewalk.strategy import KeptPrices, Order, Placement, Strategy, cut, memory, shares_of
from ropewalk.task.lower import lower
from ropewalk.task.step import Act
from ropewalk.timetable import TIMETABLES

BLOCKS, SEQUENCE, HIDDEN = 8, 8, 16
PARAMETERS = 12 * HIDDEN**2 + 13 * HIDDEN


def micro_batches_for(schedule, pipeline):
    if schedule in PAIRED:
        return st.just(2 * pipeline)
    return st.sampled_from([pipeline, 2 * pipeline]) if schedule == "interleaved" else st.integers(1, 4)


PAIRED = ("dualpipe", "dualpipev")
"""Timetables of two directions."""
SIDE_BY_SIDE = (*PAIRED, "1f1b-overlap")
"""Timetables that run passes side by side: only a queue keeps a rank from computing two things at once."""


@st.composite
def strategies(draw, schedules=tuple(TIMETABLES)):
    tensor = draw(st.sampled_from([1, 2, 4]))
    pipeline = draw(st.sampled_from([1, 2, 4]))
    schedule = draw(st.sampled_from(schedules if pipeline > 1 else ["1f1b", "gpipe", "zb-h1"]))
    interleave = 2 if schedule == "interleaved" else 1
    data, context = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2]))
    return Strategy(
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        sequence_parallel=tensor > 1 and draw(st.booleans()),
        zero=draw(st.integers(0, 3)) if data * context > 1 or schedule == "dualpipe" else 0,
        micro_batch=draw(st.integers(1, 2)),
        micro_batches=draw(micro_batches_for(schedule, pipeline)),
        interleave=interleave,
        schedule=schedule,
        recompute=draw(st.sampled_from(["none", "selective", "full", "stage"])),
        order=Order(draw(st.sampled_from([1000.0, 20_000.0, 25e6])), overlap=draw(st.booleans())),
        scatter_gather=draw(st.booleans()),
        prefetch=draw(st.booleans()),
    )


orders = st.sampled_from(["tp-cp-ep-dp-pp", "tp-pp-dp", "pp-dp-tp", "dp-tp-pp"])
in_rows = tuple(name for name in TIMETABLES if name not in SIDE_BY_SIDE)
details = st.sampled_from(["layer", "stage"])


def made(strategy, order="tp-cp-ep-dp-pp", detail="layer", prices=None):
    model = transformer(BLOCKS, 1, SEQUENCE, HIDDEN)
    return lower(model, strategy, Placement(strategy, order), prices or FlopPrices(), detail)


def taking_part(step, operation):
    act = step.act[operation]
    if act == Act.COMPUTE:
        return {int(step.rank[operation])}
    if act == Act.SEND:
        return {int(step.rank[operation]), int(step.peer[operation])}
    return set(step.groups[step.group[operation]].tolist())


def by_rank(step, operations):
    """Of these operations, those that each rank takes part in."""
    found = [[] for _ in range(step.ranks)]
    for at in operations:
        for rank in taking_part(step, at):
            found[rank].append(at)
    return found


@given(strategies(), orders, details)
def test_operations_wait_for_those_of_their_own_ranks_only(strategy, order, detail):
    step = made(strategy, order, detail)
    ranks = [taking_part(step, at) for at in range(step.operations)]
    for at in range(step.operations):
        for dep in step.dep[step.dep_start[at] : step.dep_start[at + 1]]:
            assert ranks[at] & ranks[dep]


@given(strategies(in_rows), details, st.sampled_from([0.0, 0.1, 10.0]))
def test_no_rank_computes_two_things_at_once_or_meets_others_while_it_computes(strategy, detail, byte_s):
    step = made(strategy, detail=detail)
    start, end = clocked(step, byte_s=byte_s)
    blocking = np.isin(step.stream, [step.streams.index(name) for name in ("compute", "tensor", "context")])
    for taken in by_rank(step, np.flatnonzero(blocking)):
        mine = np.array(taken)
        mine = mine[np.lexsort((end[mine], start[mine]))]
        assert (start[mine][1:] >= end[mine][:-1]).all()


@given(strategies(), st.sampled_from([0.1, 10.0]))
def test_collectives_beside_the_computation_keep_their_order(strategy, byte_s):
    step = made(strategy)
    start, end = clocked(step, byte_s=byte_s)
    for name in ("data", "zero"):
        for mine in by_rank(step, np.flatnonzero(on_stream(step, name))):
            assert all(start[after] >= end[before] for before, after in pairwise(mine))


@given(strategies(), orders, details)
def test_products_of_all_ranks_add_up_to_those_of_the_model(strategy, order, detail):
    strategy = Strategy(**{**vars(strategy), "recompute": "none"})
    prices = Products()
    prices.update = lambda *_: 0.0
    step = made(strategy, order, detail, prices)
    model = transformer(BLOCKS, strategy.micro_batch, SEQUENCE, HIDDEN)
    once = sum(Products().forward(layer.operators) + Products().backward(layer.operators) for layer in model.layers)
    total = once * strategy.data * strategy.micro_batches
    computed = np.bincount(step.rank[step.act == Act.COMPUTE], step.amount[step.act == Act.COMPUTE])
    assert np.allclose(computed, total / strategy.ranks, rtol=1e-12)


@given(strategies(), details)
def test_tensor_ranks_reduce_four_activations_a_block_and_micro_batch(strategy, detail):
    """Shoeybi et al. 2019: two all-reduces of b s h in each pass of a block; gathered and scattered, twice as many."""
    strategy = Strategy(**{**vars(strategy), "recompute": "none", "scatter_gather": False})
    step = made(strategy, detail=detail)
    meetings = on_stream(step, "tensor")
    activation = strategy.micro_batch * SEQUENCE * HIDDEN * 2 / strategy.context
    groups = strategy.data * strategy.context
    times = (8 if strategy.sequence_parallel else 4) if strategy.tensor > 1 else 0
    expected = times * activation * BLOCKS * strategy.micro_batches * groups
    assert np.isclose(step.amount[meetings].sum(), expected, rtol=1e-12)
    assert step.repeats[meetings].sum() == times * BLOCKS * strategy.micro_batches * groups


@given(strategies(), details)
def test_data_ranks_reduce_every_parameter_they_share(strategy, detail):
    step = made(strategy, detail=detail)
    sums = on_stream(step, "data")
    # Copies of the model share out the gradients of a micro-batch each at once.
    times = strategy.micro_batches // strategy.copies if strategy.zero >= 2 else 1
    shares = shares_of(transformer(BLOCKS, 1, SEQUENCE, HIDDEN), strategy)
    held = sum(share.parameters for share in shares[:BLOCKS])
    expected = times * held * 2 * strategy.tensor if strategy.replicas > 1 else 0
    assert step.amount[sums].sum() == expected
    wanted = Act.REDUCE_SCATTER if strategy.zero else Act.ALL_REDUCE
    assert (step.act[sums] == wanted).all()


@given(strategies(), details)
def test_stages_hand_on_every_activation_once_and_its_gradient_back(strategy, detail):
    step = made(strategy, detail=detail)
    sends = step.act == Act.SEND
    activation = strategy.micro_batch * SEQUENCE * HIDDEN * 2
    homes = strategy.timetable.device_of_piece[: strategy.pieces]
    cuts = (homes[1:] != homes[:-1]).sum()
    copies = 1 if strategy.sequence_parallel or strategy.scatter_gather else strategy.tensor
    expected = 2 * cuts * activation * copies * strategy.data * strategy.micro_batches
    assert np.isclose(step.amount[sends].sum(), expected, rtol=1e-12)


@given(strategies(in_rows), st.sampled_from([0.0, 0.1, 10.0]))
def test_both_details_take_the_same_time(strategy, byte_s):
    fine, coarse = (clocked(made(strategy, detail=d), byte_s=byte_s, round_s=3.0)[1] for d in ("layer", "stage"))
    assert np.isclose(fine.max(), coarse.max(), rtol=1e-9)


@given(strategies())
def test_more_recomputation_never_keeps_more(strategy):
    model = transformer(BLOCKS, strategy.micro_batch, SEQUENCE, HIDDEN)
    kept = []
    for recompute in ("none", "selective", "full", "stage"):
        plan = Strategy(**{**vars(strategy), "recompute": recompute})
        shares = shares_of(model, plan)
        pieces = cut(model, plan, shares, KeptPrices(FlopPrices()))
        kept.append(memory(plan, shares, pieces, Numbers(2.0)).activations)
    assert (kept[0] >= kept[1] - 1e-6).all()
    assert (kept[1] >= kept[2] - 1e-6).all()
