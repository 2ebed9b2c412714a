"""Laws of seatings: what is asked of the network is what the lowered step sends, number for number."""

import json

import numpy as np
import pytest
from bare_demands import demands_of
from hypothesis import given
from hypothesis import strategies as st
from plain_seats import plain_step
from tiny_seats import (
    as_dict,
    feed_forward,
    lowered,
    overlap_by_sample,
    priced,
    recommender,
    stacked,
    switch,
    with_experts,
)

from ropewalk.codesign.demand_of import priced_demands
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.seats import space_of
from ropewalk.codesign.step_demands import demands_of_step
from ropewalk.errors import StrategyError
from ropewalk.records import plain, record
from ropewalk.strategy.between import gradients_between, parts_between
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.seating import Manner, Seat, coset, seating_of, strategy_of
from ropewalk.strategy.strategy import Strategy
from ropewalk.task.lower import lower
from ropewalk.task.step import Act

WORKLOADS = {"recommender": recommender, "stack": stacked, "experts": with_experts, "blocks": feed_forward}


@st.composite
def seats(draw, servers=12):
    degree = draw(st.sampled_from([degree for degree in (1, 2, 3, 4, 6, 12) if servers % degree == 0]))
    members = coset(servers, degree, draw(st.integers(0, servers // degree - 1)))
    manners = [Manner.SAMPLE, Manner.COLUMNS, Manner.TENSOR] if degree > 1 else [Manner.SAMPLE, Manner.PINNED]
    return Seat(draw(st.permutations(members)), draw(st.sampled_from(manners)))


@given(seats(), seats())
def test_what_moves_between_seats_is_what_one_has_and_the_other_needs(source, reader):
    source, reader = (Seat(tuple(seat.servers), seat.manner) for seat in (source, reader))
    found = as_dict(parts_between(source, reader), 24.0 * 12)
    assert found == pytest.approx(overlap_by_sample(source, reader, 24, 12))
    there, back = parts_between(source, reader), gradients_between(reader, source)
    if Manner.TENSOR not in (source.manner, reader.manner):
        assert (back.src.tolist(), back.dst.tolist()) == (there.dst.tolist(), there.src.tolist())
        assert back.bytes_of(1.0).tolist() == there.bytes_of(1.0).tolist()


@given(seats(), seats())
def test_who_has_a_whole_gradient_gets_none_and_everybody_else_all_it_needs(reader, source):
    """Megatron's layers have and need whole samples, so what arrives anywhere is a whole part once."""
    reader, source = Seat(tuple(reader.servers), Manner.TENSOR), Seat(tuple(source.servers), source.manner)
    parts = gradients_between(reader, source)
    arrived = np.bincount(parts.dst, parts.bytes_of(1.0), minlength=12)
    need = 1.0 if source.manner in (Manner.TENSOR, Manner.PINNED) else 1.0 / source.degree
    for server in source.servers:
        assert arrived[server] == pytest.approx(0.0 if server in reader.servers else need)


@st.composite
def seated(draw):
    pricer = priced(WORKLOADS[draw(st.sampled_from(sorted(WORKLOADS)))](), micro_batches=draw(st.sampled_from([1, 2])))
    space = space_of(pricer, draw(st.sampled_from([2, 4, 6])), tensor=draw(st.booleans()), expert=draw(st.booleans()))
    places = tuple(draw(st.sampled_from(options)) for options in space.options)
    return pricer, space.seating(places)


def sent_by_step(step):
    """Pair matrix and bytes of sums by group, read off the operations."""
    pairs = np.zeros((step.ranks, step.ranks))
    sums: dict[tuple[int, ...], float] = {}
    for at in range(step.operations):
        size = float(step.amount[at])
        if step.act[at] == Act.SEND:
            pairs[step.rank[at], step.peer[at]] += size
        elif step.act[at] != Act.COMPUTE:
            members = tuple(step.groups[step.group[at]].tolist())
            if step.act[at] == Act.ALL_REDUCE:
                sums[members] = sums.get(members, 0.0) + size
            else:
                assert step.act[at] == Act.ALL_TO_ALL
                for a in members:
                    for b in members:
                        pairs[a, b] += size / len(members) if a != b else 0.0
    return pairs, sums


@given(seated(), st.sampled_from([0.0, 300.0, 1e9]))
def test_demands_are_what_the_lowered_step_sends(world, bucket_bytes):
    pricer, seating = world
    step = lowered(pricer, seating, bucket_bytes=bucket_bytes)
    step.check()
    pairs, sums = sent_by_step(step)
    demands = priced_demands(pricer, seating)
    for counted in (demands, demands_of_step(step, np.arange(step.ranks))):
        np.testing.assert_allclose(counted.pairs, pairs, rtol=1e-12)
        assert {group.servers: group.size_bytes for group in counted.sums} == pytest.approx(sums, rel=1e-12)
    assert [group.servers for group in demands.sums] == [
        group for group in dict.fromkeys(_groups_by_first_layer(pricer, seating)) if group in sums
    ]


def _groups_by_first_layer(pricer, seating):
    return [seating.seats[at].servers for at in reversed(range(len(seating.seats)))]


@given(seated(), st.sampled_from([0.0, 300.0]))
def test_seats_are_a_strategy_that_lowers_to_the_same_step(world, bucket_bytes):
    pricer, seating = world
    strategy = strategy_of(seating, pricer.batch, pricer.micro_batches, pricer.optimiser, bucket_bytes)
    assert record(Strategy, json.loads(json.dumps(plain(strategy))), "strategy", StrategyError) == strategy
    assert seating_of(strategy) == seating
    known = lowered(pricer, seating, bucket_bytes=bucket_bytes)
    step = lower(pricer.workload, strategy, Placement(strategy), pricer.prices, server=pricer.server)
    for column in ("act", "rank", "peer", "group", "amount", "stream", "dep_start", "dep"):
        assert getattr(step, column).tolist() == getattr(known, column).tolist()


@given(seated(), st.sampled_from([0.0, 1e9]), st.sampled_from([1e5, 1e7]))
def test_a_step_is_the_one_that_plain_python_writes_server_by_server(world, bucket_bytes, bandwidth):
    pricer, seating = world
    step, known = lowered(pricer, seating, bucket_bytes), plain_step(pricer, seating, bucket_bytes)
    assert _communicated(step) == pytest.approx(_communicated(known), rel=1e-12)
    computed = [
        np.bincount(one.rank[one.act == Act.COMPUTE], one.amount[one.act == Act.COMPUTE]) for one in (step, known)
    ]
    assert computed[0] == pytest.approx(computed[1], rel=1e-9)
    times = [time_step(one, switch(seating.servers, bandwidth)).seconds for one in (step, known)]
    assert times[0] == pytest.approx(times[1], rel=1e-9)


def _communicated(step):
    """Bytes of all operations between the same ranks, one by one."""
    found = {}
    for at in np.flatnonzero(step.act != Act.COMPUTE).tolist():
        ends = (int(step.rank[at]), int(step.peer[at])) if step.group[at] < 0 else step.groups[step.group[at]].tolist()
        found.setdefault((int(step.act[at]), *ends), []).append(float(step.amount[at]))
    return {(*key, at): size for key, sizes in found.items() for at, size in enumerate(sorted(sizes))}


@given(seated())
def test_demands_need_no_prices(world):
    pricer, seating = world
    met = (Manner.EXPERT, Manner.TENSOR)
    if any(seat.manner in met for seat in seating.seats) and pricer.micro_batches > 1:
        return  # parts of a sample are rounded up in each micro-batch
    bare = demands_of(pricer.workload, seating, 4.0, pricer.batch)
    known = priced_demands(pricer, seating)
    np.testing.assert_allclose(bare.pairs, known.pairs, rtol=1e-12)
    assert bare.sums == known.sums


@given(seated())
def test_all_samples_are_computed_once(world):
    """The arithmetic of a layer over its servers is that of the whole batch, whatever the seat (linear layers)."""
    pricer, seating = world
    if pricer.workload.name != "stack":
        return
    step = lowered(pricer, seating)
    whole = pricer.workload.at_batch(pricer.batch)
    for at, layer in enumerate(whole.layers):
        mine = [
            step.amount[op] for op in range(step.operations) if step.name_of(op) == f"{layer.name} forward"
        ]  # fmt: skip
        assert sum(mine) == pytest.approx(pricer.prices.forward(layer.operators), rel=1e-9)
        assert len(mine) == seating.seats[at].degree * pricer.micro_batches
