"""The page of a plan: what is drawn, what is said, and that the same plan gives the same page."""

import math
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
from tiny_plans import circle, plan_by_hand

from ropewalk.report.design import design_page
from ropewalk.report.design_charts import heat_charts
from ropewalk.report.design_wiring import draw_wiring


def test_the_page_has_every_part(read_page):
    page = read_page(design_page(plan_by_hand()))
    assert set(page.figure_keys) == {"baselines", "history", "traffic-rings", "traffic-pairs", "load"}
    for part in (
        "Wiring",
        "Traffic",
        "Load of the links",
        "Timeline of a step",
        "How it was found",
        "Placement of layers",
    ):
        assert part in page.text
    assert "servers 0-5-10-3-… form a ring of 12 (stride 5)" in page.text
    assert "server 0" in page.scripts["timeline-bars"]


def test_all_reduces_and_pairs_are_two_maps(read_page):
    page = read_page(design_page(plan_by_hand()))
    (sums,), (pairs,) = (page.figures(key)[0]["data"] for key in ("traffic-rings", "traffic-pairs"))
    assert sum(cell is not None for row in sums["z"] for cell in row) == 12 * 4  # jumps 1 and 5, both ways
    assert sum(cell is not None for row in pairs["z"] for cell in row) == 11
    assert pairs["z"][0][1:] == [4e6] * 11


def test_a_map_without_bytes_is_left_out():
    ring = np.eye(4)[[1, 2, 3, 0]] * 1e6
    assert [chart.key for chart in heat_charts(ring, np.zeros((4, 4)))] == ["traffic-rings"]
    assert heat_charts(np.zeros((4, 4)), np.zeros((4, 4))) == []


def test_bars_are_ordered_by_time_and_cost_is_the_other_view(read_page):
    page = read_page(design_page(plan_by_hand()))
    times, costs = page.figures("baselines")
    assert times["data"][0]["x"] == sorted(times["data"][0]["x"])
    assert times["data"][0]["customdata"] == ["ideal-switch", "plan", "sip-ml", "fat-tree"]
    assert costs["data"][0]["x"] == [136_000.0, 48_000.0, 68_000.0, 48_000.0]


def test_every_kind_of_cable_has_a_panel_and_says_what_it_joins():
    drawing = draw_wiring(circle(12))
    assert [kind.words for kind in drawing.kinds] == [
        "servers 0-1-2-3-… form a ring of 12 (stride 1)",
        "servers 0-5-10-3-… form a ring of 12 (stride 5)",
        "servers 0-6 and 5 other pairs have direct cables, for their own traffic or for shorter paths",
    ]
    assert [kind.cables for kind in drawing.kinds] == [12, 12, 6]
    assert len({kind.colour for kind in drawing.kinds}) == 3
    assert str(drawing.svg).count('class="kind all"') == 3
    for panel in drawing.panels:
        assert panel.kind.words in str(panel.svg)


def test_a_server_that_is_pointed_at_names_its_neighbours():
    svg = str(draw_wiring(circle(12)).svg)
    assert "<title>server 0 connects to 1, 5, 6, 7, 11</title>" in svg
    one_way = replace(circle(12), duplex=False, cables=tuple((a, (a + 1) % 12, 1) for a in range(12)))
    assert "<title>server 11 sends to 0, 4</title>" in str(draw_wiring(one_way).svg)


def test_numbers_around_the_circle_do_not_overlap():
    for servers in (16, 128, 512, 1000):
        drawing = draw_wiring(circle(servers, (1, 31 % servers)))
        for svg in (drawing.svg, *(panel.svg for panel in drawing.panels)):
            spots = [(float(x), float(y)) for x, y in re.findall(r'<text x="([0-9.]+)" y="([0-9.]+)"', str(svg))]
            assert all(math.dist(*two) > 20 for two in combinations(spots, 2))
            side = float(re.search(r'viewBox="0 0 (\d+)', str(svg))[1])
            assert all(14 < value < side - 14 for spot in spots for value in spot)


def test_servers_stand_in_the_order_of_their_places_on_the_rings():
    moved = replace(circle(12), cables=()).renumbered([*range(1, 12), 0])
    assert draw_wiring(moved).kinds[0].words == "servers 11-0-1-2-… form a ring of 12 (stride 1)"
    first = re.search(r'<text x="([0-9.]+)" y="([0-9.]+)">(\d+)', str(draw_wiring(moved).svg))
    assert first[3] == "11"


def test_a_thousand_servers_are_a_page_that_opens():
    drawing = draw_wiring(circle(1000, (1, 31)))
    assert len(str(drawing.svg)) < 1_000_000


def test_the_same_plan_gives_the_same_bytes_and_names_are_only_text():
    evil = "<script>alert(1)</script>"
    assert design_page(plan_by_hand()) == design_page(plan_by_hand())
    assert evil not in design_page(plan_by_hand(evil))


def test_a_plan_without_comparison_or_model_parallel_bytes_has_a_page(read_page):
    answer = plan_by_hand()
    lonely = replace(answer, design=replace(answer.design, baselines={}, notes=()))
    assert "No comparison was made" in read_page(design_page(lonely)).text
