"""The streamed all-reduce without PyTorch: ranks decide for themselves, in worlds where anything may come first."""

from __future__ import annotations

import json
import random
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.errors import StrategyError
from ropewalk.execute.overlap.agreement import difference
from ropewalk.execute.overlap.order import CommunicationOrder, OperationLaunch, Piece, Stream, fused, order_of_document
from ropewalk.execute.overlap.stream.desk import RankDesk
from ropewalk.execute.overlap.stream.layout import BufferLayout
from ropewalk.execute.overlap.stream.ring import RingPlace

STEPS = 3


def given_numbers(seed, step, rank, chunk, elements):
    return np.random.default_rng([seed, step, rank, chunk]).standard_normal(elements).astype(np.float32)


class Rank:
    """A rank of a world without time: its desk, its numbers, and messages on their way to it.

    Its next step begins when all chunks of this one are complete, whatever it still has to send.
    """

    def __init__(self, ring, launches, stream, elements, seed):
        self.ring, self.launches, self.elements, self.seed = ring, launches, elements, seed
        self.desk = RankDesk(ring, launches, stream)
        self.numbers, self.slots, self.inbox = {}, {}, deque()
        self.sending = self.adding = None
        self.step, self.to_begin, self.complete = 0, list(range(len(launches))), set()

    def shard(self, chunk, shard):
        begin, end = self.ring.bounds(self.elements, shard)
        return self.numbers[chunk][begin:end]

    def moves(self):
        """Everything that could happen next."""
        free = (one for one in self.to_begin if all(self.desk.free(chunk) for chunk in self.launches[one]))
        found = [("begin", launch) for launch in free]
        if self.inbox:
            found.append(("receive", None))
        if self.sending is None and self.desk.can_send:
            found.append(("pick a send", None))
        if self.adding is None and self.desk.can_add:
            found.append(("pick an add", None))
        if self.sending is not None:
            found.append(("send", None))
        if self.adding is not None:
            found.append(("add", None))
        return found

    def do(self, what, launch, after):
        if what == "begin":
            self.to_begin.remove(launch)
            for chunk in self.launches[launch]:
                self.numbers[chunk] = given_numbers(self.seed, self.step, self.ring.rank, chunk, self.elements)
            self.desk.begin(launch)
        elif what == "receive":
            (chunk, turn), content = self.inbox.popleft()
            assert self.desk.arrived(chunk) == turn
            if turn < self.ring.reducing:
                self.slots[chunk, turn] = content
            else:
                self.shard(chunk, self.ring.received(turn))[:] = content
        elif what == "pick a send":
            self.sending = self.desk.next_send()
        elif what == "pick an add":
            self.adding = self.desk.next_add()
        elif what == "send":
            chunk, turn = self.sending
            self.sending = None
            after.inbox.append(((chunk, turn), self.shard(chunk, self.ring.sent(turn)).copy()))
            self.desk.sent(chunk)
        else:
            chunk, turn = self.adding
            self.adding = None
            self.shard(chunk, self.ring.received(turn))[:] += self.slots.pop((chunk, turn))
            self.desk.added(chunk)
        for chunk in self.desk.completed():
            expected = ring_sum(self.ring.ranks, self.elements, self.seed, self.step, chunk)
            assert self.numbers[chunk].tobytes() == expected.tobytes()
            self.complete.add(chunk)
        if len(self.complete) == len(self.numbers) == sum(map(len, self.launches)):
            self.complete.clear()
            self.step += 1
            self.to_begin = list(range(len(self.launches))) if self.step < STEPS else []


def ring_sum(ranks, elements, seed, step, chunk):
    """The reference: shard s is added up from rank s on, in the order of ranks."""
    given = [given_numbers(seed, step, rank, chunk, elements) for rank in range(ranks)]
    total = np.empty(elements, np.float32)
    for shard in range(ranks):
        begin, end = RingPlace(ranks, 0).bounds(elements, shard)
        part = given[shard][begin:end]
        for further in range(1, ranks):
            part = given[(shard + further) % ranks][begin:end] + part
        total[begin:end] = part
    return total


