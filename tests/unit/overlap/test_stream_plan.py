"""The planner of streams: closed forms, brute force on small cases, what each overlap is worth."""

from __future__ import annotations

import json
from itertools import permutations, product

import numpy as np
import pytest
from ring_ranks import run_ranks

from ropewalk.collectives.mixer import Mixer
from ropewalk.errors import StrategyError
from ropewalk.overlap.exchange import Overlaps, in_operations, run, streamed
from ropewalk.overlap.link import Link
from ropewalk.overlap.ring import RankRing, ring_of
from ropewalk.overlap.stream_answer import stream_rows, stream_sentence, streams_as_json
from ropewalk.overlap.stream_plan import cut_evenly, plan_stream
from ropewalk.overlap.tensors import from_layers


def one_tensor(size):
    return from_layers([size], backward_s=[0.0], forward_s=[0.0])


def test_a_ring_in_one_piece_sends_and_mixes_in_turn():
    ring = RankRing(ranks=4, bandwidth=2.0, mixer=Mixer(0.5), latency_s=0.1, message_s=0.01)
    expected = 6 * (0.1 + 0.01 + 2 / 2.0) + 3 * 2 / 0.5
    assert run(in_operations([[(0, 8.0)]]), one_tensor(8.0), ring).step_s == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("mix", "bound"), [(4.0, "wire"), (0.5, "mix"), (1.0, "balanced")])
def test_fine_chunks_take_as_long_as_the_slower_of_wire_and_adder(mix, bound):
    ring = RankRing(ranks=4, bandwidth=2.0, mixer=Mixer(mix))
    parts = [[(0, 8.0 / 512)]] * 512
    order = np.arange(512)
    took = run(streamed(parts, order, order), one_tensor(8.0), ring).step_s
    limit = max(ring.wire_s(8.0), ring.mix_s(8.0))
    assert limit <= took <= limit * 1.05, bound


def test_a_rank_with_one_hand_takes_the_sum_of_wire_and_adder():
    ring = RankRing(ranks=4, bandwidth=2.0, mixer=Mixer(1.0))
    exchange = streamed([[(0, 2.0)]] * 4, range(4), range(4), overlaps=Overlaps(mixing=False))
    assert run(exchange, one_tensor(8.0), ring).step_s == pytest.approx(ring.wire_s(8.0) + ring.mix_s(8.0), rel=1e-12)


def test_launches_cost_a_library_one_each_and_a_stream_one_in_all():
    tensors = from_layers([1.0] * 3, backward_s=[1.0] * 3, forward_s=[0.0] * 3)
    ring = RankRing(ranks=2, bandwidth=1e9, launch_s=5.0)
    operations = [[(tensor, 1.0)] for tensor in (2, 1, 0)]
    assert run(in_operations(operations), tensors, ring).step_s == pytest.approx(1 + 3 * 5)
    assert run(in_operations(operations).as_stream(), tensors, ring).step_s == pytest.approx(5)


def steps_by_brute_force(tensors, ring, most_cuts):
    """Every cut of every tensor into equal pieces in every order, timed by ranks that know nothing of symmetry."""
    for cuts in product(range(1, most_cuts + 1), repeat=len(tensors)):
        pieces = [tensor for tensor, count in enumerate(cuts) for _ in range(count)]
        for order in set(permutations(pieces)):
            parts = [[(tensor, tensors.size_bytes[tensor] / cuts[tensor])] for tensor in order]
            rank = np.arange(len(parts))
            for later in (0, len(parts)):
                exchange = streamed(parts, rank, rank + later)
                ready = exchange.chunks.ready_s(tensors)
                done = run_ranks(exchange, ring, [ready] * ring.ranks).max(axis=0)
                yield tensors.step_s(exchange.chunks.arrival_s(done, len(tensors)))


@pytest.mark.parametrize(("mix", "latency"), [(np.inf, 0.0), (0.5, 0.05), (0.8, 0.2)])
def test_small_plans_are_as_good_as_all_orders_and_all_cuts(mix, latency):
    tensors = from_layers([1.0, 4.0], backward_s=[1.0, 0.7], forward_s=[0.8, 0.9])
    ring = RankRing(ranks=2, bandwidth=1.3, mixer=Mixer(mix), latency_s=latency, message_s=0.02)
    best = min(steps_by_brute_force(tensors, ring, most_cuts=3))
    plan = plan_stream(tensors, ring)
    assert plan.bounds.step_s <= plan.run.step_s <= best * (1 + 1e-9)


