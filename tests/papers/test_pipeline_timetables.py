"""Timetables against published closed forms and against steps that were worked out with other programs.

Sources:
[DAPPLE] Fan et al., "DAPPLE: A Pipelined Data Parallel Approach for Training Large Models", PPoPP 2021.
[ZB]     Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024.
[SC21]   Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021.
[V3]     DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024.

`pipeline_clock.json` holds steps timed by an independent simulation, and what the authors' scheduler of [ZB] gives at
the memory of 1F1B. All comparisons are exact unless a test says otherwise.
"""

from __future__ import annotations

import json
from pathlib import Path

import bubbles
import pytest
from warm_up_rules import by_rule, gain_of_depth

from ropewalk.timetable import (
    automatic,
    dual_pipe,
    dual_pipe_v,
    early_backward,
    gpipe,
    interleaved,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)
from ropewalk.timetable.clock import run, stage_times
from ropewalk.timetable.named import timetable


def longest_span(seen):
    """The longest that a device is at it: the time of a step when steps follow each other without a barrier."""
    return float(seen.span.max())


KNOWN = json.loads((Path(__file__).parents[1] / "data" / "pipeline_clock.json").read_text())


def case_times(case):
    return stage_times(case["forward"], case["backward"], 0, case["send"], None, case["all_reduce"])


@pytest.mark.parametrize("name", ["1f1b", "1f1b-deep", "gpipe"])
@pytest.mark.parametrize(
    "case", KNOWN["cases"], ids=lambda case: f"{case['forward']}{case['send']}{case['all_reduce']}"
)
def test_worked_steps_of_dapple(case, name):
    seen = run(timetable(name, len(case["forward"]), case["micro_batches"]), case_times(case))
    assert [seen.makespan, seen.peak_live.tolist()] == case[name]


def test_the_formula_of_dapple_takes_links_for_half_duplex():
    """Where a hand-over is the pivot it gives 52; that is the deep timetable on links with one direction at a time."""
    case = next(case for case in KNOWN["cases"] if case["send"] == [4])
    table = early_backward(2, case["micro_batches"], deep=True)
    assert run(table, case_times(case), half_duplex=True).makespan == case["formula"] == 52
    assert run(table, case_times(case)).makespan == 40


def test_early_stages_hide_the_all_reduce_of_later_ones():
    """Five seconds on the first of three stages cost five, on the last one three."""
    table = early_backward(3, 5)
    for stage, expected in ((0, 19), (2, 17)):
        reduce = [5 if number == stage else 0 for number in range(3)]
        assert run(table, stage_times(1, 1, all_reduce=reduce)).makespan == expected
    assert run(table, stage_times(1, 1, pieces=3)).makespan == 14


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("devices", [2, 4, 8])
def test_the_deep_warm_up_gains_what_round_trips_cost(devices, ratio):
    """A long step of [DAPPLE]'s P_A is slower than P_B by the ratio of communication times (S - 1) / S, within 1 %."""
    times = stage_times(1, 2, send_forward=1.5 * ratio, pieces=devices)
    shallow, deep = (run(early_backward(devices, 2000, deep=deep), times).makespan for deep in (False, True))
    assert times.communication_ratio == pytest.approx(ratio)
    assert shallow / deep == pytest.approx(1 + gain_of_depth(times), rel=0.01)


def test_the_rule_takes_the_deep_warm_up_where_communication_counts():
    names = [by_rule(stage_times(1, 2, send_forward=send, pieces=4), 8).name for send in (0, 0.05, 0.5)]
    assert names == ["1f1b", "1f1b", "1f1b-deep"]


@pytest.mark.parametrize("row", KNOWN["zero_bubble_h1"], ids=str)
def test_zero_bubble_at_the_memory_of_1f1b_is_as_good_as_the_authors_scheduler(row):
    devices, batches, forward, backward, weight, span, makespan, one_f_one_b = row
    times = stage_times(forward, backward, weight, pieces=devices)
    seen = run(zero_bubble_h1(devices, batches), times)
    assert (seen.span.max(), seen.makespan) == (span, makespan)
    assert seen.makespan - batches * (forward + backward + weight) == bubbles.zero_bubble_h1_bubble(
        devices, forward, backward, weight
    )
    assert seen.peak_live.max() == devices == early_backward(devices, batches).peak_live.max()
    assert run(early_backward(devices, batches), times).makespan == one_f_one_b
    assert automatic(times, batches).makespan <= makespan


