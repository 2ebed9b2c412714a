"""The page of a search: what it says, what it draws, and that names are only text."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.hardware import read_cluster
from ropewalk.hardware.bill import network_price
from ropewalk.planner.answer import NearestFit, PlannerAnswer, Rung
from ropewalk.planner.comparison import NetworkResult, compared, hosts_of
from ropewalk.planner.networks import NetworksQuestion, answer_on_networks
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer
from ropewalk.report import colours, planner_points, planner_words
from ropewalk.report.planner import planner_page
from ropewalk.report.planner_points import point_cloud, points_of

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def found() -> PlannerAnswer:
    """A small GPT on four GPUs, with pipelines, sharding and recomputation to choose from."""
    space = Space(tensor=(1, 2), context=(1,), pipeline=(1, 2), micro_batch=(1, 2), zero=(0, 1))
    return answer(PlannerQuestion("gpt2", read_cluster("1x4"), batch=8, sequence=64, space=space))


def test_the_page_has_the_five_numbers_and_every_part(found, read_page):
    page = read_page(planner_page(found, command="ropewalk plan gpt2 --cluster 1x4"))
    assert set(page.figure_keys) == {"ladder", "strands"}
    for name, value in planner_words.numbers(found):
        assert page.as_text(name) in page.text
        assert page.as_text(value) in page.text
    for part in (
        "What is left to gain",
        "All candidates",
        "Gain of each choice",
        "Timeline of the step",
        "Coverage of the search",
        "What runs it",
        "Megatron-LM",
        "ropewalk plan gpt2 --cluster 1x4",
    ):
        assert part in page.text
    assert {"timeline-best-bars", "timeline-plain-bars", "candidates-points"} <= set(page.scripts)


def test_networks_stand_beside_each_other(found, read_page):
    price = network_price(found.question.cluster)
    hosts = hosts_of(found.question.cluster)
    results = [
        NetworkResult(name, found.question.cluster, hosts, seconds, 10.0, None, None, price, "dp 4")
        for name, seconds in ((EVIL, 2.0), ("rail-only", 1.0))
    ]
    page = read_page(planner_page(found, networks=compared(results)))
    assert "networks" in page.figure_keys
    assert "rail-only is recommended" in page.text
    assert EVIL in page.text


def test_a_point_is_said_as_its_strategy_is(found):
    points = points_of(found)
    fit = np.flatnonzero(found.priced.fits)
    whole = [found.priced.candidates.strategy(at) for at in fit if not found.priced.candidates.by_block[at]]
    said = {points.words(at) for at in range(len(points.seconds))}
    assert {strategy.said() for strategy in whole} <= said


def test_points_are_simulated_times_or_bounds_the_fastest_first(found):
    points = points_of(found)
    assert np.all(np.diff(points.seconds) >= 0)
    assert len(points.seconds) == found.counts.fit
    assert points.simulated[0]
    assert points.seconds[0] >= found.best.seconds  # rings; the best has its collectives chosen
    assert found.plain.seconds in points.seconds[points.simulated]


def test_both_timelines_have_one_scale(found, read_page):
    page = read_page(planner_page(found))
    spans = {json.loads(page.scripts[f"timeline-{key}-bars"])["span"] for key in ("best", "plain")}
    assert spans == {round(found.plain_training.run.makespan * 1e9)}


def test_columns_are_text_with_a_digit_per_point(found):
    data = json.loads(point_cloud(found).json)
    tensor = data["columns"][1]
    assert len(tensor["at"]) == len(data["time"]) == len(data["memory"]) == found.counts.fit
    assert set(tensor["at"]) == {"0", "1"}
    assert tensor["words"] == ["", "tp 2"]
    assert tensor["looks"] == [[look.light, look.dark] for look in colours.ramp(2)]
    assert "looks" in data["columns"][3]
    assert data["columns"][3]["looks"] == []  # one context degree: nothing to choose


def test_a_capacity_far_beyond_all_points_does_not_squeeze_them(found):
    data = json.loads(point_cloud(found).json)
    assert data["capacity"] > 3 * max(data["memory"]) > data["whole"][1] > max(data["memory"])


def test_what_a_picture_has_no_room_for_is_counted(found, monkeypatch):
    monkeypatch.setattr(planner_points, "MOST_POINTS", 10)
    assert points_of(found).left_out == found.counts.fit - 10
    assert "slower strategies that fit are not drawn" in point_cloud(found).caption


def test_a_ladder_goes_up_and_has_the_step_in_its_place(found):
    step = found.best.seconds
    rungs = (Rung("low", step / 3, ""), Rung("rings alone", 2 * step, ""))
    rows = planner_words.ladder_rows(replace(found, bound=replace(found.bound, ladder=rungs)))
    assert [row.name for row in rows] == ["low", "found", "rings alone"]
    assert [row.added for row in rows] == pytest.approx([step / 3, 2 * step / 3, step])


def test_a_search_that_was_cut_short_says_how_much_may_be_left(found, read_page):
    bound = replace(found.bound, seconds=found.best.seconds / 1.25, complete=False)
    page = read_page(planner_page(replace(found, bound=bound)))
    assert "this one is 25.0 % above it" in page.text
    assert "is a bound of the" in page.text
    assert "The search ended before" in page.text


def test_what_nearly_fits_is_listed_with_what_it_lacks(found, read_page):
    near = NearestFit(found.best.strategy, found.capacity_bytes + 3e9)
    page = read_page(planner_page(replace(found, nearest=(near,))))
    assert "Closest to fitting" in page.text
    assert "3 GB" in page.text


def test_the_same_answer_gives_the_same_bytes_and_names_are_only_text(found):
    strands = tuple(replace(strand, name=EVIL, about=EVIL) for strand in found.strands)
    evil = replace(found, strands=strands, remarks=(EVIL,), frameworks={"megatron": EVIL})
    page = planner_page(evil, command=EVIL)
    assert page == planner_page(evil, command=EVIL)
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_wired_network_is_drawn_and_its_step_is_the_one_on_the_wiring(read_page):
    space = Space(server=2, tensor=(1,), pipeline=(1,), context=(1,), micro_batch=(1,), zero=(0,), recompute=("none",))
    asked = PlannerQuestion("gpt2", read_cluster("4x2"), batch=8, sequence=64, space=space)
    switched, wired = answer_on_networks(NetworksQuestion(asked, ("own", "wire"))).found
    shown = wired.planned
    assert shown.best.algorithm == wired.training.question.network.algorithm
    assert shown.best.seconds == pytest.approx(wired.training.statistics.step_time_s, rel=1e-9)
    assert shown.best.seconds >= shown.bound.seconds
    page = read_page(planner_page(shown))
    assert "Wiring" in page.text
    assert "On any wiring of these ports, no strategy takes less than" in page.text
    assert "On any wiring" not in planner_page(switched.planned)
