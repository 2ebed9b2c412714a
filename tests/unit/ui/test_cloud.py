"""The candidates of an estimate as a figure: filters, a table, and nothing that a name could break out of."""

from __future__ import annotations

import copy
import json
import re

import pytest

from ropewalk.hardware import read_cluster
from ropewalk.planner.estimate import estimate
from ropewalk.planner.question import PlannerQuestion
from ropewalk.ui.cloud import LISTED, cloud


@pytest.fixture(scope="module")
def found():
    return estimate(PlannerQuestion("gpt2", read_cluster("1x4"), batch=16, sequence=64)).as_json()


def test_degrees_that_differ_are_filters_and_every_row_can_be_asked_about(found):
    drawn = cloud(found)
    assert 'aria-label="colour by Tensor"' in drawn
    assert 'data-choose="Why not?"' in drawn
    assert drawn.count("<tr>") == 1 + LISTED


def test_words_of_a_strategy_are_escaped(found):
    hostile = copy.deepcopy(found)
    hostile["candidates"]["columns"][0]["words"] = ["</script><b>x"] * len(found["candidates"]["columns"][0]["words"])
    drawn = cloud(hostile)
    assert "</script><b>" not in drawn
    assert "&lt;/script&gt;" in drawn


def test_what_is_not_drawn_is_counted(found):
    more = copy.deepcopy(found)
    more["counts"]["fit"] = len(found["candidates"]["said"]) + 591
    assert "591 slower ones are not drawn" in cloud(more)
    assert "are not drawn" not in cloud(found)


def test_points_that_need_the_same_memory_are_inside_the_picture(found):
    same = copy.deepcopy(found)
    held = 1.2254999e9  # what is drawn is rounded
    same["candidates"]["memory_bytes"] = [held] * len(same["candidates"]["said"])
    same["best"]["memory_bytes"] = held
    data = json.loads(re.search(r"<script type=.application/json.[^>]*>(.*?)</script>", cloud(same), re.DOTALL)[1])
    low, high = data["whole"]
    assert all(low < memory < high for memory in data["memory"])
