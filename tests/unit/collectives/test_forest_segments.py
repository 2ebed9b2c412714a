from fractions import Fraction
from math import sqrt

import pytest

from ropewalk.collectives.forest.segments import MOST_SEGMENTS, best_segments, forest_seconds
from ropewalk.errors import ProgramError


def test_one_segment_pays_every_branch_in_full():
    assert forest_seconds(6e9, Fraction(2 * 10**9), depth=5, start_up_s=1e-3, segments=1) == pytest.approx(5 * 3.001)


def test_many_segments_approach_the_rate_and_pay_for_starting_up():
    assert forest_seconds(1e9, 1e9, 4, 0.0, 300) == pytest.approx(1.01)
    assert forest_seconds(1e9, 1e9, 4, 1e-3, 300) == pytest.approx(303 * (1e-3 + 1 / 300))


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("depth", [2, 7, 30])
@pytest.mark.parametrize("start_up", [1e-6, 20e-6])
def test_no_other_number_of_segments_is_faster(size, depth, start_up):
    best = best_segments(size, 25e9, depth, start_up)
    times = [forest_seconds(size, 25e9, depth, start_up, number) for number in range(1, MOST_SEGMENTS + 1)]
    assert min(times) == times[best - 1]


def test_the_best_time_is_the_closed_form_where_the_best_number_is_whole():
    """M/B = 16 ms, 9 further branches, 1 ms to start up: 12 segments."""
    assert best_segments(16e6, 1e9, 10, 1e-3) == 12
    best = (sqrt(16e-3) + sqrt(9e-3)) ** 2
    assert forest_seconds(16e6, 1e9, 10, 1e-3, 12) == pytest.approx(best)


def test_a_forest_of_single_branches_is_not_cut():
    assert best_segments(1e9, 1e9, 1, 1e-9) == best_segments(1e9, 1e9, 1, 0.0) == 1


def test_free_starting_up_is_capped_by_the_most_segments_and_by_single_bytes():
    assert best_segments(1e9, 1e9, 5, 0.0) == best_segments(1e12, 1e9, 5, 1e-12) == MOST_SEGMENTS
    assert best_segments(10, 1e9, 5, 0.0) == 10
    assert best_segments(0.0, 1e9, 5, 1e-6) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 1e9, 2, 0.0), "-1 bytes"),
        ((1.0, 0.0, 2, 0.0), "0 bytes/s"),
        ((1.0, 1e9, 0, 0.0), "depth 0"),
        ((1.0, 1e9, 2, float("nan")), "start-up"),
    ],
)
def test_impossible_forests_are_refused(arguments, message):
    with pytest.raises(ProgramError, match=message):
        best_segments(*arguments)


def test_a_pipeline_of_no_segments_is_refused():
    with pytest.raises(ProgramError, match="0 segments"):
        forest_seconds(1.0, 1.0, 1, 0.0, 0)
