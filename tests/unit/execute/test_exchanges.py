"""Exchanges on a ring as orders that ranks run: what the model decides as it goes is fixed beforehand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.errors import StrategyError
from ropewalk.execute.overlap import in_two_halves, order_of_exchange
from ropewalk.execute.overlap.stream.desk import RankDesk
from ropewalk.execute.overlap.stream.layout import BufferLayout
from ropewalk.execute.overlap.stream.ring import RingPlace as Place
from ropewalk.overlap.exchange import Overlaps, in_operations, run, streamed
from ropewalk.overlap.published import PUBLISHED
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.stream_plan import cut_evenly
from ropewalk.overlap.tensors import from_layers

TENSORS = from_layers(
    [400, 4000, 80, 2000], backward_s=[2] * 4, forward_s=[1] * 4, names=("embed", "wide", "norm", "head")
)
RING = RankRing(ranks=3, bandwidth=500, latency_s=0.1, message_s=0.05)


@pytest.mark.parametrize("name", sorted(set(PUBLISHED) - {"dear"}))
def test_every_published_scheme_becomes_an_order_of_all_elements(name):
    order = order_of_exchange(PUBLISHED[name].make(TENSORS, RING).exchange, TENSORS, RING)
    order.check_against({name: size // 4 for name, size in zip(TENSORS.names, (400, 4000, 80, 2000), strict=True)})
    assert order.stream is not None
    assert order.stream.window is not None  # launched in one order on all ranks


def test_units_of_a_library_are_launched_one_at_a_time_as_the_model_did():
    order = order_of_exchange(PUBLISHED["priority"].make(TENSORS, RING).exchange, TENSORS, RING)
    assert order.stream.window == 1
    assert order.launches[0].tensors == ("head",)  # its gradient is the first
    assert not order.barrier


def test_a_stream_keeps_its_chunks_and_urgency_and_begins_them_as_gradients_exist():
    parts = cut_evenly(TENSORS, 1000)
    keys = list(range(len(parts)))
    exchange = streamed(parts, keys, [key + len(parts) for key in keys])
    order = order_of_exchange(exchange, TENSORS, RING)
    assert len(order.launches) == len(parts)
    assert order.stream.window is None
    assert order.stream.gather_key == tuple(key + len(parts) for key in keys)
    assert order_of_exchange(exchange.with_overlaps(Overlaps(False, False, False)), TENSORS, RING).barrier


def test_two_halves_hold_every_broadcast_until_all_is_reduced():
    exchange = in_two_halves(PUBLISHED["dear"].make(TENSORS, RING).exchange)
    order = order_of_exchange(exchange, TENSORS, RING)
    assert not order.stream.broadcast
    assert min(order.stream.gather_key) > max(order.stream.reduce_key)


def test_an_exchange_of_other_tensors_is_refused():
    with pytest.raises(StrategyError, match="does not carry all of wide"):
        order_of_exchange(in_operations([[(0, 400.0)], [(1, 100.0), (2, 80.0), (3, 2000.0)]]), TENSORS, RING)


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(300, 5000),
    overlaps=st.builds(Overlaps, st.booleans(), st.booleans(), st.just(True)),
    gathers_last=st.booleans(),
)
def test_ranks_that_decide_by_the_order_take_as_long_as_the_model_of_the_ring(size, overlaps, gathers_last):
    """One rank stands for all: what it sends is what it receives."""
    parts = cut_evenly(TENSORS, size)
    keys = list(range(len(parts)))
    exchange = streamed(parts, keys, [key + len(parts) * gathers_last for key in keys], overlaps=overlaps)
    order = order_of_exchange(exchange, TENSORS, RING)
    expected = run(exchange, TENSORS, RING)
    assert _played(order, exchange.chunks.ready_s(TENSORS), exchange) == pytest.approx(expected.done_s.tolist())


def _played(order, ready_s, exchange):
    """When every chunk is complete at a rank whose messages come back to it."""
    desk = RankDesk(Place(RING.ranks, 0), BufferLayout(order).launches, order.stream)
    shard = exchange.chunks.chunk_bytes / RING.ranks
    done, events = [0.0] * len(shard), [(float(at), "begin", chunk) for chunk, at in enumerate(ready_s)]
    while events:
        now = min(at for at, _, _ in events)
        for event in [one for one in events if one[0] == now]:
            events.remove(event)
            _, kind, chunk = event
            {"begin": desk.begin, "arrive": desk.arrived, "send": desk.sent, "add": desk.added}[kind](chunk)
            if kind == "send":
                events.append((now + RING.latency_s, "arrive", chunk))
        for chunk in desk.completed():
            done[chunk] = now
        if not any(at == now for at, _, _ in events) and (added := desk.next_add()) is not None:
            events.append((now, "add", added[0]))
            continue
        if (sent := desk.next_send()) is not None:
            events.append((now + RING.message_s + shard[sent[0]] / RING.bandwidth, "send", sent[0]))
    return done
