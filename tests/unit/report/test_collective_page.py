"""The page of a collective shows the cut, the trees and every schedule, and says what it leaves out."""

import re
from dataclasses import replace

import pytest

from ropewalk import synthesis
from ropewalk.execute.runner import RunReport, RunRow
from ropewalk.fabric import Dgx, FabricDraft, IdealSwitch, Mesh, Ring, Torus
from ropewalk.report import collective_page
from ropewalk.report.collective_study import IN_HALVES, collective_study_page
from ropewalk.report.cut_drawing import draw_cut
from ropewalk.report.tree_drawing import chosen, draw_trees, shape_of
from ropewalk.synthesis import CollectiveQuestion

EVIL = "<script>alert(1)</script>"
SIZES = (1000, 10**6, 10**9)


@pytest.fixture(scope="module")
def on_mesh():
    return synthesis.answer(CollectiveQuestion("allreduce", Mesh((3, 3), bandwidth=10e9).build(), sizes=SIZES))


def classes(page, tag):
    return [attributes.get("class") or "" for name, attributes in page.elements if name == tag]


def test_the_headline_says_what_is_possible_and_what_reaches_it(on_mesh, read_page):
    text = read_page(collective_page(on_mesh)).text
    assert "The optimum of an all-reduce over 9 ranks of mesh:3x3 is 15 GB/s; a schedule of" in text
    assert "trees reaches it" in text


def test_the_links_across_the_cut_stand_out_and_its_inside_is_marked(on_mesh, read_page):
    page = read_page(collective_page(on_mesh))
    # The heaviest cut is around a corner, which has two links.
    assert classes(page, "line").count("c1") == 2
    assert "links across the cut (2)" in page.text


def test_every_schedule_has_a_bar_that_ends_before_the_optimum(on_mesh, read_page):
    page = read_page(collective_page(on_mesh))
    (bars,) = page.traces("bandwidth", "bandwidth")
    assert len(bars["x"]) == 1 + sum(other.algbw is not None for other in on_mesh.alternatives)
    assert max(bars["x"]) == bars["x"][0] == pytest.approx(15e9)
    shown = [float(f"{speed:.9g}") for speed in bars["x"]]  # some are equal but for rounding
    assert shown == sorted(shown, reverse=True)


def test_the_fastest_of_each_size_is_marked(on_mesh, read_page):
    page = read_page(collective_page(on_mesh))
    (fastest,) = page.traces("time", "fastest")
    assert fastest["x"] == list(SIZES)
    assert fastest["y"] == [at.seconds for at in on_mesh.by_size]


def test_trees_are_drawn_with_a_line_for_every_branch(read_page):
    answer = synthesis.answer(CollectiveQuestion("broadcast", Ring(5, bandwidth=1e9).build(), compare=False))
    page = read_page(collective_page(answer))
    trees = sum("tree" in css for css in classes(page, "svg"))
    assert trees == 2
    assert page.count("polygon") == 4 * trees
    assert "broadcasts from h0" in page.text


def test_names_beside_ranks_stay_inside_the_picture_of_a_tree():
    answer = synthesis.answer(CollectiveQuestion("broadcast", Dgx(2, 2).build(), compare=False))
    for picture in draw_trees(answer.made.forest):
        left, width = map(float, re.search(r'viewBox="(\S+) \S+ (\S+) ', picture.svg).groups())
        beside = re.findall(r'<text class="beside" x="([0-9.]+)"[^>]*>([^<]*)<', picture.svg)
        assert beside
        assert all(float(x) + 7 * len(name) <= left + width for x, name in beside)


def test_trees_of_more_ranks_than_an_eye_can_follow_are_not_drawn(read_page):
    answer = synthesis.answer(CollectiveQuestion("broadcast", IdealSwitch(65).build(), compare=False))
    page = read_page(collective_page(answer))
    assert page.count("polygon") == 0
    assert "Trees of more than 64 ranks are not drawn" in page.text


def test_a_schedule_alone_has_no_alternatives_and_no_curves(read_page):
    answer = synthesis.answer(CollectiveQuestion("allgather", Ring(4).build(), compare=False))
    page = read_page(collective_page(answer))
    assert page.figure_keys == ["bandwidth"]
    assert "No comparison was made" in page.text


