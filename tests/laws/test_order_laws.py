"""Laws of orders of gradients in lowered steps: every byte once, after it is made and before it is used."""

from dataclasses import replace
from math import inf

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import EvenPrices, transformer

from ropewalk.strategy import Order, Placement, Strategy
from ropewalk.strategy.order import launches_of
from ropewalk.task.lower import STREAMS, lower, lower_steps
from ropewalk.task.step import Act

DATA = STREAMS.index("data")
BLOCKS = 4
HALVES = {Act.ALL_REDUCE: 2.0, Act.REDUCE_SCATTER: 1.0, Act.ALL_GATHER: 1.0, Act.BARRIER: 0.0}


@st.composite
def strategies(draw):
    experts = draw(st.sampled_from([1, 2]))
    pipeline = draw(st.sampled_from([1, 2]))
    return Strategy(
        data=2 * experts,
        expert=experts,
        tensor=draw(st.sampled_from([1, 2])),
        pipeline=pipeline,
        micro_batches=draw(st.sampled_from([2, 4])),
        schedule=draw(st.sampled_from(["1f1b", "gpipe", "zb-h1"])) if pipeline > 1 else "1f1b",
    )


@st.composite
def orders(draw):
    names = draw(st.permutations([f"block {number}" for number in range(BLOCKS)]))
    ends = sorted({*draw(st.lists(st.integers(1, BLOCKS), max_size=2)), BLOCKS})
    groups = [names[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    arrival = draw(st.sampled_from(["whole", "streamed", "gathered", "released"]))
    return Order(
        fusion=draw(st.sampled_from([0.0, 1e4, launches_of(groups)])),
        partition_bytes=inf if arrival == "gathered" else draw(st.sampled_from([inf, 1500.0])),
        priority=draw(st.sampled_from(["fifo", "queued", "forward"])),
        credit_bytes=draw(st.sampled_from([0.0, 4e3, inf])),
        arrival=arrival,
        overlap=draw(st.booleans()),
        across_steps=draw(st.booleans()),
    )


def model(strategy):
    return transformer(BLOCKS, mixture=2 if strategy.expert > 1 else 0)


def wire_bytes(step):
    """Bytes of gradients by rank: an all-reduce, or a scatter and a gather, of each."""
    total = np.zeros(step.ranks)
    for at in np.flatnonzero(step.stream == DATA).tolist():
        total[step.groups[step.group[at]]] += HALVES[Act(step.act[at])] * step.amount[at]
    return total


def clocked(step, byte_s=1e-3):
    start, end = np.zeros(step.operations), np.zeros(step.operations)
    for at in range(step.operations):
        start[at] = max((end[dep] for dep in step.dep[step.dep_start[at] : step.dep_start[at + 1]]), default=0.0)
        took = {Act.COMPUTE: 1.0, Act.BARRIER: 0.0}.get(Act(step.act[at]), byte_s)
        end[at] = start[at] + took * step.amount[at]
    return start, end


@settings(max_examples=40, deadline=None)
@given(strategy=strategies(), order=orders())
def test_every_rank_reduces_the_bytes_that_it_reduces_in_buckets(strategy, order):
    planned = replace(strategy, order=order)
    usual, found = (lower(model(one), one, Placement(one), EvenPrices()) for one in (strategy, planned))
    assert np.allclose(wire_bytes(found), wire_bytes(usual), rtol=1e-9)
    computed = [np.bincount(step.rank[step.act == Act.COMPUTE], minlength=step.ranks) for step in (usual, found)]
    assert (computed[1] == computed[0]).all()


@settings(max_examples=40, deadline=None)
@given(strategy=strategies(), order=orders())
def test_updates_wait_for_all_gradients_of_their_rank_where_steps_do_not_overlap(strategy, order):
    planned = replace(strategy, order=replace(order, across_steps=False))
    step = lower(model(planned), planned, Placement(planned), EvenPrices(), "layer")
    start, end = clocked(step)
    update = {int(step.rank[at]): at for at in range(step.operations) if step.name_of(at) == "update"}
    for at in np.flatnonzero(step.stream == DATA).tolist():
        for rank in step.groups[step.group[at]].tolist():
            assert start[update[rank]] >= end[at]


@settings(max_examples=25, deadline=None)
@given(strategy=strategies(), order=orders())
def test_the_next_forward_pass_of_a_layer_waits_for_its_gradients_and_no_step_gets_longer(strategy, order):
    periods = []
    for across in (True, False):
        planned = replace(strategy, order=replace(order, across_steps=across))
        row = lower_steps(model(planned), planned, Placement(planned), EvenPrices(), 3, "layer")
        _, end = clocked(row.step)
        periods.append(np.diff([end[over].max() for over in row.ends])[-1])
        if across:
            start, _ = clocked(row.step)
            _later_passes_wait(row.step, start, end)
    assert periods[0] <= periods[1] * (1 + 1e-12)


def _later_passes_wait(step, start, end):
    """The last step's forward pass of a block starts behind the gradients of the step before."""
    names = [step.name_of(at) for at in range(step.operations)]
    for block in range(BLOCKS):
        made = [at for at, name in enumerate(names) if name == f"block {block} gradients"]
        passes = [
            at for at, name in enumerate(names) if name == f"block {block} forward" and step.act[at] == Act.COMPUTE
        ]
        steps = np.array_split(np.array(made), 3)  # alike in every step
        last = passes[len(passes) * 2 // 3 :]
        for at in steps[1].tolist() if made else ():
            mine = [one for one in last if step.rank[one] in step.groups[step.group[at]]]
            assert min(start[one] for one in mine) >= end[at]
