"""A timetable proves itself, and a wrong one is told what is wrong first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import ProofError, StrategyError
from ropewalk.timetable import dual_pipe, early_backward, gpipe, zero_bubble_h1, zero_bubble_v
from ropewalk.timetable.table import Entry, Pass, from_rows

LETTER = {"F": Pass.FORWARD, "B": Pass.BACKWARD, "I": Pass.INPUT, "W": Pass.WEIGHT}


def written(*rows, homes=(0, 1), micro_batches=1):
    """`0F0` is a pass, `0F0+` one side by side with the next."""
    lists = [[Entry(LETTER[c[1]], int(c[0]), int(c[2]), c.endswith("+")) for c in row.split()] for row in rows]
    return from_rows("mine", lists, homes, micro_batches)


def test_a_step_of_two_stages_is_sound():
    written("0F0 0B0", "1F0 1I0 1W0").check()


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        (("0F0", "1F0 1B0"), "piece 0 has 0 backward passes of micro-batch 0, not 1"),
        (("0F0 0F0 0B0", "1F0 1B0"), "piece 0 has 2 forward passes of micro-batch 0, not 1"),
        (("0F0 0I0", "1F0 1B0"), "piece 0 has 0 passes for gradients of weights of micro-batch 0, not 1"),
        (("0F0 0I0 0B0 0W0", "1F0 1B0"), "piece 0 has 2 backward passes"),
        (("0F0 0B0 1F0", "1B0"), "1F0 is in the row of device 0, but its piece is on device 1"),
        (("0B0 0F0", "1F0 1B0"), "0B0 does not come after 0F0 in its row"),
        (("0F0 0W0 0I0", "1F0 1B0"), "0W0 does not come after 0I0 in its row"),
        (("0F0+ 0B0", "1F0 1B0"), "0B0 does not come after 0F0 in its row"),
        (("0F0 0B0+", "1F0 1B0"), "0B0 is to overlap with a pass beyond the end of its row"),
        (("0F0 0B0", "1F1 1B0"), "there is no micro-batch 1: count from 0 to 0"),
        (("0F0 0B0", "2F0 1B0"), "there is no piece 2: count from 0 to 1"),
    ],
)
def test_what_is_missing_double_or_misplaced_is_named(rows, fact):
    with pytest.raises(ProofError, match=f"timetable mine: {fact}"):
        written(*rows).check()


def test_devices_that_wait_for_each_other_are_named():
    rows = ("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1")
    with pytest.raises(ProofError, match="device 0 at 0B0 waits for 1B0, device 1 at 1F1 waits for 0F1"):
        written(*rows, micro_batches=2).check()


def test_a_pair_of_two_forward_passes_is_refused():
    with pytest.raises(ProofError, match="0F0 and 0F1 do not form a pair"):
        written("0F0+ 0F1 0B0 0B1", homes=(0,), micro_batches=2).check()


def test_three_passes_side_by_side_are_refused():
    with pytest.raises(ProofError, match="0F1 starts a third overlapping pass"):
        written("0F0 0F1+ 0B0+ 0F2 0B1 0B2", homes=(0,), micro_batches=3).check()


def test_a_pair_that_waits_for_itself_is_a_deadlock():
    """Both pieces live on one device; the second cannot go forward while the first does so beside it."""
    rows = ("0F0 1F0 0F1+ 1B0 1F1 0B0 1B1 0B1",)
    written(*rows, homes=(0, 0), micro_batches=2).check()
    with pytest.raises(ProofError, match="waits for"):
        written("0F0 1F0 1F1+ 1B0 0F1 0B0 1B1 0B1", homes=(0, 0), micro_batches=2).check()


def test_columns_and_rows_have_to_fit():
    table = early_backward(2, 2)
    with pytest.raises(ProofError, match="give every column one per pass"):
        replace(table, piece=table.piece[:-1]).check()
    with pytest.raises(ProofError, match="rows do not follow each other"):
        replace(table, row_start=np.array([0, 5, 4])).check()
    with pytest.raises(ProofError, match="2 pieces are not 3 copies"):
        replace(table, copies=3).check()


def test_micro_batches_of_two_copies_stay_on_their_own():
    table = dual_pipe(2, 4)
    table.check()
    with pytest.raises(ProofError, match="say which one every micro-batch goes through"):
        replace(table, copy_of_micro_batch=np.zeros(0, np.int32)).check()
    with pytest.raises(ProofError, match="piece 0 has 1 forward passes of micro-batch 0, not 0"):
        replace(table, copy_of_micro_batch=np.array([1, 1, 0, 0], np.int32)).check()


def test_bytes_are_kept_until_gradients_free_them():
    kept = np.array([10.0, 4.0])
    assert early_backward(2, 4).peak_kept(kept).tolist() == [20, 4]
    assert gpipe(2, 4).peak_kept(kept).tolist() == [40, 16]
    # Device 1 puts off the gradients of one micro-batch; those of its inputs free half at once.
    assert zero_bubble_h1(2, 4).peak_kept(kept).tolist() == [20, 8]
    assert zero_bubble_h1(2, 4).peak_kept(kept, 0.5 * np.asarray(kept)).tolist() == [20, 6]


def test_pieces_of_a_device_add_up():
    assert zero_bubble_v(2, 4).peak_kept(np.array([1.0, 1.0, 0.0, 0.0])).tolist() == [4, 3]


def test_a_pair_takes_before_it_gives_back():
    table = written("0F0 0B0+ 0F1 0B1", homes=(0,), micro_batches=2)
    table.check()
    assert table.peak_live.tolist() == [2]


def test_bytes_of_the_wrong_number_of_pieces_are_refused():
    with pytest.raises(StrategyError, match="3 pieces keep something, the timetable has 2"):
        early_backward(2, 4).peak_kept(np.ones(3))


def test_people_can_read_it():
    table = written("0F0 0F1+ 0B0 0B1", homes=(0,), micro_batches=2)
    assert str(table) == "mine: 1 devices, 1 pieces, 2 micro-batches\n0  0F0 0F1+0B0 0B1"
