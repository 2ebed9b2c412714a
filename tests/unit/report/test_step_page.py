"""The page of a training step: the right words, the right bars, and no more of them than a browser can draw."""

import re
from functools import partial

import numpy as np
import pytest
from timeline_bars import spread
from tiny_steps import BANDWIDTH, pipeline_step, run_step

from ropewalk.fabric import Dgx
from ropewalk.report import colours
from ropewalk.report import step as report_step
from ropewalk.report import step_timeline as drawn
from ropewalk.report.link_spread import link_kinds
from ropewalk.report.rank_groups import by_likeness, by_stage, rank_groups
from ropewalk.report.step import step_page
from ropewalk.report.step_bars import MemoryBar, text_on
from ropewalk.report.step_words import bottleneck_in_words, reason
from ropewalk.sim.step import statistics
from ropewalk.task.step import Act, StepSketch

STREAMS = ("compute", "tensor", "data")
STAGES = np.repeat([0, 1], 2)
MEMORY = [MemoryBar(f"stage {stage}", {"weights": 30e9, "activations": 40e9 - stage * 1e10}, 80e9) for stage in (0, 1)]


def page_of(run, **options):
    return step_page(run, statistics(run, peak_flops=1e13, tokens=4096), subject="gpt2 on 4 GPUs", **options)


def bars(page):
    return page.bars()


def half_exposed():
    sketch = StepSketch(2, STREAMS)
    done = [sketch.compute(rank, 6.0, label="forward") for rank in range(2)]
    sketch.collective(Act.ALL_REDUCE, [0, 1], 3 * BANDWIDTH, after=done, stream=1)
    last = sketch.compute(0, 4.0, after=done[:1], label="backward")
    sketch.compute(1, 1e-9, after=[last], label="update")
    return run_step(sketch.step())


def test_the_reason_adds_up_and_names_the_purpose():
    words = reason(statistics(half_exposed())).replace("\u00a0", " ")
    # Rank 0 computes 10 s of 10 s, rank 1 computes 6 s, waits 3 s for the sum and 1 s for nothing.
    assert words.startswith("80.0 % of the step is compute.")
    assert "15.0 % waits for tensor-parallel communication" in words
    assert "15.0 % of communication is hidden behind compute" in words
    assert "5.0 % is bubble" in words


def test_a_gpu_that_computes_longer_than_most_is_named():
    sketch = StepSketch(4, STREAMS)
    for rank in range(4):
        sketch.compute(rank, 1.5 if rank == 2 else 1.0)
    words = reason(statistics(run_step(sketch.step()))).replace("\u00a0", " ")
    assert words.endswith("The slowest GPU, 2, computes 50.0 % longer than the median one.")


def test_hidden_communication_is_said_to_hide():
    sketch = StepSketch(2, STREAMS)
    for rank in range(2):
        sketch.compute(rank, 4.0)
    sketch.collective(Act.ALL_REDUCE, [0, 1], 2 * BANDWIDTH, stream=2)
    words = reason(statistics(run_step(sketch.step()))).replace("\u00a0", " ")
    assert words == "100 % of the step is compute. Communication takes 50.0 % of it and is hidden behind compute."


def test_the_bottleneck_is_told_apart_from_a_link_that_is_merely_busy():
    assert "delays the critical path by 4" in bottleneck_in_words(statistics(_sends_only(4)))
    quiet = StepSketch(2, STREAMS)
    quiet.compute(0, 9.0)
    quiet.send(0, 1, BANDWIDTH, stream=1)
    assert bottleneck_in_words(statistics(run_step(quiet.step()))).startswith("No link delays the critical path")
    idle = StepSketch(2, STREAMS)
    idle.compute(0, 1.0)
    assert bottleneck_in_words(statistics(run_step(idle.step()))) == "Nothing crosses a link."


def _sends_only(seconds):
    sketch = StepSketch(2, STREAMS)
    sketch.send(0, 1, seconds * BANDWIDTH, stream=1)
    return run_step(sketch.step())


def test_operations_of_the_critical_path_that_differ_in_numbers_alone_are_one_line(read_page):
    sketch = StepSketch(1, STREAMS)
    done = []
    for layer in range(3):
        done = [sketch.compute(0, 1.0, after=done, label=f"block {layer} forward")]
    sketch.compute(0, 0.5, after=done, label="head 9")
    page = read_page(page_of(run_step(sketch.step())))
    assert "block … forward" in page.texts
    assert "block 0 forward" not in page.texts
    assert "head 9" in page.texts


