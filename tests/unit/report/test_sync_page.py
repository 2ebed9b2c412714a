"""The page of a study holds every number of the study, says what it found, and cannot be broken by names."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ropewalk import sync
from ropewalk.report import sync_page
from ropewalk.report.colours import DARK_OF_LIGHT
from ropewalk.report.combinations import combinations
from ropewalk.report.findings import headline, remarks
from ropewalk.sync import SyncQuestion, SyncStudy

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)> %{x} &lt;"


def test_the_same_question_gives_the_same_bytes(small_study):
    assert sync_page(sync.answer(small_study.question)) == sync_page(small_study)


def test_every_simulated_time_is_a_bar_and_every_closed_form_a_mark(small_study, read_page):
    page = read_page(sync_page(small_study))
    (figure,) = page.figures("sync-time")
    bars = [x for trace in figure["data"] if trace["type"] == "bar" for x in trace["x"]]
    flow = [row for row in small_study.rows if row.level == "flow"]
    assert len(flow) == 6
    assert sorted(bars) == sorted(row.sync_time_s for row in flow)
    (marks,) = page.traces("sync-time", "closed form")
    assert sorted(marks["x"]) == sorted(row.closed_form_s for row in flow)
    (ticks,) = page.traces("sync-time", "lower bound")
    assert {x for x in ticks["x"] if x is not None} == {row.lower_bound_s for row in flow}


def test_a_bar_its_mark_and_its_figure_stand_at_the_same_height(small_study, read_page):
    page = read_page(sync_page(small_study))
    (figure,) = page.figures("sync-time")
    bars = [y for trace in figure["data"] if trace["type"] == "bar" for y in trace["y"]]
    (marks,), (values,) = page.traces("sync-time", "closed form"), page.traces("sync-time", "values")
    assert len(set(bars)) == 6
    assert sorted(bars) == sorted(marks["y"]) == sorted(values["y"])


def test_the_published_form_is_drawn_hollow_only_where_it_differs(small_study, read_page):
    (hollow,) = read_page(sync_page(small_study)).traces("sync-time", "published form")
    differing = [row for row in small_study.rows if row.level == "flow" and row.paper_form_s is not None]
    assert [(row.logical, row.physical) for row in differing] == [("mesh", "torus")]
    assert hollow["x"] == [differing[0].paper_form_s]
    assert hollow["marker"]["color"] == "rgba(0,0,0,0)"


def test_the_headline_names_the_fastest_and_compares_it_with_a_ring_on_the_first_fabric(small_study, read_page):
    flow = {(row.logical, row.physical): row.sync_time_s for row in small_study.rows if row.level == "flow"}
    fastest = min(flow, key=lambda key: flow[key])
    assert fastest == ("hips", "torus")
    ratio = flow["ring", "switch"] / flow[fastest]
    expected = f"HiPS on torus:4x4 is fastest: 54.03 ms, {ratio:.1f}× faster than ring on switch:16"
    assert expected in read_page(sync_page(small_study)).text


def test_a_fastest_ring_is_compared_with_the_next_best():
    rows = sync.answer(SyncQuestion(logical=("ring", "ps"), physical=("torus:4x4",))).rows
    assert headline(combinations(rows)).startswith("Ring on torus:4x4 is fastest")
    assert "parameter server on torus:4x4" in headline(combinations(rows))


def test_one_combination_has_nobody_to_be_compared_with():
    rows = sync.answer(SyncQuestion(logical=("mesh",), physical=("switch:4",))).rows
    assert headline(combinations(rows)).startswith("Mesh on switch:4 takes")


def test_the_price_of_hashing_is_said_in_words_and_its_closed_form_is_a_bound(read_page):
    asked = SyncQuestion(
        logical=("mesh", "halving-doubling"), physical=("fat-tree",), hosts=(16,), routing=("dmodk", "ecmp")
    )
    found = sync.answer(asked)
    slow = max((row for row in found.rows if row.level == "flow"), key=lambda row: row.sync_time_s)
    assert slow.routing == "ecmp"
    assert slow.closed_form_is_bound
    page = read_page(sync_page(found))
    assert "Routing matters most for" in page.text
    assert re.search(r"≥ [\d.]+ ms", page.text)
    deviation = (slow.sync_time_s / slow.closed_form_s - 1) * 100
    assert f"+{deviation:.1f} %" in page.text
    assert "ecmp" in "".join(page.figures("sync-time")[0]["layout"]["yaxis"]["ticktext"])


def test_a_large_ratio_turns_the_axis_logarithmic_and_a_small_one_does_not(small_study, read_page):
    near = read_page(sync_page(small_study)).figures("sync-time")[0]["layout"]["xaxis"]
    far = sync.answer(SyncQuestion(logical=("ps", "mesh"), physical=("switch:64",)))
    assert near.get("type") != "log"
    assert read_page(sync_page(far)).figures("sync-time")[0]["layout"]["xaxis"]["type"] == "log"


def test_the_table_has_a_line_for_each_combination(small_study, read_page):
    page = read_page(sync_page(small_study))
    assert page.count("tr") == 1 + 6
    assert sum(tag == "tr" and attributes.get("class") == "best" for tag, attributes in page.elements) == 1


def test_scalability_is_drawn_for_what_is_swept_and_for_nothing_else(small_study, read_page):
    assert read_page(sync_page(small_study)).figure_keys == ["sync-time", "link-load"]
    swept = sync.answer(
        SyncQuestion(logical=("mesh", "hips"), physical=("torus", "switch"), hosts=(4, 16), sizes=(10**6, 10**8))
    )
    page = read_page(sync_page(swept))
    assert page.figure_keys == ["sync-time", "scaling-hosts", "scaling-size", "link-load"]
    views = page.figures("scaling-hosts")
    assert len(views) == 2  # one for each size
    for view, size in zip(views, (10**6, 10**8), strict=True):
        lines = view["data"]
        assert len(lines) == 4  # two logical on two physical topologies
        assert {tuple(line["x"]) for line in lines} == {(4, 16)}
        times = {row.sync_time_s for row in swept.rows if row.level == "flow" and row.size_bytes == size}
        assert {y for line in lines for y in line["y"]} == times
        assert view["layout"]["xaxis"]["type"] == view["layout"]["yaxis"]["type"] == "log"


def test_k_is_a_sweep_where_it_was_asked_for_and_fabrics_without_k_are_level(read_page):
    asked = SyncQuestion(
        logical=("hips",), physical=("bcube", "switch"), hosts=(16, 64), levels=("closed",), axes="all"
    )  # fmt: skip
    page = read_page(sync_page(sync.answer(asked)))
    assert "scaling-axes" in page.figure_keys
    views = page.figures("scaling-axes")
    assert len(views) == 2  # one for each number of hosts
    cube, switch = sorted(views[1]["data"], key=lambda line: line["name"])
    assert cube["x"] == switch["x"] == [1, 2, 3, 6]
    assert cube["y"] == sorted(cube["y"], reverse=True)
    assert len(set(switch["y"])) == 1
    # A sweep over hosts is drawn for one k at a time: those that both sizes have.
    by_hosts = page.figures("scaling-hosts")
    lines = {tuple(line["x"]) for view in by_hosts for line in view["data"] if " on bcube" in line["name"]}
    assert lines == {(16, 64), (16,), (64,)}


def test_k_is_no_sweep_where_families_have_their_usual_shapes(read_page):
    """A torus of 64 hosts has two axes, one of 27 three: still one line over hosts."""
    found = sync.answer(SyncQuestion(logical=("hips",), physical=("torus",), hosts=(27, 64), levels=("closed",)))
    assert {row.axes for row in found.rows} == {2, 3}
    page = read_page(sync_page(found))
    assert "scaling-axes" not in page.figure_keys
    assert [line["x"] for line in page.figures("scaling-hosts")[0]["data"]] == [[27, 64]]


def test_few_link_loads_are_drawn_exactly(small_study, read_page):
    page = read_page(sync_page(small_study))
    row = next(row for row in small_study.rows if row.logical == "hips" and row.physical == "torus")
    (curve,) = page.traces("link-load", f"HiPS on {row.fabric}, {row.routing}", view=1)
    assert max(curve["x"]) == len(row.link_load)
    assert max(curve["y"]) == pytest.approx(row.max_link_share)
    assert "quantiles" not in page.text


def test_very_many_link_loads_are_drawn_through_quantiles_and_the_page_says_so(small_study, read_page):
    load = np.linspace(0.1, 2.0, 50_000)
    row = replace(small_study.rows[1], link_load=load, max_link_share=2.0)
    page = read_page(sync_page(SyncStudy(small_study.question, (row,), ())))
    (trace,) = page.figures("link-load")[0]["data"]
    assert len(trace["x"]) == 400
    assert (max(trace["y"]), min(trace["y"])) == (2.0, 0.1)
    assert (trace["x"][0], trace["x"][-1]) == (1.0, 50_000)
    assert "400 quantiles" in page.text


def test_closed_forms_alone_are_drawn_as_bars_and_the_page_says_that_nothing_was_simulated(read_page):
    page = read_page(sync_page(sync.answer(SyncQuestion(physical=("switch",), hosts=(8,), levels=("closed",)))))
    assert "nothing was simulated" in page.text
    bars = [x for trace in page.figures("sync-time")[0]["data"] if trace["type"] == "bar" for x in trace["x"]]
    assert len(bars) == 5
    assert page.traces("sync-time", "closed form")[0]["x"] == []


def test_every_fabric_is_drawn_once_with_all_its_hosts(small_study, read_page):
    page = read_page(sync_page(small_study))
    assert page.count("svg") == 2
    assert page.count("circle") == 32
    assert page.count("rect") == 1


def test_a_fabric_file_of_the_study_is_drawn_too(tmp_path, read_page):
    path = tmp_path / "rack.yaml"
    links = "".join(f"  - {{from: h{number}, to: tor, bandwidth: 40Gbps}}\n" for number in range(3))
    path.write_text(f"name: rack\nhosts: [h0, h1, h2]\nswitches: [{{name: tor, level: 1}}]\nlinks:\n{links}")
    page = read_page(sync_page(sync.answer(SyncQuestion(logical=("mesh",), physical=(str(path),)))))
    assert (page.count("svg"), page.count("circle"), page.count("rect")) == (1, 3, 1)


def test_names_that_look_like_scripts_stay_text(small_study, read_page):
    plain = read_page(sync_page(small_study))
    rows = tuple(replace(row, fabric=EVIL, physical=EVIL) for row in small_study.rows)
    page = read_page(sync_page(SyncStudy(small_study.question, rows, (EVIL,))))
    assert page.count("script") == plain.count("script")
    assert page.count("img") == 0
    assert EVIL in page.texts
    ticks = page.figures("sync-time")[0]["layout"]["yaxis"]["ticktext"]
    assert all("<" not in tick for tick in ticks)
    assert "&lt;script&gt;" in ticks[0]


def test_no_page_can_ask_for_anything(small_study, read_page):
    html = sync_page(small_study)
    page = read_page(html)
    assert not [attributes for _, attributes in page.elements if "src" in attributes or "href" in attributes]
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert html.count("const figure = ") == 1
    assert len(html) < 1_000_000


def test_every_colour_of_a_figure_has_a_partner_for_dark_pages(small_study, read_page, strings_in):
    page = read_page(sync_page(small_study))
    used = {
        text for key in page.figure_keys for text in strings_in(page.figures(key)) if re.fullmatch("#[0-9a-f]{6}", text)
    }
    assert len(used) > 5
    assert used <= DARK_OF_LIGHT.keys()


def test_a_study_without_rows_is_still_a_page(read_page):
    page = read_page(sync_page(SyncStudy(SyncQuestion(), (), ("nothing was asked",))))
    assert "This study has no combinations" in page.text
    assert "nothing was asked" in page.text
    assert page.figure_keys == []


def test_agreement_to_rounding_is_said_in_words(small_study):
    assert any("agree on all 6 combinations" in remark for remark in remarks(combinations(small_study.rows)))


def test_growth_of_the_fastest_is_said_in_words():
    found = combinations(sync.answer(SyncQuestion(logical=("hips",), physical=("bcube",), hosts=(16, 64))).rows)
    (sentence,) = [remark for remark in remarks(found) if remark.startswith("From 16 to 64 hosts")]
    small, large = (row.time_s for row in found)
    assert f"(+{(large / small - 1) * 100:.1f}\u00a0%)" in sentence
