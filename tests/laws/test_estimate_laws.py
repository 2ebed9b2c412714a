"""Laws of the estimate: kernel and plain Python agree, and moving there and back leaves no trace."""

from random import Random

import pytest
from estimate_reference import estimated
from hypothesis import given
from hypothesis import strategies as st
from tiny_seats import circle, feed_forward, priced, recommender, stacked, switch, with_experts

from ropewalk.codesign.estimate import SeatingEstimate, estimate
from ropewalk.codesign.link_loads import LinkLoads
from ropewalk.codesign.moves import propose
from ropewalk.codesign.seats import space_of

WORKLOADS = {"recommender": recommender, "stack": stacked, "experts": with_experts, "blocks": feed_forward}


@st.composite
def worlds(draw):
    servers = draw(st.sampled_from([2, 4, 6]))
    workload = WORKLOADS[draw(st.sampled_from(sorted(WORKLOADS)))]()
    pricer = priced(workload, micro_batches=draw(st.sampled_from([1, 2])))
    space = space_of(pricer, servers, tensor=draw(st.booleans()), expert=draw(st.booleans()))
    network = LinkLoads(draw(st.sampled_from([switch, circle]))(servers, draw(st.sampled_from([1e5, 1e7]))), servers)
    return pricer, space, network, Random(draw(st.integers(0, 2**32)))


def drawn(space, draw):
    return [draw.choice(options) for options in space.options]


@given(worlds(), st.sampled_from([0.0, 500.0, 1e9]))
def test_kernel_and_plain_python_agree(world, bucket_bytes):
    pricer, space, network, draw = world
    seating = space.seating(drawn(space, draw))
    assert estimate(pricer, seating, network, bucket_bytes=bucket_bytes) == pytest.approx(
        estimated(pricer, seating, network, bucket_bytes), rel=1e-9
    )


@given(worlds(), st.sampled_from([0, 100, 1 << 23]))
def test_an_estimate_kept_up_to_date_is_the_estimate_made_anew(world, kept):
    pricer, space, network, draw = world
    places = drawn(space, draw)
    running = SeatingEstimate(pricer, network, space.seats, space.servers, most_kept=kept)
    running.place(places)
    for _ in range(20):
        changes = propose(space, places, draw)
        moved = [changes.get(layer, seat) for layer, seat in enumerate(places)]
        assert running.tried(changes) == estimate(pricer, space.seating(moved), network)
        if draw.random() < 0.5:
            running.keep()
            places = moved
    assert running.tried({}) == estimate(pricer, space.seating(places), network)


@given(worlds())
def test_more_bandwidth_never_makes_a_sum_or_transfers_slower(world):
    _, space, _, draw = world
    faster = LinkLoads(switch(space.servers, 1e8), space.servers)
    slower = LinkLoads(switch(space.servers, 1e6), space.servers)
    seat = draw.choice(space.seats)
    assert faster.sum_seconds(seat.servers, 1e6) <= slower.sum_seconds(seat.servers, 1e6)
