"""The page of a plan: what is drawn, what is said, and that the same plan gives the same page."""

from dataclasses import replace

from tiny_plans import circle, plan_by_hand

from ropewalk.report.design import design_page
from ropewalk.report.design_wiring import draw_wiring


def test_the_page_has_every_part(read_page):
    page = read_page(design_page(plan_by_hand()))
    assert set(page.figure_keys) == {"baselines", "history", "traffic", "load"}
    for part in (
        "Wiring",
        "Traffic",
        "Load of the links",
        "Timeline of a step",
        "How it was found",
        "Where layers sit",
    ):
        assert part in page.text
    assert "servers 0-5-10-3-… form a ring of 12 (jump +5)" in page.text
    assert "server 0" in page.scripts["timeline-bars"]


def test_all_reduces_and_pairs_are_two_maps(read_page):
    page = read_page(design_page(plan_by_hand()))
    sums, pairs = page.figures("traffic")[0]["data"]
    assert sum(cell is not None for row in sums["z"] for cell in row) == 12 * 4  # jumps 1 and 5, both ways
    assert sum(cell is not None for row in pairs["z"] for cell in row) == 11
    assert pairs["z"][0][1:] == [4e6] * 11


def test_bars_are_ordered_by_time_and_cost_is_the_other_view(read_page):
    page = read_page(design_page(plan_by_hand()))
    times, costs = page.figures("baselines")
    assert times["data"][0]["x"] == sorted(times["data"][0]["x"])
    assert times["data"][0]["customdata"] == ["ideal-switch", "plan", "sip-ml", "fat-tree"]
    assert costs["data"][0]["x"] == [136_000.0, 48_000.0, 68_000.0, 48_000.0]


def test_cables_of_rings_and_of_pairs_are_told_apart():
    svg = str(draw_wiring(circle(12)).svg)
    assert svg.count('<line class="sums"') == 24
    assert svg.count('<line class="pairs"') == 6
    assert "server 0 – server 6 · 6 apart" in svg


def test_a_thousand_servers_are_drawn_as_paths():
    drawing = draw_wiring(circle(1000, (1, 31)))
    assert str(drawing.svg).count("<line") == 500
    assert 'class="sums" d="M' in str(drawing.svg)


def test_the_same_plan_gives_the_same_bytes_and_names_are_only_text():
    evil = "<script>alert(1)</script>"
    assert design_page(plan_by_hand()) == design_page(plan_by_hand())
    assert evil not in design_page(plan_by_hand(evil))


def test_a_plan_without_comparison_or_model_parallel_bytes_has_a_page(read_page):
    answer = plan_by_hand()
    lonely = replace(answer, design=replace(answer.design, baselines={}, notes=()))
    assert "compared with nothing" in read_page(design_page(lonely)).text