def test_chunks_hold_every_byte_of_every_tensor_once():
    tensors = from_layers([1.0, 2.5, 9.0, 0.5, 0.0], backward_s=[1.0] * 5, forward_s=[1.0] * 5)
    for size in (0.3, 1.0, 3.0, 100.0):
        held = np.zeros(5)
        for chunk in cut_evenly(tensors, size):
            assert sum(part for _, part in chunk) <= size * (1 + 1e-12)
            for tensor, part in chunk:
                held[tensor] += part
        np.testing.assert_allclose(held, tensors.size_bytes)


def test_each_overlap_is_worth_something_where_adding_is_slow():
    layers = 24
    tensors = from_layers([1e6] * layers, backward_s=[2e-3] * layers, forward_s=[1e-3] * layers)
    ring = RankRing(ranks=8, bandwidth=583e6, mixer=Mixer(291e6), latency_s=1e-5, message_s=2e-6, launch_s=1e-4)
    plan = plan_stream(tensors, ring)
    for without in range(3):
        some = Overlaps(*(at != without for at in range(3)))
        assert plan.with_overlaps(some).step_s > 1.1 * plan.run.step_s
    assert plan.gain > 0.1 > plan.gain_beside > 0


def test_a_window_that_holds_back_what_must_be_reduced_first_is_refused():
    exchange = streamed([[(0, 1.0)], [(0, 1.0)]], [0, 1], [0, 1], window=1, overlaps=Overlaps(broadcasting=False))
    with pytest.raises(StrategyError, match="window of 1 units"):
        run(exchange, one_tensor(2.0), RankRing(ranks=2, bandwidth=1.0))


def test_rings_are_checked():
    with pytest.raises(StrategyError, match="1 rank: a ring needs 2 or more"):
        RankRing(ranks=1, bandwidth=1.0)
    with pytest.raises(StrategyError, match="latency_s must be 0 s or more"):
        RankRing(ranks=2, bandwidth=1.0, latency_s=-1.0)


def test_the_ring_of_a_link_has_its_price():
    link = Link(bandwidth=3e9, start_up_s=1e-3)
    assert ring_of(link, ranks=7, rounds_s=4e-4).link().seconds(5e6) == pytest.approx(link.seconds(5e6), rel=1e-12)


def test_json_lists_every_scheme_and_every_byte_of_the_stream():
    tensors = from_layers([3e6, 6e6, 3e6], backward_s=[2e-3] * 3, forward_s=[2e-3] * 3)
    plan = plan_stream(tensors, RankRing(ranks=4, bandwidth=1e9, mixer=Mixer(5e8), launch_s=1e-3))
    found = streams_as_json(plan)
    assert json.loads(json.dumps(found)) == found
    assert sum(sum(chunk["size_bytes"]) for chunk in found["chunks"]) == pytest.approx(12e6)
    assert [chunk["reduce"] for chunk in found["chunks"]] == sorted(chunk["reduce"] for chunk in found["chunks"])
    steps = [one["step_time_s"] for one in found["overlaps"]]
    assert steps[-1] == found["step_time_s"] == min(steps)
    assert max(found["complete_s"].values()) == max(chunk["complete_s"] for chunk in found["chunks"])
    rows = stream_rows(plan)
    told = {row.name: row.what for row in rows}
    assert told["fused + mixing + broadcasting"] == "the same chunks: layers wait for the whole buffer"
    assert len({told[name] for name in told if name.startswith("fused")}) == 7
    assert rows[0].sort == "bound"
    assert {row.name for row in rows} >= {"ByteScheduler", "PACE", "DeAR", "PyTorch DDP", "streamed (all three)"}


def test_the_sentence_says_where_streaming_gains_nothing():
    tensors = from_layers([1.0], backward_s=[1.0], forward_s=[1.0])
    assert "nothing to gain" in stream_sentence(plan_stream(tensors, RankRing(ranks=2, bandwidth=1e9)))