def test_an_all_to_all_has_paths_instead_of_trees(read_page):
    page = read_page(collective_page(synthesis.answer(CollectiveQuestion("alltoall", Ring(4).build(), sizes=SIZES))))
    assert "The trees" not in page.texts
    assert "paths of up to 2 links" in page.text


def test_switches_that_add_up_are_a_bound_without_a_schedule(read_page):
    answer = synthesis.answer(CollectiveQuestion("allreduce", IdealSwitch(4).build(), in_network=True))
    text = read_page(collective_page(answer)).text
    assert "with in-network multicast and reduction" in text
    assert "schedules without it" in text


def test_hosts_outside_the_group_are_drawn_as_relays(read_page):
    answer = synthesis.answer(CollectiveQuestion("allgather", Torus((3, 3)).build(), group=[0, 4, 8], compare=False))
    page = read_page(collective_page(answer))
    assert sum("relay" in css for css in classes(page, "circle")) == 6
    assert "not in the group, forwards" in page.text


def test_branches_between_servers_have_a_colour_of_their_own(read_page):
    page = read_page(
        collective_page(synthesis.answer(CollectiveQuestion("allgather", Dgx(2, 2).build(), compare=False)))
    )
    assert {"near", "far"} <= set(classes(page, "g"))


def test_a_run_is_shown_with_what_differs(on_mesh, read_page):
    rows = (RunRow("int64", 1000, 0.0, 0.0, 1e-3, 1e-3), RunRow("float32", 1000, 0.5, 1e-6, 1e-3, 2e-3))
    page = read_page(collective_page(on_mesh, RunReport("forest", "allreduce", 9, 5, 0, rows)))
    assert "Run in 9 local processes" in page.text
    assert "Some results differ" in page.text
    assert "none, bit for bit" in page.text
    assert "off" in classes(page, "td")


def test_names_that_look_like_scripts_are_text(read_page):
    draft = FabricDraft(EVIL, [EVIL, "b", "c"])
    draft.add_links([0, 1, 2], [1, 2, 0], 1e9)
    html = collective_page(synthesis.answer(CollectiveQuestion("allreduce", draft.freeze(), sizes=SIZES)))
    assert EVIL not in html
    assert EVIL in read_page(html).text


def test_a_fabric_too_large_to_draw_is_left_out():
    assert draw_cut(IdealSwitch(6_000).build(), set(range(6_000)), None) is None


def test_the_cut_of_a_fabric_of_thousands_is_coloured_without_names():
    fabric = IdealSwitch(2_000).build()
    drawing = draw_cut(fabric, set(range(1_000)), None)
    assert len(re.findall('<path class="pen hosts( relay)?"', str(drawing.svg))) == 2


def test_trees_that_are_drawn_alike_have_one_shape_and_come_after_different_ones():
    forest = synthesis.answer(CollectiveQuestion("allgather", Torus((3, 3)).build(), compare=False)).made.forest
    one = forest.trees[0]
    moved = replace(one, root=10 + one.root, branches=tuple(
        replace(branch, parent=10 + branch.parent, child=10 + branch.child) for branch in one.branches))  # fmt: skip
    assert shape_of(one) == shape_of(moved)
    few = chosen(forest.trees, forest.trees[0].root, 4)
    assert few[0].root == forest.trees[0].root
    shapes = [shape_of(tree) for tree in few]
    different = len(set(shapes))
    assert len(set(shapes[:different])) == different


def test_a_study_puts_every_schedule_of_a_fabric_into_a_row(on_mesh, read_page):
    page = read_page(collective_study_page("A study", {"mesh": [on_mesh], EVIL: [on_mesh]}))
    assert page.traces("study", "forest")[0]["x"] == [100.0, 100.0]
    # Reduce-scatter and all-gather in turn reach three quarters of what is possible on a 3x3 mesh.
    assert page.traces("study", IN_HALVES)[0]["x"] == pytest.approx([75.0, 75.0])
    assert "mesh" in page.texts
