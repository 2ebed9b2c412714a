"""The page of a run shows every task, the critical path, and where the bytes went."""

import numpy as np
import pytest

from ropewalk.fabric import FatTree, IdealSwitch
from ropewalk.report import timeline, trace_page
from ropewalk.routing import shortest
from ropewalk.sim import Trace, simulate
from ropewalk.task import Sketch

EVIL = "<script>alert(1)</script>"


def run(sketch: Sketch, hosts: int = 4, *, record_rates: bool = False) -> Trace:
    fabric = IdealSwitch(hosts).build()
    src, dst = np.nonzero(~np.eye(hosts, dtype=bool))
    return simulate(sketch.graph(), shortest(fabric, src, dst), record_rates=record_rates)


def step(label: str = "gradient") -> Sketch:
    """Two GPUs compute, one sends to the other, which updates; a third sends besides."""
    sketch = Sketch()
    forward = sketch.compute(0, 2e-3, label="forward")
    sketch.compute(1, 1e-3, label="forward")
    sent = sketch.transfer(0, 1, 12.5e6, after=[forward], label=label)
    sketch.transfer(2, 1, 12.5e6, label="other")
    sketch.compute(1, 5e-4, after=[sent], stream=1, label="update")
    sketch.marker(after=[sent])
    return sketch


def test_every_task_but_markers_is_a_bar_from_its_start_to_its_end(read_page):
    trace = run(step())
    (figure,) = read_page(trace_page(trace)).figures("timeline")
    bars = sorted(
        (base, base + length) for bars in figure["data"] for base, length in zip(bars["base"], bars["x"], strict=True)
    )
    expected = sorted((start * 1e3, end * 1e3) for start, end in zip(trace.start[:5], trace.end[:5], strict=True))
    np.testing.assert_allclose(bars, expected, rtol=1e-9, atol=1e-12)
    assert figure["layout"]["yaxis"]["ticktext"] == [
        "gpu 0, stream 0", "gpu 1, stream 0", "gpu 1, stream 1", "h0 sends", "h2 sends",
    ]  # fmt: skip


def test_tasks_of_the_critical_path_are_outlined_and_listed(read_page):
    trace = run(step())
    page = read_page(trace_page(trace))
    labels = {"forward", "gradient", "other", "update"}
    widths = {trace["name"]: trace["marker"]["line"]["width"] for trace in page.figures("timeline")[0]["data"]}
    assert widths.keys() == labels
    assert sorted(widths["forward"]) == [0.5, 1.5]
    assert (widths["gradient"], widths["update"], widths["other"]) == ([1.5], [1.5], [0.5])
    assert page.count("tr") == 1 + len(trace.critical_path()) == 4


def test_a_chip_hides_bars_whose_label_has_a_number_and_a_unit(read_page):
    page = read_page(trace_page(run(step("bucket of 25 MB"))))
    bars = {bars["legendgroup"] for bars in page.figures("timeline")[0]["data"]}
    chips = {attributes["data-group"] for _, attributes in page.elements if "data-group" in attributes}
    assert bars == chips == {f"label {label}" for label in ("forward", "bucket of 25 MB", "other", "update")}


def test_the_headline_says_how_long_and_why(read_page):
    sketch = Sketch()
    sketch.transfer(0, 1, 12.5e6, after=[sketch.compute(0, 3e-3)])
    text = read_page(trace_page(run(sketch))).text
    assert "The run takes 4 ms, 75.0 % of it computing on the critical path" in text
    assert "with an average utilisation of 25.0 %" in text


def test_transfers_at_the_same_time_lie_in_rows_of_their_own():
    sketch = Sketch()
    for peer in (1, 2, 3):
        sketch.transfer(0, peer, 1e6)
    sketch.transfer(1, 2, 1e6)
    lanes = timeline.choose_lanes(run(sketch), np.zeros(0, np.int64))
    assert lanes.rows == (3, 1)
    assert sorted(lanes.row[lanes.lane == 0].tolist()) == [0, 1, 2]


def test_tasks_one_after_the_other_share_a_row():
    sketch = Sketch()
    first = sketch.transfer(0, 1, 1e6)
    sketch.transfer(0, 1, 1e6, after=[first])
    assert timeline.choose_lanes(run(sketch), np.zeros(0, np.int64)).rows == (1,)


def test_more_transfers_at_once_than_rows_overlap_and_the_page_says_so(read_page):
    sketch = Sketch()
    for peer in range(1, 12):
        sketch.transfer(0, peer, 1e6)
    assert "some bars overlap" in read_page(trace_page(run(sketch, 12))).text
    assert "some bars overlap" not in read_page(trace_page(run(step()))).text


