"""Timetables of a size that fits on a line, and sizes that do not exist."""

from __future__ import annotations

import pytest
from warm_up_rules import by_clock

from ropewalk.errors import StrategyError
from ropewalk.timetable import (
    automatic,
    dual_pipe,
    dual_pipe_v,
    early_backward,
    interleaved,
    v_homes,
    zero_bubble_v,
)
from ropewalk.timetable.clock import stage_times
from ropewalk.timetable.named import TIMETABLES, timetable


def rows(table):
    return [line.split("  ", 1)[1] for line in str(table).splitlines()[1:]]


def test_memory_for_one_micro_batch_makes_them_go_one_by_one():
    assert rows(early_backward(2, 2, limit=1)) == ["0F0 0B0 0F1 0B1", "1F0 1B0 1F1 1B1"]


def test_the_v_turns_on_the_last_device():
    assert v_homes(2) == [0, 1, 1, 0]
    assert rows(zero_bubble_v(1, 2)) == ["0F0 1F0 1I0 1W0 0F1 0I0 0W0 1F1 1I1 1W1 0I1 0W1"]


def test_a_short_v_is_the_beginning_of_a_long_one():
    zero_bubble_v(4, 1).check()
    assert zero_bubble_v(4, 1).passes == 4 * 2 * 3


def test_interleaved_groups_may_be_larger_than_the_pipeline():
    """PyTorch's rule: six micro-batches on four devices are one group of six, seven are one of seven."""
    for micro_batches in (3, 6, 7, 8, 10):
        interleaved(4, micro_batches).check()
    with pytest.raises(StrategyError, match="9 micro-batches do not divide into 2 equal groups for 4 devices"):
        interleaved(4, 9)


def test_interleaved_alternates_over_any_number_of_pieces():
    table = interleaved(2, 4, 2)
    assert rows(table)[0] == "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3"
    assert timetable("interleaved", 2, 4, 3).pieces == 6
    with pytest.raises(StrategyError, match="1f1b has 1 on each"):
        timetable("1f1b", 2, 4, 3)


@pytest.mark.parametrize(("stages", "pieces", "micro_batches"), [(2, 2, 8), (4, 3, 16), (8, 2, 32)])
def test_first_device_of_interleaved_keeps_what_the_paper_says(stages, pieces, micro_batches):
    """Korthikanti et al. 2022: 1 + (p - 1)/(p m) times the activations of 1F1B, m pieces being m times smaller."""
    kept = interleaved(stages, micro_batches, pieces).peak_live[0]
    assert kept / pieces == pytest.approx(stages * (1 + (stages - 1) / (stages * pieces)))


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (4, 2), (4, 4), (4, 16)])
def test_devices_of_1f1b_keep_ever_fewer_micro_batches(stages, micro_batches):
    kept = early_backward(stages, micro_batches).peak_live.tolist()
    assert kept == [min(stages - at, micro_batches) for at in range(stages)]


def test_dualpipe_meets_in_the_middle():
    table = dual_pipe(2, 4)
    assert table.device_of_piece.tolist() == [0, 1, 1, 0]
    assert rows(table)[0].startswith("0F0 3F2 0F1 3B2 3F3+0B0")


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda: dual_pipe(3, 6), "cannot meet in the middle of 3 devices"),
        (lambda: dual_pipe(4, 6), "6 micro-batches: use an even number, 8 or more"),
        (lambda: dual_pipe_v(4, 7), "7 micro-batches for 8 pieces: use 8 or more"),
        (lambda: early_backward(0, 4), "there are 0 devices"),
        (lambda: early_backward(4, 0), "there are 0 micro-batches"),
        (lambda: early_backward(4, 4, limit=0), "memory holds 0 micro-batches"),
        (lambda: interleaved(2, 2, 0), "devices hold 0 pieces"),
        (lambda: timetable("chimera", 2, 2), "there is no schedule 'chimera': use one of 1f1b, 1f1b-deep"),
        (lambda: automatic(stage_times(1, 1, 1, pieces=4), 4, [0, 1]), "2 homes for 4 pieces"),
        (lambda: automatic(stage_times(1, 1, 1, pieces=2), 4, limit=0.5), "keeps at most 0.5: allow more"),
    ],
)
def test_what_does_not_exist_is_refused_with_a_remedy(make, fact):
    with pytest.raises(StrategyError, match=fact):
        make()


@pytest.mark.parametrize("name", TIMETABLES)
def test_the_table_tells_the_truth_about_pieces_and_gradients(name):
    named = TIMETABLES[name]
    table = timetable(name, 4, 16)
    table.check()
    assert table.pieces == 4 * named.pieces_each
    assert table.splits_backward == named.splits_backward


def test_uneven_stages_take_the_deep_warm_up_without_communication():
    assert by_clock(stage_times([2, 1, 1], [4, 2, 2]), 6).timetable.name == "1f1b-deep"
    assert by_clock(stage_times(1, 2, pieces=3), 6).timetable.name == "1f1b"


def test_the_automatic_timetable_fits_a_v_into_half_the_memory():
    """Bubble for memory: four pieces of activations instead of eight."""
    times = stage_times(0.5, 0.5, 0.5, pieces=8)
    found = automatic(times, 12, v_homes(4), limit=4)
    assert found.peak_live.max() <= 4
    assert 36 < found.makespan <= 42


def test_the_automatic_timetable_counts_bytes():
    times = stage_times([1, 1, 1, 1], 1, 1)
    assert automatic(times, 8, kept=[8.0, 4.0, 2.0, 1.0], limit=16.0).timetable.peak_kept([8, 4, 2, 1]).max() <= 16
