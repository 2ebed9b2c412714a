"""Pieces of tensors streamed through programs: proved, complete when they say so, refused where they make no sense."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.collectives.double_tree import double_tree_all_reduce
from ropewalk.collectives.fused import reducing_rounds, streamed_program
from ropewalk.collectives.halving_doubling import halving_doubling_all_reduce
from ropewalk.collectives.hips import hips_two_levels
from ropewalk.collectives.ring import ring_all_reduce
from ropewalk.collectives.trees import binomial_all_reduce
from ropewalk.errors import ProgramError, ProofError

RING = ring_all_reduce([[0, 1, 2, 3]])
PROGRAMS = [
    RING,
    ring_all_reduce([[0, 1, 2, 3, 4], [0, 2, 4, 1, 3]], both_ways=True),
    halving_doubling_all_reduce(8),
    halving_doubling_all_reduce(6),
    hips_two_levels(2, 3).all_reduce("hips"),
    binomial_all_reduce(7),
    double_tree_all_reduce(6, segments=1),
]
ORDER = [(2, 1), (0, 3), (1, 2), (2, 2)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
@pytest.mark.parametrize("apart", [1, 2, None])
def test_every_tensor_is_complete_once_and_when_the_program_says_so(program, apart):
    fused = streamed_program(program, ORDER, apart)
    fused.check()
    gap = reducing_rounds(program) if apart is None else apart
    assert len(fused.rounds) == len(program.rounds) + 3 * gap
    assert fused.chunks == 8 * program.chunks
    np.testing.assert_array_equal(np.bincount(fused.fused.tensor), program.chunks * np.array([3, 2, 3]))
    np.testing.assert_array_equal(fused.sent_chunks(), 8 * program.sent_chunks())
    # Tensor 0 is whole in the second piece: it is there before tensors 1 and 2.
    assert fused.fused.complete_after[0].max() == gap + len(program.rounds)
    assert (fused.fused.complete_after[0] < fused.fused.complete_after[1:]).all()


def test_a_piece_is_reduced_while_the_one_before_is_broadcast():
    fused = streamed_program(RING, [(0, 1), (1, 1)])
    kinds = [set(step.pattern.reduces.tolist()) for step in fused.rounds]
    assert kinds == [{True}] * 3 + [{True, False}] * 3 + [{False}] * 3


def test_all_rounds_apart_pieces_go_one_after_the_other():
    fused = streamed_program(RING, [(0, 1), (1, 2)], apart=6)
    assert fused.fused.complete_after.max(axis=1).tolist() == [6, 12]
    assert [step.pattern.sends for step in fused.rounds] == [4] * 12


def test_long_streams_share_their_arrows():
    assert len(streamed_program(RING, [(tensor, 1) for tensor in range(40)]).patterns) <= 3


def test_a_program_that_promises_a_tensor_too_early_or_too_late_is_refuted():
    fused = streamed_program(RING, [(0, 1), (1, 1)])
    for by in (-1, 1):
        said = fused.fused.complete_after.copy()
        said[0, 2] += by
        with pytest.raises(ProofError, match="says that tensor 0 is complete on rank 2"):
            replace(fused, fused=replace(fused.fused, complete_after=said)).check()


def test_a_tensor_without_a_chunk_is_refuted():
    fused = streamed_program(RING, [(0, 1), (1, 1)])
    with pytest.raises(ProofError, match="does not move each of its 2 tensors"):
        replace(fused, fused=replace(fused.fused, tensor=np.zeros_like(fused.fused.tensor))).check()
    with pytest.raises(ProofError, match="other chunks than it has"):
        replace(fused, fused=replace(fused.fused, tensor=fused.fused.tensor[1:])).check()


def test_pieces_that_make_no_sense_are_refused():
    with pytest.raises(ProgramError, match="at least one chunk each"):
        streamed_program(RING, [])
    with pytest.raises(ProgramError, match="number them from 0"):
        streamed_program(RING, [(1, 1)])
    with pytest.raises(ProgramError, match="give 1 to 6"):
        streamed_program(RING, [(0, 1)], apart=7)