def test_of_too_many_tasks_the_critical_path_and_the_longest_are_kept_and_the_page_says_so(monkeypatch, read_page):
    monkeypatch.setattr(timeline, "MOST_TASKS", 3)
    sketch = Sketch()
    short = sketch.compute(0, 1e-4, label="short but critical")
    sketch.compute(0, 9e-3, after=[short], label="long")
    for _ in range(5):
        sketch.compute(1, 1e-3, label="middling")
    page = read_page(trace_page(run(sketch)))
    names = [trace["name"] for trace in page.figures("timeline")[0]["data"] for _ in trace["x"]]
    assert sorted(names) == ["long", "middling", "short but critical"]
    assert "3 of 7 tasks" in page.text


def test_of_too_many_lanes_the_critical_and_the_busiest_are_kept(monkeypatch):
    monkeypatch.setattr(timeline, "MOST_LANES", 2)
    sketch = Sketch()
    for gpu, seconds in enumerate((1e-3, 5e-3, 2e-3, 3e-3)):
        sketch.compute(gpu, seconds)
    lanes = timeline.choose_lanes(run(sketch), np.array([2]))
    assert lanes.names == ("gpu 1, stream 0", "gpu 2, stream 0")


def test_the_busiest_links_are_at_most_twenty_bars_sorted_and_equal_ones_share_a_bar(read_page):
    fabric = FatTree(4).build()
    sketch = Sketch()
    for host in range(16):
        sketch.transfer(host, (host + 5) % 16, 1e6 * (host + 1))
    hosts = np.arange(16)
    trace = simulate(sketch.graph(), shortest(fabric, hosts, (hosts + 5) % 16))
    page = read_page(trace_page(trace))
    (bars,) = page.figures("utilisation")[0]["data"]
    assert len(bars["x"]) <= 20
    assert len(set(bars["text"])) == len(bars["text"])
    assert bars["x"] == sorted(bars["x"], reverse=True)
    assert bars["x"][0] == pytest.approx(trace.link_utilisation.max())
    assert any("other" in name for name in bars["customdata"])
    assert 'class="c5"' in trace_page(trace)


def test_throughput_is_drawn_where_rates_were_recorded_and_only_there(read_page):
    assert "throughput" not in read_page(trace_page(run(step()))).figure_keys
    trace = run(step(), record_rates=True)
    page = read_page(trace_page(trace))
    (curve,) = page.traces("throughput", "received")
    seconds, bits = np.array(curve["x"]) / 1e3, np.array(curve["y"])
    assert (bits[:-1] * np.diff(seconds)).sum() / 8 == pytest.approx(25e6)  # all that host 1 received
    assert max(curve["y"]) == pytest.approx(100e9)
    assert "Host h1" in page.text


def test_a_run_without_transfers_has_a_timeline_and_no_link_charts(read_page):
    sketch = Sketch()
    sketch.compute(0, 1e-3)
    page = read_page(trace_page(run(sketch)))
    assert page.figure_keys == ["timeline"]
    assert "Nothing was sent over the network." in page.text


def test_an_empty_graph_is_still_a_page(read_page):
    page = read_page(trace_page(run(Sketch())))
    assert "Nothing ran" in page.text
    assert page.figure_keys == []


def test_copies_of_a_task_on_other_gpus_share_a_colour(read_page):
    sketch = Sketch()
    for gpu in range(3):
        sketch.compute(gpu, 1.0, label=f"backward-1/{gpu}", after=[sketch.compute(gpu, 0.5, label=f"forward/{gpu}")])
    (figure,) = read_page(trace_page(run(sketch))).figures("timeline")
    assert [(trace["name"], len(trace["x"])) for trace in figure["data"]] == [("forward", 3), ("backward-1", 3)]


def test_more_labels_than_colours_share_one(read_page):
    sketch = Sketch()
    for number in range(12):
        sketch.compute(0, 1e-3 * (number + 1), label=f"layer {number}")
    page = read_page(trace_page(run(sketch)))
    (others,) = page.traces("timeline", "other tasks")
    assert len(others["x"]) == 4


def test_the_same_run_gives_the_same_bytes():
    assert trace_page(run(step(), record_rates=True)) == trace_page(run(step(), record_rates=True))


def test_labels_that_look_like_scripts_stay_text(read_page):
    page, plain = read_page(trace_page(run(step(EVIL)))), read_page(trace_page(run(step())))
    assert page.count("script") == plain.count("script")
    assert EVIL in page.texts
    names = [trace["name"] for trace in page.figures("timeline")[0]["data"]]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in names
