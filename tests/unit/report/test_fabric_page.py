"""The page of a fabric draws every node, colours links by speed, and says what it leaves out."""

import re

import numpy as np
import pytest

from ropewalk.fabric import BCube, Dgx, Fabric, FabricDraft, FatTree, IdealSwitch, LeafSpine, Ring, Torus
from ropewalk.fabric.checks import facts
from ropewalk.report import fabric_page
from ropewalk.report.drawing import draw
from ropewalk.report.link_classes import by_speed, by_utilisation

EVIL = "<script>alert(1)</script>"


def page_of(fabric: Fabric) -> str:
    return fabric_page(fabric, facts(fabric))


def test_every_host_is_a_disc_every_switch_a_square_every_cable_a_line(read_page):
    page = read_page(page_of(FatTree(4).build()))
    assert (page.count("circle"), page.count("rect"), page.count("line")) == (16, 20, 48)


def test_every_node_shows_its_name(read_page):
    fabric = BCube(3, 2).build()
    page = read_page(page_of(fabric))
    assert set(fabric.node_names) <= set(page.texts)


def test_the_headline_and_the_table_state_the_facts(read_page):
    text = read_page(page_of(Torus((8, 8)).build())).text
    assert "torus:8x8 connects 64 hosts without switches: any two hosts are at most 8 links apart" in text
    assert "Cables 128" in text
    assert "Link bandwidth 100 Gbps" in text


def test_a_page_without_charts_does_not_carry_the_scripts_that_draw_them(read_page):
    html = page_of(Ring(5).build())
    assert "const figure = " not in html
    assert len(html) < 40_000


def test_the_same_fabric_gives_the_same_bytes():
    assert page_of(Torus((4, 4)).build()) == page_of(Torus((4, 4)).build())


def test_links_of_two_speeds_have_two_colours_and_a_legend(read_page):
    fabric = Dgx(2).build()
    page = read_page(page_of(fabric))
    classes = [attributes.get("class") for tag, attributes in page.elements if tag == "line"]
    assert (classes.count("c0"), classes.count("c1")) == (16, 16)
    assert "200\u00a0Gbps" in page.texts
    assert "2.4\u00a0Tbps" in page.texts


def test_links_of_one_speed_need_no_legend():
    assert draw(Ring(4).build()).legend == ()


def test_more_than_six_speeds_share_six_classes():
    draft = FabricDraft("fan", [f"h{number}" for number in range(12)])
    draft.add_switches(["s"], 1)
    draft.add_links(np.arange(12), 12, np.geomspace(1e9, 1e12, 12))
    classes = by_speed(draft.freeze())
    assert len(classes.labels) == 6
    assert set(classes.of_link.tolist()) == set(range(6))


def test_two_cables_between_the_same_switches_are_one_line(read_page):
    fabric = LeafSpine(2, 2, 2, cables=3).build()
    assert read_page(page_of(fabric)).count("line") == 4 + 4


def test_a_link_of_one_direction_is_drawn_dashed_with_its_direction():
    draft = FabricDraft("one way", ["a", "b", "c"])
    draft.add_links([0, 1, 2], [1, 2, 0], 1e9, duplex=False)
    svg = str(draw(draft.freeze()).svg)
    assert svg.count("one-way") == 3
    assert "c → a" in svg


def test_a_large_fabric_is_drawn_in_few_strokes_and_the_page_says_what_is_missing(read_page):
    page = read_page(page_of(IdealSwitch(1_600).build()))
    assert (page.count("circle"), page.count("line")) == (0, 0)
    hosts = next(a["d"] for tag, a in page.elements if tag == "path" and "hosts" in (a.get("class") or ""))
    assert hosts.count("M") == 1_600
    assert "Names are omitted in drawings of more than 1 500 nodes" in page.text


def test_lines_above_the_cap_are_left_out_and_counted():
    drawing = draw(FatTree(8).build(), most_links=100)
    assert str(drawing.svg).count("<line") == 100
    assert drawing.remarks[0].replace("\u202f", " ") == "100 of 384 lines are drawn, sampled evenly."


@pytest.mark.parametrize("fabric", [Ring(2).build(), Torus((1, 2)).build(), IdealSwitch(2).build(), FatTree(2).build()])
def test_the_smallest_fabrics_fit_into_the_box(fabric):
    svg = str(draw(fabric).svg)
    at = [float(number) for number in re.findall(r'c[xy]="([-\d.]+)"', svg)]
    assert len(at) == 2 * fabric.hosts
    assert all(0 <= number <= 1000 for number in at)


def test_names_that_look_like_scripts_stay_text(read_page):
    draft = FabricDraft(EVIL, [EVIL, 'b"onload="x'])
    draft.add_links(0, 1, 1e9)
    page = read_page(page_of(draft.freeze()))
    assert page.count("script") == 1  # our own
    assert page.texts.count(EVIL) >= 1
    svg = next(attributes for tag, attributes in page.elements if tag == "svg")
    assert svg["aria-label"].startswith(EVIL)
    assert not [attributes for _, attributes in page.elements if "onload" in attributes]


def test_busy_links_climb_through_the_classes():
    classes = by_utilisation(np.array([0.0, 0.1, 0.2, 0.5, 0.7, 1.0]))
    assert classes.of_link.tolist() == [0, 1, 2, 3, 4, 5]


def test_of_two_directions_the_busier_one_colours_the_line():
    fabric = Ring(3).build()
    busy = np.zeros(fabric.links)
    busy[1] = 0.9  # the way back of the first cable
    svg = str(draw(fabric, by_utilisation(busy)).svg)
    assert svg.count('class="c5"') == 1
    assert f"{fabric.link_name(1).replace('->', ' → ')} · 90.0" in svg
