"""The page of a run on a lab shows where prediction and measurement part, every link and every flow."""

import pytest
from tiny_labs import LINK, answer_of_slow_link

from ropewalk.lab.taken import RoutesTaken
from ropewalk.report.lab import lab_page


def test_the_page_names_the_link_on_which_they_part_and_draws_its_curves(read_page):
    page = lab_page(answer_of_slow_link(part=0.5, taken=RoutesTaken(2, 30, ())))
    assert f"They diverge on {LINK.replace('>', '&gt;')}" in page
    assert "Every flow took its route" in page
    (figure,) = read_page(page).figures("link")
    predicted, measured = figure["data"]
    assert max(predicted["x"]) == pytest.approx(3.0)
    assert max(measured["x"]) == pytest.approx(4.0)


def test_the_error_of_every_flow_is_sorted_and_the_fabric_is_drawn_twice(read_page):
    page = lab_page(answer_of_slow_link(part=0.5))
    sorted_view, against = read_page(page).figures("flows")
    assert sorted_view["data"][1]["y"] == pytest.approx([0.0, 1.0])
    assert against["data"][1]["x"] == pytest.approx([2.0, 3.0])
    assert against["data"][1]["y"] == pytest.approx([2.0, 4.0])
    assert page.count('<svg class="fabric heat"') == 2
