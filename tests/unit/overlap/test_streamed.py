"""Fused programs in both layouts: proved, run chunk by chunk, refused where they make no sense."""

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
    widths_of,
)

from ropewalk.collectives.halving_doubling import halving_doubling_all_reduce
from ropewalk.collectives.mesh import mesh_all_reduce
from ropewalk.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from ropewalk.errors import ProgramError

ORDER = [[0, 1, 2, 3]]
PROGRAMS = [ring_all_reduce([[0, 1, 2], [0, 2, 1]]), halving_doubling_all_reduce(6), mesh_all_reduce(5)]


def in_step(program, chunk_s):
    """Ends of all sends when every round takes as long as its largest send."""
    seconds = [float(step.pattern.chunks.max()) * chunk_s for step in program.rounds]
    return np.repeat(np.cumsum(seconds), [step.pattern.sends for step in program.rounds])


def worst(program, plain, widths, chunk_s):
    return arrivals(program, tensor_of_chunk(plain, widths), in_step(program, chunk_s)).max(axis=1)


@pytest.mark.parametrize(("tensors", "end"), [(4, 3.0), (8, 6.0)])
def test_rank_major_gathers_complete_every_tensor_only_at_the_end(tensors, end):
    gather = ring_all_gather(ORDER)
    fused = rank_major(gather, [1] * tensors)
    fused.check()
    # A tensor takes 1 in all, so a chunk takes 1/4.
    assert worst(fused, gather, [1] * tensors, 0.25).tolist() == [end] * tensors


def test_tensor_major_gathers_complete_one_tensor_after_the_other():
    gather = ring_all_gather(ORDER)
    fused = tensor_after_tensor(gather, [1] * 4)
    fused.check()
    assert worst(fused, gather, [1] * 4, 0.25).tolist() == [0.75, 1.5, 2.25, 3.0]


def test_some_rank_has_each_tensor_early_in_the_rank_major_layout_but_never_all_ranks():
    gather = ring_all_gather(ORDER)
    arrived = arrivals(
        rank_major(gather, [1] * 4), tensor_of_chunk(gather, [1] * 4), in_step(rank_major(gather, [1] * 4), 0.25)
    )
    # Shard t is tensor t: its owner has it from the start, the rank behind it on the ring gets it last.
    assert arrived.min(axis=1).tolist() == [0] * 4
    assert sorted(arrived[0].tolist()) == [0, 1, 2, 3]


def test_both_layouts_move_the_same_bytes():
    ring = ring_all_reduce(ORDER)
    plain, streamed = rank_major(ring, [1, 2, 5]), tensor_after_tensor(ring, [1, 2, 5])
    assert plain.sent_chunks().tolist() == streamed.sent_chunks().tolist() == [6 * 8] * 4
    assert len(streamed.rounds) == 3 * len(plain.rounds)


def test_tensors_of_equal_width_share_their_arrows():
    assert len(tensor_after_tensor(ring_all_reduce(ORDER), [2] * 50).patterns) == 2


def test_reduced_together_and_gathered_in_turn_is_an_all_reduce():
    scatter, gather = ring_reduce_scatter(ORDER), ring_all_gather(ORDER)
    fused = gathered_in_turn(scatter, gather, [1, 3])
    fused.check()
    # 3 rounds of 4 chunks, then 3 of 1 and 3 of 3.
    assert worst(fused, scatter, [1, 3], 1.0).tolist() == [15, 24]
    assert len(fused.rounds) == 3 + 2 * 3


@pytest.mark.parametrize("program", PROGRAMS)
def test_any_all_reduce_streams_and_still_proves_itself(program):
    for fused in (rank_major(program, [2, 1]), tensor_after_tensor(program, [2, 1])):
        fused.check()
        assert fused.chunks == 3 * program.chunks


def test_arrivals_of_the_closed_form_are_those_of_the_rounds():
    ring, widths = ring_all_reduce(ORDER), [1, 2, 5]
    # Tensor t has 4 · widths[t] chunks, of which every rank sends 6/4.
    expected = streamed_arrivals(0, np.array(widths) * 4, 6 / 4)
    np.testing.assert_allclose(worst(tensor_after_tensor(ring, widths), ring, widths, 1.0), expected)
    half = streamed_arrivals(0, np.array(widths) * 4, 6 / 4, held_back=0.5)
    turn = gathered_in_turn(ring_reduce_scatter(ORDER), ring_all_gather(ORDER), widths)
    np.testing.assert_allclose(worst(turn, ring, widths, 1.0), half)
    whole = streamed_arrivals(0, np.array(widths) * 4, 6 / 4, held_back=1.0)
    np.testing.assert_allclose(worst(rank_major(ring, widths), ring, widths, 1.0), whole)


def test_widths_follow_sizes_and_never_vanish():
    assert widths_of([1.0, 64.0, 32.0, 0.001]) == (1, 64, 32, 1)


def test_programs_that_do_not_fit_together_are_refused():
    with pytest.raises(ProgramError, match="two halves"):
        gathered_in_turn(ring_reduce_scatter(ORDER), ring_all_gather([[0, 1, 2]]), [1])
    with pytest.raises(ProgramError, match="whole number"):
        tensor_after_tensor(ring_all_reduce(ORDER), [])
    with pytest.raises(ProgramError, match="whole number"):
        rank_major(ring_all_reduce(ORDER), [1, 0])
    with pytest.raises(ProgramError, match="positive size"):
        widths_of([1, 0])
    with pytest.raises(ProgramError, match="give one for each"):
        arrivals(ring_all_reduce(ORDER), np.zeros(4, np.int64), [1.0])