@settings(max_examples=100, deadline=None)
@given(
    ranks=st.integers(2, 5),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    elements=st.integers(1, 9),
    stream=st.builds(Stream, st.booleans(), st.booleans(), st.sampled_from([None, 1, 2])),
    gather=st.sampled_from([-100, 0, 100]),
    late=st.sampled_from(["nothing", "begin", "receive", "send", "add"]),
    seed=st.integers(0, 1000),
)
def test_whatever_comes_first_every_rank_ends_with_the_bits_of_a_ring_sum(
    ranks, sizes, elements, stream, gather, late, seed
):
    """One rank does one thing only when nothing else can happen anywhere."""
    chance = random.Random(seed)
    keys = chance.sample(range(sum(sizes)), sum(sizes))
    stream = replace(stream, reduce_key=tuple(keys), gather_key=tuple(key + gather for key in keys))
    chunks = iter(range(sum(sizes)))
    launches = [tuple(next(chunks) for _ in range(size)) for size in sizes]
    world = [Rank(RingPlace(ranks, rank), launches, stream, elements, seed) for rank in range(ranks)]
    while moves := [(rank, *move) for rank in world for move in rank.moves()]:
        swift = [move for move in moves if move[:2] != (world[0], late)]
        rank, what, launch = chance.choice(swift or moves)
        rank.do(what, launch, world[rank.ring.after])
    assert [(rank.step, rank.desk.idle) for rank in world] == [(STEPS, True)] * ranks


def test_a_chunk_that_is_broadcast_waits_for_the_others_where_stages_do_not_overlap():
    for broadcast, expected in ((True, (0, 1)), (False, None)):
        desk = RankDesk(RingPlace(2, 0), [(0,), (1,)], Stream(broadcast=broadcast))
        desk.begin(0)
        assert desk.next_send() == (0, 0)
        desk.sent(0)
        desk.arrived(0)
        assert desk.next_add() == (0, 0)
        desk.added(0)
        assert desk.next_send() == expected


def test_a_rank_that_does_one_thing_at_a_time_does_not_send_while_it_adds():
    for mix in (True, False):
        desk = RankDesk(RingPlace(2, 0), [(0, 1)], Stream(mix=mix))
        desk.begin(0)
        assert desk.next_send() == (0, 0)
        desk.sent(0)
        desk.arrived(0)
        assert desk.next_add() == (0, 0)
        assert desk.next_send() == ((1, 0) if mix else None)


def test_launches_with_a_window_begin_in_order():
    desk = RankDesk(RingPlace(2, 0), [(0,), (1,)], Stream(window=1))
    desk.begin(1)
    assert desk.next_send() is None
    desk.begin(0)
    assert desk.next_send() == (0, 0)
    desk.sent(0)
    assert desk.next_send() is None


def test_every_element_of_every_tensor_has_one_place_in_the_buffer():
    order = CommunicationOrder(
        (
            fused(Piece("a", 0, 3), Piece("b", 0, 2)),
            OperationLaunch(((Piece("b", 2, 7),), (Piece("c", 0, 4), Piece("a", 3, 5)))),
        )
    )
    layout = BufferLayout(order)
    taken = sorted(at for places in layout.places.values() for place in places for at in range(place.start, place.stop))
    assert taken == list(range(layout.elements)) == list(range(16))
    assert [layout.whole(name) for name in "abc"] == [None, (3, 10), (10, 14)]
    assert layout.launches == ((0,), (1, 2))
    assert layout.chunks_of == {"a": (0, 2), "b": (0, 1), "c": (2,)}


def test_a_stream_is_read_as_it_was_written_and_anything_else_is_refused():
    order = CommunicationOrder((fused(Piece("a", 0, 3)),), stream=Stream(mix=False, window=3, gather_key=(4,)))
    assert order_of_document(order.document()) == order
    assert order_of_document(json.loads(json.dumps(order.document()))) == order
    with pytest.raises(StrategyError, match="mixing: unknown entry"):
        order_of_document({**order.document(), "stream": {"mixing": True}})
    with pytest.raises(StrategyError, match=r"(?s)window of 0 launches.*gather_key of the stream has 2 entries"):
        CommunicationOrder((fused(Piece("a", 0, 3)),), stream=Stream(window=0, gather_key=(1, 2)))


def test_plans_that_differ_are_told_apart_by_their_first_difference():
    one = CommunicationOrder((fused(Piece("a", 0, 3)),), stream=Stream()).document()
    other = CommunicationOrder((fused(Piece("a", 0, 4)),), stream=Stream()).document()
    assert difference(one, other) == "launches 0, 0, 0, 2 is 3 at one and 4 at the other"
    assert difference(one, {**one, "stream": None}).startswith("stream is {")


def test_one_rank_is_no_ring():
    with pytest.raises(StrategyError, match="give 2 or more ranks"):
        RingPlace(1, 0)
