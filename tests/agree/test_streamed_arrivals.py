"""Fused rings on the flow simulator: tensors arrive when the layout says, start-ups of rounds included."""

from __future__ import annotations

import numpy as np
import pytest
from streamed_programs import (
    arrivals,
    gathered_in_turn,
    rank_major,
    streamed_arrivals,
    tensor_after_tensor,
    tensor_of_chunk,
)

from ropewalk.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import TaskKind, lockstep, unroll

BANDWIDTH = 1e9


def run(program, plain, widths, tensor_bytes, start_up_s=0.0):
    """When the last rank has each tensor, on a quiet switch."""
    fabric = IdealSwitch(program.ranks, bandwidth=BANDWIDTH).build()
    rounds = lockstep(program, tensor_bytes, start_up_s)
    trace = simulate(unroll(rounds), shortest(fabric, *rounds.all_pairs()))
    ends = trace.end[trace.graph.kind == TaskKind.TRANSFER]
    return arrivals(program, tensor_of_chunk(plain, widths), ends).max(axis=1)


@pytest.mark.parametrize(("tensors", "end"), [(4, 3), (8, 6)])
def test_a_ring_all_gather_streams_only_in_the_tensor_major_layout(tensors, end):
    gather, widths = ring_all_gather([[0, 1, 2, 3]]), [1] * tensors
    size = tensors * BANDWIDTH  # every tensor takes a second
    plain = run(rank_major(gather, widths), gather, widths, size)
    np.testing.assert_allclose(plain, [end] * tensors, rtol=1e-9)
    streamed = run(tensor_after_tensor(gather, widths), gather, widths, size)
    np.testing.assert_allclose(streamed, 0.75 * np.arange(1, tensors + 1), rtol=1e-9)


@pytest.mark.parametrize("ranks", [2, 4, 7])
def test_fused_all_reduces_arrive_as_the_closed_form_says(ranks):
    order, widths = [list(range(ranks))], [3, 1, 4]
    ring = ring_all_reduce(order)
    share = np.array(widths) / sum(widths) * 8e6
    on_the_wire = 2 * (ranks - 1) / ranks / BANDWIDTH
    start_up, rounds = 5e-6, 2 * (ranks - 1)
    number = np.arange(1, 4)

    through = run(tensor_after_tensor(ring, widths), ring, widths, 8e6, start_up)
    expected = streamed_arrivals(0, share, on_the_wire) + number * rounds * start_up
    np.testing.assert_allclose(through, expected, rtol=1e-9)

    turn = gathered_in_turn(ring_reduce_scatter(order), ring_all_gather(order), widths)
    expected = streamed_arrivals(0, share, on_the_wire, held_back=0.5) + (1 + number) * rounds / 2 * start_up
    np.testing.assert_allclose(run(turn, ring, widths, 8e6, start_up), expected, rtol=1e-9)

    whole = run(rank_major(ring, widths), ring, widths, 8e6, start_up)
    np.testing.assert_allclose(whole.max(), 8e6 * on_the_wire + rounds * start_up, rtol=1e-9)
    # On two ranks a shard is half the buffer, so tensors can be done a round before the end; else none is early.
    if ranks > 2:
        np.testing.assert_allclose(whole, whole.max(), rtol=1e-9)