@pytest.mark.parametrize("times", [(1, 1, 1), (10, 12, 8), (1, 2, 1)])
@pytest.mark.parametrize("size", [(2, 4), (4, 8), (4, 12), (8, 16), (8, 32)])
def test_zero_bubble_at_twice_the_memory_has_the_published_bubble_in_its_spans(size, times):
    devices, batches = size
    seen = run(zero_bubble_h2(devices, batches), stage_times(*times, pieces=devices))
    assert seen.span.max() - batches * sum(times) == bubbles.zero_bubble_h2_bubble(devices, *times)
    assert seen.peak_live.tolist() == [2 * devices - 1] * devices


def test_zero_bubble_means_spans_and_not_the_step():
    """Equal passes, four devices, eight micro-batches: spans of 24 without a bubble, a step of 27."""
    seen = run(zero_bubble_h2(4, 8), stage_times(1, 1, 1, pieces=4))
    assert seen.span.tolist() == [24] * 4
    assert seen.makespan == 27


def test_at_twice_the_memory_the_automatic_timetable_has_shorter_spans_than_the_one_by_hand():
    times = stage_times(10, 12, 8, pieces=4)
    assert run(zero_bubble_h2(4, 8), times).span.max() == 258
    assert automatic(times, 8, limit=8, judge=longest_span).span.max() == 252


@pytest.mark.parametrize("size", [(2, 4), (4, 8), (4, 12), (8, 32)])
def test_a_v_of_two_pieces_has_no_bubble_at_the_memory_of_1f1b(size):
    devices, batches = size
    seen = run(zero_bubble_v(devices, batches), stage_times(0.5, 0.5, 0.5, pieces=2 * devices))
    assert seen.span.tolist() == [3 * batches] * devices
    assert seen.peak_live.tolist() == [2 * devices] * devices  # of half a stage each


@pytest.mark.parametrize("size", [(2, 4, 2), (4, 8, 2), (4, 12, 3), (8, 16, 4)])
def test_interleaving_divides_the_bubble(size):
    devices, batches, each = size
    seen = run(interleaved(devices, batches, each), stage_times(1, 2, pieces=devices * each))
    assert seen.makespan / each == pytest.approx(bubbles.interleaved_makespan(devices, batches, each, 1, 2))


@pytest.mark.parametrize("size", [(2, 3), (4, 8), (8, 20)])
def test_gpipe_and_1f1b_idle_for_the_published_share(size):
    devices, batches = size
    times = stage_times(1, 2, pieces=devices)
    for table in (gpipe(devices, batches), early_backward(devices, batches)):
        seen = run(table, times)
        assert seen.makespan == bubbles.flush_makespan(devices, batches, 1, 2)
        assert seen.bubble == pytest.approx(bubbles.flush_bubble_share(devices, batches))


@pytest.mark.parametrize("size", [(2, 4), (4, 8), (4, 20), (8, 32)])
def test_dualpipe_has_the_published_bubble_and_activations(size):
    """Exact where forward, input and weight passes are equal and pairs save nothing; [V3] table 2."""
    devices, batches = size
    seen = run(dual_pipe(devices, batches), stage_times(1, 1, 1, pieces=devices))
    assert seen.makespan - 3 * batches == bubbles.dual_pipe_bubble(devices, 3, 2, 1)
    assert seen.peak_live.tolist() == [devices + 1] * devices
    assert seen.timetable.copies == 2


@pytest.mark.parametrize("times", [(10, 12, 8), (1, 2, 1)])
def test_dualpipe_is_never_worse_than_its_published_bubble_without_overlap(times):
    _, backward, weight = times
    for devices, batches in ((4, 8), (8, 32)):
        seen = run(dual_pipe(devices, batches), stage_times(*times, pieces=devices))
        bound = bubbles.dual_pipe_bubble(devices, sum(times), backward + weight, weight)
        assert seen.makespan - batches * sum(times) <= bound


def test_passes_side_by_side_shorten_dualpipe():
    table = dual_pipe_v(4, 16)
    apart, together = (run(table, stage_times(1, 1, 1, pieces=8, overlap=share)).makespan for share in (0, 0.5))
    assert together < 0.9 * apart


def test_recomputing_lengthens_backward_passes_by_the_forward_pass():
    times = stage_times(1, 2, pieces=4)
    assert run(early_backward(4, 8), times.recomputing()).makespan == (8 + 3) * (1 + 3)