def test_the_page_has_its_numbers_charts_and_a_drawing(read_page):
    run = run_step(pipeline_step(), fabric=Dgx(1, 4).build())
    page = read_page(page_of(run, stage_of_rank=STAGES, memory=MEMORY, facts=[("Costs", "made up")], notes=["A note."]))
    assert set(page.figure_keys) == {"breakdown", "memory", "utilisation", "spread"}
    assert "A step of gpt2 on 4 GPUs takes" in page.text
    for word in ("Model flops utilisation", "Tokens per second", "Costs", "made up", "A note.", "Critical path"):
        assert word in page.text
    assert page.count("canvas") == 1
    assert page.count("svg") == 1


def test_rows_of_the_breakdown_are_as_long_as_the_step(read_page):
    run = run_step(pipeline_step())
    page = read_page(page_of(run, stage_of_rank=STAGES))
    (figure,) = page.figures("breakdown")
    stacks = [trace["x"] for trace in figure["data"]]
    assert np.sum(stacks, axis=0) == pytest.approx(np.full(2, run.trace.makespan))


def test_memory_bars_show_the_parts_and_the_capacity(read_page):
    page = read_page(page_of(run_step(pipeline_step()), stage_of_rank=STAGES, memory=MEMORY))
    (figure,) = page.figures("memory")
    assert {trace["name"]: trace["x"] for trace in figure["data"]} == {
        "weights": [30e9, 30e9],
        "activations": [40e9, 30e9],
    }
    assert figure["layout"]["shapes"][0]["x0"] == 80e9


def test_the_timeline_has_a_bar_for_every_operation_of_the_ranks_it_shows(read_page):
    run = run_step(pipeline_step())
    found = bars(read_page(page_of(run)))
    assert sum(found["count"]) == np.isin(run.occupied.rank, [0, 2]).sum()
    assert [gpu["name"] for gpu in found["lanes"]] == ["gpu 0 (×2)", "gpu 2 (×2)"]
    assert {stream["name"] for stream in found["lanes"][0]["streams"]} == {"compute", "tensor", "pipeline"}
    ends = np.array(found["start"]) + np.array(found["length"])
    assert ends.max() <= found["span"] + 1


def test_one_gpu_stands_for_each_stage_the_one_with_most_of_the_critical_path(read_page, monkeypatch):
    sketch = StepSketch(4, STREAMS)
    slow = sketch.compute(1, 2.0, label="forward")
    quick = sketch.compute(0, 1.0, label="forward")
    sent = sketch.send(1, 3, BANDWIDTH, after=[slow], stream=1)
    sketch.compute(2, 0.5, after=[quick])
    sketch.compute(3, 1.0, after=[sent])
    monkeypatch.setattr("ropewalk.report.step.MOST_GPUS", 2)
    page = read_page(page_of(run_step(sketch.step()), stage_of_rank=STAGES))
    assert [gpu["name"] for gpu in bars(page)["lanes"]] == ["stage 0 · gpu 1", "stage 1 · gpu 3"]
    assert "2 of 4 GPUs are drawn, one for each stage" in page.text


def test_forward_and_backward_have_colours_of_their_own(read_page):
    run = run_step(pipeline_step())
    found = bars(read_page(page_of(run)))
    looks = {found["labels"][label].split()[0]: found["looks"][look][0] for label, look in
             zip(found["label"], found["look"], strict=True) if found["labels"][label].endswith("stage 0")
             and "sum" not in found["labels"][label]}  # fmt: skip
    assert looks == {word: colours.COMPUTE_PHASES[word].light for word in ("forward", "backward")}


def test_a_step_of_very_many_operations_is_merged_and_says_so(read_page, monkeypatch):
    monkeypatch.setattr(report_step, "step_timeline", partial(drawn.step_timeline, most=50))
    run = run_step(pipeline_step(micro_batches=40))
    page = read_page(page_of(run))
    found = bars(page)
    assert len(found["start"]) <= 50
    assert sum(found["count"]) == np.isin(run.occupied.rank, [0, 2]).sum()
    assert "are drawn as one bar" in page.text


def test_merged_bars_cover_their_operations():
    run = run_step(pipeline_step(micro_batches=20))
    merged, tolerance = drawn._bars(run, np.array([0]), drawn._looks(run), 30)
    mine = run.occupied.rank == 0
    assert merged.start.min() == run.occupied.start[mine].min()
    assert merged.end.max() == run.occupied.end[mine].max()
    assert (merged.end > merged.start).all()
    lasted = (run.occupied.end - run.occupied.start)[mine].sum()
    assert merged.busy.sum() == pytest.approx(lasted)
    assert tolerance > 0


def test_ranks_that_do_the_same_are_one_row_and_one_lane(read_page):
    run = run_step(pipeline_step(stages=2, tensor=2, data=2))
    stages = np.repeat([0, 1], 4)
    found = statistics(run)
    alike = by_likeness(run, found, stages)
    assert alike.names == ("stage 0 · gpu 0 (×4)", "stage 1 · gpu 4 (×4)")
    assert alike.of_rank.tolist() == stages.tolist()
    # The view by GPU would be the one by stage over again.
    assert [group.sort for group in rank_groups(run, found, stages)] == ["stage"]
    assert [group.sort for group in rank_groups(run, found)] == ["gpu"]
    page = read_page(step_page(run, found, subject="a step"))
    assert [gpu["name"] for gpu in bars(page)["lanes"]] == ["gpu 0 (×4)", "gpu 4 (×4)"]
    assert "2 of 8 GPUs are drawn: the others are identical" in page.text


