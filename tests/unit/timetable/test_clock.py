"""Steps that are timed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.errors import ProofError, StrategyError
from ropewalk.timetable import dual_pipe, early_backward, gpipe, interleaved, zero_bubble_v
from ropewalk.timetable.clock import run, stage_times
from ropewalk.timetable.table import Entry, Pass, from_rows


def test_one_device_computes_without_a_break():
    seen = run(early_backward(1, 3), stage_times([1], [2]))
    assert seen.start.tolist() == [0, 1, 3, 4, 6, 7]
    assert (seen.makespan, seen.bubble) == (9, 0)


def test_a_hand_over_takes_its_time_there_and_back():
    seen = run(early_backward(2, 1), stage_times(1, 1, send_forward=[2], send_backward=[3]))
    assert seen.start.tolist() == [0, 8, 3, 4]
    assert seen.sent[[0, 3]].tolist() == [1, 5]
    assert seen.arrived[[0, 3]].tolist() == [3, 8]
    assert np.isnan(seen.sent[[1, 2]]).all()


def test_transfers_of_a_link_wait_for_each_other_and_devices_do_not():
    seen = run(gpipe(2, 3), stage_times(1, 1, send_forward=[5], send_backward=[0]))
    assert seen.end[:3].tolist() == [1, 2, 3]
    assert seen.arrived[:3].tolist() == [6, 11, 16]


def test_pieces_on_one_device_hand_over_for_nothing():
    slow = stage_times(1, 1, 1, send_forward=[7, 100, 7], pieces=4)
    seen = run(zero_bubble_v(2, 1), slow)
    # Down 1 + 7 + 1 and up 1 + 7 + 1, back again the same way, and gradients of weights at the turn and at the end.
    assert seen.makespan == 2 * 18 + 2


def test_boundaries_between_the_same_devices_share_their_link():
    """Two chunks per device on two devices: pieces 0 to 1 and 2 to 3 cross the same link."""
    seen = run(interleaved(2, 2), stage_times(1, 1, send_forward=[4, 0, 4]))
    crossing = np.flatnonzero((seen.timetable.kind == Pass.FORWARD) & (seen.timetable.device == 0))
    assert seen.arrived[crossing].tolist() == [5, 9, 13, 17]


def test_a_pair_ends_together_after_what_overlap_leaves_of_it():
    row = [Entry(Pass.FORWARD, 0, 0), Entry(Pass.FORWARD, 0, 1, paired=True), Entry(Pass.BACKWARD, 0, 0)]
    table = from_rows("pair", [[*row, Entry(Pass.BACKWARD, 0, 1)]], [0], 2)
    for overlap, expected in ((0, 5), (0.5, 4), (1, 3)):
        seen = run(table, stage_times([2], [1], [2], overlap=overlap))
        assert seen.end[1] == seen.end[2] == 2 + expected
        assert seen.busy.tolist() == [2 + expected + 3]


def test_all_reduces_of_one_device_take_turns():
    """Piece 2 of device 0 has its gradients first and its all-reduce under way when piece 0 is done."""
    seen = run(interleaved(1, 1, 3), stage_times(1, 1, all_reduce=[10, 10, 10]))
    assert seen.all_reduce_start.tolist() == [24, 14, 4]
    assert seen.makespan == 34


def test_copies_of_a_piece_reduce_together():
    """Neither copy of a piece starts before the other one is done; both pieces of both devices are busy with it."""
    seen = run(dual_pipe(2, 4), stage_times(1, 1, 1, all_reduce=[5, 5]))
    last = [seen.end[seen.timetable.piece % 2 == piece].max() for piece in range(2)]
    assert seen.all_reduce_start.min() == min(last)
    assert seen.makespan == min(last) + 10


def test_times_of_another_number_of_pieces_are_refused():
    with pytest.raises(StrategyError, match="has 2 pieces, the times are those of 3"):
        run(early_backward(2, 2), stage_times(1, 1, pieces=3))


def test_a_timetable_that_is_none_is_refused():
    table = from_rows("half", [[Entry(Pass.FORWARD, 0, 0)]], [0], 1)
    with pytest.raises(ProofError, match="0 backward passes"):
        run(table, stage_times(1, 1, pieces=1))


@pytest.mark.parametrize(
    ("give", "fact"),
    [
        (lambda: stage_times(1, 1), "give the number of pieces"),
        (lambda: stage_times([1, 1], [1, 1, 1]), r"are for \[2, 3\] pieces"),
        (lambda: stage_times([1, 1], 1, send_forward=[1, 1]), r"are for \[2, 3\] pieces"),
        (lambda: stage_times(-1, 1, pieces=2), r"forward is \[-1.0, -1.0\]: give seconds, 0 or more"),
        (lambda: stage_times(1, float("nan"), pieces=2), "backward is"),
        (lambda: stage_times(1, 1, pieces=2, overlap=2), "overlap is 2: give a share from 0 to 1"),
        (lambda: stage_times([], []), "there is no piece"),
    ],
)
def test_impossible_times_are_refused(give, fact):
    with pytest.raises(StrategyError, match=fact):
        give()


def test_the_ratio_of_communication_is_the_slowest_hand_over_over_the_slowest_stage():
    assert stage_times([1, 2], [2, 4], send_forward=[1], send_backward=[2]).communication_ratio == 0.5
    assert stage_times([1], [1]).communication_ratio == 0
    assert stage_times(0, 0, send_forward=1, pieces=2).communication_ratio == float("inf")
