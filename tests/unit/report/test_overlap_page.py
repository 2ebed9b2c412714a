"""The page of an order of communication: what it says, what it draws, and that names stay text."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_profiles import write_profile

from ropewalk.collectives.mixer import Mixer
from ropewalk.hardware import Given, read_cluster
from ropewalk.overlap.link import ExchangeKind
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.study import answer, over_speeds
from ropewalk.report import quantity
from ropewalk.report.overlap import drawn, group_rows, headline, overlap_page
from ropewalk.report.overlap_streams import _strips
from ropewalk.training import NetworkUse, transport_of

RINGS = transport_of("h200")
NO_OVERHEADS = NetworkUse(transport=replace(RINGS, start_up_s=0.0, round_inside_s=0.0, round_across_s=0.0))
"""Operations cost their bytes alone."""


def slow(shape="2x2", nic_bandwidth=1.25e9, nvlink_bandwidth=1e11, **options):
    """Servers with one slow NIC each."""
    given = Given(nics=1, nic_bandwidth=nic_bandwidth, nvlink_bandwidth=nvlink_bandwidth, **options)
    return read_cluster(shape, given)


@pytest.fixture
def asked(tmp_path):
    def ask(name="layer", **options):
        path = write_profile(tmp_path, name=name)
        return OverlapQuestion(str(path), **({"cluster": slow()} | options))

    return ask


def bars(page, key):
    return page.bars(key)


def test_before_and_after_are_drawn_to_one_scale(asked, read_page):
    found = answer(asked())
    page = read_page(overlap_page(found))
    before, after = bars(page, "timeline-buckets"), bars(page, f"timeline-{found.best.name}")
    assert before["span"] == after["span"] == round(found.method("buckets").step_s * 1e9)
    layers, launches = found.tensors.layers, found.method("buckets").launches
    assert len(before["start"]) == 2 * layers + launches
    last = max(start + length for start, length in zip(after["start"], after["length"], strict=True))
    assert last == pytest.approx(found.best.step_s * 1e9, abs=2)


def test_bars_are_computing_and_waiting_and_the_bound_is_a_line(asked, read_page):
    found = answer(asked())
    page = read_page(overlap_page(found))
    (figure,) = page.figures("ways")
    computing, waiting = figure["data"]
    assert [a + b for a, b in zip(computing["x"], waiting["x"], strict=True)] == pytest.approx(
        [seconds for seconds, _ in sorted({(way.time_s, way.launches) for way in found.methods})]
    )
    names = ", ".join(figure["layout"]["yaxis"]["ticktext"]).split(", ")
    assert sorted(names) == sorted(way.name for way in found.methods), "equal bars share a row"
    assert figure["layout"]["shapes"][0]["x0"] == found.bounds.step_s
    assert "25 MiB buckets as PyTorch DDP makes them" in page.text


def test_the_headline_says_the_gain_or_that_there_is_none(asked):
    assert "faster than with DDP's buckets" in headline(answer(asked()))
    fast = answer(asked(cluster=slow(nic_bandwidth=1e13, nvlink_bandwidth=1e13), network=NO_OVERHEADS))
    assert "under any order" in headline(fast)


def test_speeds_are_shown_where_there_are_any(asked, read_page):
    question = asked()
    found = answer(question)
    speeds = over_speeds(question, (1.0, 100.0))
    page = read_page(overlap_page(found, speeds))
    assert set(page.figure_keys) == {"ways", "settings", "streams", "speeds"}
    assert "Simulated on" in page.text
    for trace in page.figures("speeds")[0]["data"]:
        assert min(trace["y"]) >= 1 - 1e-9
    assert "far faster network there is nothing to gain" in page.text
    slow_adders = replace(found, link=replace(found.link, mixer=Mixer(1e7), added=0.75))
    page = read_page(overlap_page(slow_adders, speeds))
    assert "on a faster one reductions still take their time" in page.text
    plain = read_page(overlap_page(found))
    assert set(plain.figure_keys) == {"ways", "settings", "streams"}


def test_parameter_servers_have_a_lane_for_each_way(asked, read_page):
    found = answer(asked(sync=ExchangeKind.PARAMETER_SERVER, partition_bytes=4e6, credit_bytes=8e6))
    page = read_page(overlap_page(found))
    assert page.figure_keys == ["ways"]
    lanes = [lane["name"] for group in bars(page, "timeline-fifo")["lanes"] for lane in group["streams"]]
    assert lanes == ["compute", "push", "pull"]


def test_every_tensor_is_in_one_group(asked):
    found = answer(asked())
    assert sum(row.count for row in group_rows(found)) == len(found.tensors)
    assert sum(row.size_bytes for row in group_rows(found)) == pytest.approx(found.tensors.total_bytes)
    assert drawn(found)[0].name == "buckets"


def test_the_same_answer_gives_the_same_bytes_and_names_are_only_text(asked):
    evil = "<script>alert(1)</script>"
    assert overlap_page(answer(asked())) == overlap_page(answer(asked()))
    assert evil not in overlap_page(answer(asked(evil)))


def test_three_overlaps_stand_one_above_the_other_to_one_clock(asked, read_page):
    found = answer(asked(), simulate=False)
    found = replace(found, link=replace(found.link, mixer=Mixer(5e8), added=0.75))
    plan = found.streams
    page = read_page(overlap_page(found))
    drawn = bars(page, "timeline-overlaps")
    names = ["no overlap", "mixing", "broadcasting", "computing", "all three"]
    assert [group["name"] for group in drawn["lanes"]] == names
    assert all([lane["name"] for lane in group["streams"]] == ["compute", "wire", "adder"] for group in drawn["lanes"])
    steps = {overlaps: step_s for overlaps, step_s in plan.combinations().items() if sum(overlaps) in (0, 1, 3)}
    assert sorted(group["remark"] for group in drawn["lanes"]) == sorted(map(quantity.seconds, steps.values()))
    assert "mixing is adding what arrives" in page.text
    assert "a step differs a little from the simulated one above" in page.text
    assert drawn["span"] == round(max(plan.combinations().values()) * 1e9)
    ends = [start + length for start, length in zip(drawn["start"], drawn["length"], strict=True)]
    last = max(end for end, row in zip(ends, drawn["row"], strict=True) if row >= 12)
    assert last == pytest.approx(plan.run.step_s * 1e9, rel=1 / 400)
    (figure,) = page.figures("streams")
    assert figure["layout"]["shapes"][0]["x0"] == plan.bounds.step_s
    assert "ByteScheduler, concurrent" in page.text


def test_stripes_keep_the_proportions_of_what_is_too_short_to_draw():
    begin = np.arange(0.0, 1.0, 1e-4)
    strips = _strips({"sending": np.column_stack([begin, begin + 2.5e-5])}, span=1.0)
    assert sum(end - start for _, start, end in strips) == pytest.approx(0.25, abs=0.01)