def test_bars_that_come_out_equal_share_a_row_whenever_their_ranks_are_busy(read_page):
    sketch = StepSketch(4, STREAMS)
    for rank, (first_s, second_s) in enumerate(((0.5, 1.5), (1.0, 1.0), (1.0, 1.0), (1.0, 2.0))):
        sketch.compute(rank, second_s, after=(sketch.compute(rank, first_s),))
    run = run_step(sketch.step())
    found = statistics(run)
    groups = by_likeness(run, found)
    assert groups.names == ("gpu 0", "gpu 1 (×2)", "gpu 3")
    joined = groups.joined(groups.mean(found.times.compute_s)[:, None])
    assert joined.names == ("gpu 0 (×3)", "gpu 3")
    assert joined.of_rank.tolist() == [0, 0, 0, 1]
    (figure,) = read_page(step_page(run, found, subject="a step")).figures("breakdown")
    assert figure["layout"]["yaxis"]["ticktext"] == ["gpu 0 (×3)", "gpu 3"]


def test_a_slow_rank_stands_apart_from_those_of_its_stage():
    sketch = StepSketch(4, STREAMS)
    for rank in range(4):
        sketch.compute(rank, 2.0 if rank == 2 else 1.0)
    run = run_step(sketch.step())
    assert by_likeness(run, statistics(run)).names == ("gpu 0 (×3)", "gpu 2")


def test_many_gpus_that_all_differ_are_shown_in_blocks():
    sketch = StepSketch(100, STREAMS)
    for rank in range(100):
        sketch.compute(rank, 1.0 + rank / 100)
    run = run_step(sketch.step())
    (blocks,) = rank_groups(run, statistics(run))
    assert blocks.sort == "block of gpus"
    assert len(blocks.names) == 25
    assert blocks.names[-1] == "gpus 96–99"
    assert blocks.mean(np.arange(100.0))[0] == pytest.approx(1.5)
    assert by_stage(STAGES).mean(np.array([1.0, 3.0, 5.0, 9.0])) == pytest.approx([2.0, 7.0])


def test_links_are_sorted_by_what_they_join():
    fabric = Dgx(2, 4, spines=2).build()
    names, kind = link_kinds(fabric)
    assert "gpu → nvswitch" in names
    assert "rail → spine" in names
    assert np.bincount(kind)[names.index("gpu → nvswitch")] == 8


def test_text_is_legible_on_every_colour():
    assert text_on(colours.PURPOSES["tensor"]) == "#15181d"
    assert text_on(colours.PURPOSES["compute"]) == "#ffffff"
    assert text_on(colours.IDLE) == colours.INK.light


def test_every_colour_of_a_figure_has_a_partner_for_dark_pages(read_page, strings_in):
    page = read_page(page_of(run_step(pipeline_step(), fabric=Dgx(1, 4).build()), stage_of_rank=STAGES, memory=MEMORY))
    fixed = {"#15181d", "#ffffff"}
    for key in page.figure_keys:
        shades = {text for text in strings_in(page.figures(key)) if re.fullmatch(r"#[0-9a-f]{6}", text)}
        assert shades - fixed <= set(colours.DARK_OF_LIGHT)


def test_labels_that_look_like_scripts_stay_text(read_page):
    sketch = StepSketch(2, STREAMS)
    sketch.compute(0, 1.0, label="</script><script>alert(1)</script>")
    page = read_page(page_of(run_step(sketch.step())))
    assert bars(page)["labels"] == ["</script><script>alert(1)</script>"]
    assert "</script><script>alert(1)</script>" in page.texts


def test_the_same_step_gives_the_same_bytes():
    assert page_of(run_step(pipeline_step())) == page_of(run_step(pipeline_step()))


def test_an_empty_step_has_a_page(read_page):
    page = read_page(page_of(run_step(StepSketch(2, STREAMS).step())))
    assert "Nothing in this step takes any time." in page.text
    assert page.count("canvas") == 0


def test_a_timeline_of_very_many_operations_leaves_room_on_a_page_of_a_megabyte():
    run = run_step(pipeline_step(stages=4, tensor=1, micro_batches=1500))
    timeline = drawn.step_timeline(run, by_stage(np.arange(4)), span_s=1e4)
    count = len(spread(str(timeline.json))["start"])
    assert 10_000 < count <= drawn.MOST_BARS
    assert len(str(timeline.json)) < 25 * count
