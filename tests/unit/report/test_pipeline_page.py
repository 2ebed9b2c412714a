"""The page of a pipeline: what it says, what it draws, and that names stay text."""

import pytest

from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.planner import plan
from ropewalk.pipeline.profile import from_states
from ropewalk.pipeline.terms import Terms
from ropewalk.report.pipeline import gpus_in_words, headline, pipeline_page, stage_rows


def chain(name="tiny", layers=6, head_bytes=4e8):
    """Layers of 2 + 4 ms that hand on 4 MB, the last one with almost all of the weights."""
    weights = [1e6] * (layers - 1) + [head_bytes]
    return from_states(
        name, 8, forward_s=[2e-3] * layers, backward_s=[4e-3] * layers, parameter_bytes=weights,
        crossing_bytes=[4e6] * layers, kept_bytes=[4e6] * layers,
        names=tuple(f"{name} {number}" for number in range(layers)), source="made up",
    )  # fmt: skip


def answered(name="tiny", schedules=("1f1b", "gpipe"), machines=None, **terms):
    place = machines or Machines(2, (1, 2), 1.25e9, 1.25e9, 10e9)
    return plan(chain(name), place, Terms(64, 8, schedules=schedules, larger_micro_batches=False, **terms))


def bars(page, key):
    return page.bars(key)


def test_the_page_draws_every_pass_and_transfer_of_the_timetable(read_page):
    answer = answered()
    page = read_page(pipeline_page(answer))
    drawn = bars(page, "timetable")
    table, times = answer.best.run.timetable, answer.best.run.times
    sends = int((times.send_forward > 0).sum() + (times.send_backward > 0).sum()) * table.micro_batches
    assert len(drawn["start"]) == table.passes + sends
    assert drawn["span"] == round(answer.step_s * 1e9)
    assert max(start + length for start, length in zip(drawn["start"], drawn["length"], strict=True)) == drawn["span"]
    assert set(page.figure_keys) == {"alternatives", "balance", "memory", "communication", "live"}


def test_the_headline_names_stages_step_and_gain(read_page):
    answer = answered()
    said = headline(answer).replace("\u00a0", " ")
    assert said.startswith("tiny in 2 stages of 1 GPU each takes ")
    assert "as fast as data parallelism" in said
    alone = answered(machines=Machines(1, (1,), 1.25e9, 1.25e9, 10e9))
    assert "fastest on a single GPU" in headline(alone)
    whole = answered(machines=Machines(2, (2,), 1e12, 1e12, 1e13))
    assert "data parallel" in headline(whole)


def test_every_other_plan_is_in_the_table_with_its_reason_where_there_is_none(read_page):
    tight = answered(schedules=("1f1b",), memory_bytes=1.61e9)
    assert any(other.judged is None for other in tight.alternatives)
    page = read_page(pipeline_page(tight))
    for other in tight.alternatives:
        assert other.name in page.text
        if other.judged is None:
            assert other.reason in page.text


def test_memory_is_weights_state_and_activations_up_to_what_was_judged(read_page):
    answer = answered(memory_bytes=16e9)
    page = read_page(pipeline_page(answer))
    (figure,) = page.figures("memory")
    bars = [trace for trace in figure["data"] if trace["type"] == "bar"]
    total = [sum(trace["x"][row] for trace in bars) for row in range(len(answer.best.memory_bytes))]
    assert total == pytest.approx(list(answer.best.memory_bytes))
    (average,) = page.traces("memory", "average")
    assert average["x"] == list(answer.best.average_memory_bytes)
    assert average["y"] == list(range(len(total)))


def test_a_split_backward_pass_is_drawn_in_its_two_parts(read_page):
    page = read_page(pipeline_page(answered(schedules=("zb-h1",))))
    assert {"gradients of inputs", "gradients of weights"} <= {
        trace["name"] for trace in page.figures("balance")[0]["data"]
    }
    assert any(label.startswith("0W") for label in bars(page, "timetable")["labels"])


def test_stage_rows_and_gpus_are_said_in_few_words():
    rows = stage_rows(answered())
    assert [row.number for row in rows] == [0, 1]
    assert "tiny 0" in rows[0].layers
    assert gpus_in_words((3,)) == "GPU 3"
    assert gpus_in_words((0, 1, 2)) == "GPUs 0–2"
    assert gpus_in_words((0, 2, 4)) == "GPUs 0, 2, 4"
    assert gpus_in_words(tuple(range(0, 40, 2))).endswith("… (20)")


def test_the_same_plan_gives_the_same_bytes_and_names_are_only_text():
    evil = "<script>alert(1)</script>"
    assert pipeline_page(answered()) == pipeline_page(answered())
    assert evil not in pipeline_page(answered(evil))
