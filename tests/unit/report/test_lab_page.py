"""The page of a run on a lab shows where prediction and measurement part, every link and every flow."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_labs import LINK, answer_of_slow_link

from ropewalk import palette
from ropewalk.lab.taken import RoutesTaken
from ropewalk.report.colours import COMPUTE_PHASES
from ropewalk.report.lab import lab_page


def test_the_page_names_the_link_on_which_they_part_and_draws_its_curves(read_page):
    page = lab_page(answer_of_slow_link(part=0.5, taken=RoutesTaken(2, 30, ())))
    assert f"They diverge on {LINK.replace('>', '&gt;')}" in page
    assert "Every flow took its route" in page
    (figure,) = read_page(page).figures("link")
    predicted, measured = figure["data"]
    assert max(predicted["x"]) == pytest.approx(3.0)
    assert max(measured["x"]) == pytest.approx(4.0)


def test_computing_is_coloured_by_its_pass_and_transfers_by_their_label(read_page):
    found = answer_of_slow_link()
    graph = found.predicted.graph
    labelled = replace(graph, labels=("layer 0 forward", "gradients"), label=np.array([0, 1]))
    page = read_page(lab_page(replace(found, predicted=replace(found.predicted, graph=labelled))))
    (figure,) = page.figures("measured")
    colour = {bars["name"]: bars["marker"]["color"] for bars in figure["data"]}
    assert colour == {"forward": COMPUTE_PHASES["forward"].light, "gradients": palette.AMBER.light}
    assert "layer 0 forward" in figure["data"][0]["customdata"][0]


def test_the_error_of_every_flow_is_sorted_and_the_fabric_is_drawn_twice(read_page):
    page = lab_page(answer_of_slow_link(part=0.5))
    sorted_view, against = read_page(page).figures("flows")
    assert sorted_view["data"][1]["y"] == pytest.approx([0.0, 1.0])
    assert against["data"][1]["x"] == pytest.approx([2.0, 3.0])
    assert against["data"][1]["y"] == pytest.approx([2.0, 4.0])
    assert page.count('<svg class="fabric heat"') == 2
