"""Streams on a ring: one rank stands for all, no schedule passes a bound, small plans are the best there are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_ranks import run_ranks

from ropewalk.collectives.mixer import Mixer
from ropewalk.overlap.exchange import ALL_AT_ONCE, Overlaps, in_operations, run, streamed
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.stream_bounds import stream_bounds
from ropewalk.overlap.stream_plan import plan_stream
from ropewalk.overlap.tensors import from_layers

seconds = st.floats(0.01, 3.0)
rings = st.builds(
    RankRing,
    ranks=st.integers(2, 5),
    bandwidth=st.floats(0.5, 4.0),
    mixer=st.builds(Mixer, st.one_of(st.just(np.inf), st.floats(0.2, 4.0))),
    latency_s=st.sampled_from([0.0, 0.013, 0.21]),
    message_s=st.sampled_from([0.0, 0.017]),
    launch_s=st.sampled_from([0.0, 0.3]),
)


@st.composite
def models(draw, most=4):
    layers = draw(st.integers(1, most))
    columns = [draw(st.lists(seconds, min_size=layers, max_size=layers)) for _ in range(3)]
    return from_layers(columns[0], backward_s=columns[1], forward_s=columns[2])


@st.composite
def exchanges(draw):
    tensors = draw(models())
    overlaps = Overlaps(*(draw(st.booleans()) for _ in range(3)))
    order = draw(st.permutations(range(len(tensors))))
    window = draw(st.sampled_from([1, 2, ALL_AT_ONCE]))
    if draw(st.booleans()):
        cuts = [draw(st.integers(1, 3)) for _ in order]
        parts = [[(t, tensors.size_bytes[t] / cuts[t])] for t in order for _ in range(cuts[t])]
        keys = [draw(st.permutations(range(len(parts)))) for _ in range(2)]
        return tensors, streamed(parts, *keys, window=window).with_overlaps(overlaps)
    operations = [[(t, tensors.size_bytes[t])] for t in order]
    serial = draw(st.booleans())
    exchange = in_operations(operations, slices=draw(st.integers(1, 3)), window=window, serial=serial)
    return tensors, exchange.with_overlaps(overlaps)


@settings(max_examples=60, deadline=None)
@given(exchanges(), rings)
def test_one_rank_stands_for_all_ranks_of_a_symmetric_ring(case, ring):
    tensors, exchange = case
    ready = exchange.chunks.ready_s(tensors)
    every = run_ranks(exchange, ring, [ready] * ring.ranks)
    np.testing.assert_allclose(every, np.tile(run(exchange, tensors, ring).done_s, (ring.ranks, 1)), rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(exchanges(), rings)
def test_no_exchange_passes_the_lower_bounds(case, ring):
    tensors, exchange = case
    assert run(exchange, tensors, ring).step_s >= stream_bounds(tensors, ring).step_s * (1 - 1e-9)


@settings(max_examples=10, deadline=None)
@given(models(), rings)
def test_a_plan_is_never_slower_than_a_published_scheme_nor_faster_than_the_bound(tensors, ring):
    plan = plan_stream(tensors, ring)
    assert plan.best.step_s <= min(found.step_s for found in plan.published.values())
    assert plan.bounds.step_s <= plan.best.step_s * (1 + 1e-9)
