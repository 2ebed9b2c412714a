"""Lanes of bars: rows, times in whole nanoseconds, legends."""

from timeline_bars import spread

from ropewalk.palette import BLUE, GREEN
from ropewalk.report.lanes import Bar, LaneGroup, lane_timeline

LOOKS = {"work": BLUE, "talk": GREEN}


def timeline(bars):
    return lane_timeline("t", [LaneGroup("gpu", ("compute", "sends"))], bars, LOOKS, span_s=1.0, summary="a test")


def test_bars_at_the_same_time_in_one_lane_stand_above_each_other():
    drawn = timeline([Bar(0, 0.0, 0.5, "a", "work"), Bar(0, 0.2, 0.7, "b", "work"), Bar(0, 0.5, 0.9, "c", "work"),
                      Bar(1, 0.0, 1.0, "d", "talk")])  # fmt: skip
    data = spread(str(drawn.json))
    assert data["row"] == [0, 1, 0, 2]
    assert [lane["rows"] for lane in data["lanes"][0]["streams"]] == [2, 1]
    assert data["start"] == [0, 200_000_000, 500_000_000, 0]
    assert data["length"] == [500_000_000, 500_000_000, 400_000_000, 1_000_000_000]


def test_what_takes_no_time_is_not_drawn_and_colours_that_are_not_used_are_not_in_the_legend():
    drawn = timeline([Bar(0, 0.0, 0.5, "a", "work"), Bar(1, 0.3, 0.3, "nothing", "talk")])
    assert spread(str(drawn.json))["label"] == [0]
    assert [swatch.label for swatch in drawn.legend] == ["work"]


def test_a_fourth_bar_at_the_same_time_shares_a_row():
    drawn = timeline([Bar(0, 0.0, 0.1 * number, str(number), "work") for number in range(3, 7)])
    assert spread(str(drawn.json))["row"] == [0, 1, 2, 0]
