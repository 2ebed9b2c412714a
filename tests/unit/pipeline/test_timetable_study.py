"""Rows for charts: what they hold, and that they say what is known."""

from __future__ import annotations

import pytest

from ropewalk.pipeline.timetable_study import COMPARED, communication_study, memory_study


def test_communication_slows_the_shallow_warm_up_first():
    rows = {(row.timetable, row.ratio): row for row in communication_study(4, 16, ratios=(0.0, 0.5))}
    assert {name for name, _ in rows} == {*COMPARED, "zb-auto"}
    assert rows["1f1b", 0.0].makespan == rows["gpipe", 0.0].makespan == pytest.approx(19 / 16)
    assert rows["1f1b", 0.5].makespan > 1.1 * rows["1f1b-deep", 0.5].makespan
    assert rows["zb-h1", 0.0].makespan < rows["1f1b", 0.0].makespan
    for ratio in (0.0, 0.5):
        assert rows["zb-auto", ratio].makespan <= rows["zb-h1", ratio].makespan
        assert rows["zb-auto", ratio].peak_live <= rows["1f1b", ratio].peak_live


def test_only_gpipe_keeps_more_when_micro_batches_do():
    rows = {(row.timetable, row.micro_batches): row.peak_live for row in memory_study(4, (8, 64))}
    assert (rows["gpipe", 8], rows["gpipe", 64]) == (8, 64)
    assert {name: rows[name, 64] for name in COMPARED if name != "gpipe"} == {
        "1f1b": 4, "1f1b-deep": 7, "zb-h1": 4, "zb-h2": 7, "zb-v": 4,
    }  # fmt: skip
    assert all(rows[name, 8] == rows[name, 64] for name in COMPARED if name != "gpipe")
