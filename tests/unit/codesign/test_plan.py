"""Plans of tiny clusters, from question to files."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ropewalk import training
from ropewalk.codesign import study
from ropewalk.codesign.baselines import ideal_switch
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.job import job_of
from ropewalk.codesign.judge import Judge
from ropewalk.codesign.planned import plan_of, question_of
from ropewalk.codesign.planner import FEW_SEATINGS
from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.codesign.small_spaces import best_pairs
from ropewalk.errors import InputError, PlanError, StrategyError
from ropewalk.export.wiring import patch_csv, tables_csv
from ropewalk.plans import read_plan, write_plan
from ropewalk.training.planned import question_of as training_question_of

FOUR_LAYERS = "topoopt-dlrm-dedicated:tables=1,rows=100000,width=512,bottom=512x2048,top=512"
"""A table and a linear layer, joined, and a head."""


def question(**changes) -> PlanQuestion:
    """240 samples for each of a few servers of one GPU."""
    hardware = {"servers": 4, "degree": 2, "gpus_per_server": 1}
    names = (*hardware, "bandwidth", "duplex", "single_panel", "prices", "latency_s", "device")
    cluster = published_servers(**hardware | {name: changes.pop(name) for name in names if name in changes})
    usual = {"precision": "tf32", "batch": 240 * cluster.gpus, "compare": (), "budget": 100, "rounds": 2}
    return PlanQuestion(changes.pop("model", FOUR_LAYERS), cluster, **(usual | changes))


WORLDS = {
    "two servers, one cable": question(servers=2, degree=1),
    "three servers, two ports one way": question(servers=3, degree=2, duplex=False),
    "slow ports": question(servers=3, degree=2, duplex=False, bandwidth=1e8),
}


@pytest.mark.parametrize("world", WORLDS)
def test_where_everything_can_be_tried_the_plan_is_the_optimum(world):
    asked = WORLDS[world]
    job = job_of(asked)
    assert job.space.size <= FEW_SEATINGS
    seatings = [job.space.seating(places) for places in product(*job.space.options)]
    judge = Judge(job)
    wirings = {judge.wire(one) for one in seatings}
    optimum = min(time_step(job.step(one), job.network(one, wiring)).seconds for one in seatings for wiring in wirings)
    found = study.answer(asked).design
    assert found.step_time_s == optimum
    assert found.ended == "exhaustive"


@pytest.mark.parametrize("bandwidth", [1e8, 1e9, 12.5e9])
def test_ruling_out_by_the_ideal_switch_loses_no_pair_that_is_best(bandwidth):
    job = job_of(question(bandwidth=bandwidth, degree=3))
    space = job.space
    seatings = {space.seating(places): places for places in product(*space.options)}
    switch = job_of(question(bandwidth=bandwidth, degree=3, latency_s=0.0))
    bound = job.estimate(ideal_switch(switch.site).network)
    wirings = {}
    for seating in seatings:
        wirings.setdefault(job.wire(seating), seating)

    def cost_on(wiring, made_for):
        costs = job.estimate(job.network(made_for, wiring))
        return lambda seating: costs.place(seatings[seating])

    brute = min(min(map(cost_on(wiring, first), seatings)) for wiring, first in wirings.items())
    best = best_pairs(
        list(seatings), rewire=job.wire, cost_on=cost_on, bound=lambda one: bound.place(seatings[one]), keep=3,
        most=10**7,
    )  # fmt: skip
    assert best[0].seconds == pytest.approx(brute, rel=1e-12)
    assert [one.seconds for one in best] == sorted(one.seconds for one in best)


@pytest.mark.parametrize("bandwidth", [1e9, 12.5e9])
def test_six_servers_and_four_layers_are_searched_whole(bandwidth):
    asked = question(servers=6, bandwidth=bandwidth)
    job = job_of(asked)
    seatings = {job.space.seating(places): places for places in product(*job.space.options)}
    # Two duplex ports are one ring over all servers, whatever is sent, and groups of 2 and 3 have only one order.
    (cables,) = {job.wire(one).cables for one in list(seatings)[::500]}
    first = next(iter(seatings))
    wiring = job.wire(first)
    costs = job.estimate(job.network(first, wiring))
    best = min(seatings, key=lambda one: costs.place(seatings[one]))
    found = study.answer(asked).design
    assert found.ended == "enumerated"
    assert found.wiring.cables == cables
    assert found.step_time_s <= time_step(job.step(best), job.network(best, wiring)).seconds


@pytest.fixture(scope="module")
def answer():
    asked = question(
        model="topoopt-dlrm-shared:tables=4,rows=1000,width=64,bottom=64x64x64,top=64x64x64", servers=8, degree=3,
        compare=("all",),
    )  # fmt: skip
    return study.answer(asked)


def test_a_plan_has_what_was_asked_for_and_is_never_slower_than_its_starts(answer):
    design = answer.design
    assert design.step_time_s == min(turn.seconds for turn in design.history)
    assert design.history[0].plane == "start"
    assert (design.wiring.ports_used() <= 3).all()
    assert design.step_time_s == answer.timed.seconds
    assert design.mp_bytes == pytest.approx(answer.demands.pairs.sum())
    assert set(design.baselines) >= {"ideal-switch", "fat-tree", "expander", "sip-ml", "ocs-reconfig"}
    assert design.cost == pytest.approx(8 * 3 * 1008)


def test_what_a_plan_says_it_sends_is_what_its_run_sent(answer):
    sums, pairs = answer.sent()
    assert pairs == pytest.approx(answer.demands.pairs)
    assert sums.sum() == pytest.approx(answer.demands.sum_wire_bytes)
    carried = np.sum(answer.carried())
    assert carried / (sums.sum() + pairs.sum()) == pytest.approx(answer.design.tax)


def test_a_plan_is_the_same_bytes_whenever_it_is_asked_for(answer):
    assert study.answer(answer.design.question).design.dumps() == answer.design.dumps()


def test_a_plan_survives_its_file_and_is_simulated_to_the_time_it_promised(answer, tmp_path):
    made = plan_of(answer)
    write_plan(made, tmp_path / "plan.json")
    again = read_plan(tmp_path / "plan.json")
    assert again == made
    assert question_of(again) == answer.design.question
    simulated = training.answer(training_question_of(again))
    assert simulated.statistics.step_time_s == made.prediction.step_time_s == answer.design.step_time_s
    assert simulated.memory.most == made.prediction.memory_bytes


def test_a_plan_of_another_command_has_no_search_to_run_again(answer):
    with pytest.raises(PlanError, match="made by `ropewalk simulate`"):
        question_of(replace(plan_of(answer), made_by="simulate"))


def test_the_json_has_the_promised_keys(answer):
    record = json.loads(answer.design.dumps())
    assert {
        "step_time_s", "baselines", "topology", "permutations", "degree_allreduce", "degree_mp", "routes", "tax",
        "strategy", "history", "seed",
    } <= set(record)  # fmt: skip
    assert record["topology"]["hosts"] == 8
    assert all(len(link) == 3 for link in record["topology"]["links"])
    assert {"step_time_s", "cost"} <= set(record["baselines"]["fat-tree"])
    assert {"count", "max_hops", "mean_hops"} <= set(record["routes"])


def test_what_is_needed_to_build_it_is_written_line_by_line(answer):
    design = answer.design
    patches = patch_csv(design.wiring).splitlines()
    assert patches[0].startswith("panel,server,port,peer")
    assert len(patches) - 1 == sum(count for _, _, count in design.wiring.cables)
    tables = tables_csv(answer.timed.run.trace.routes).splitlines()
    assert tables[0] == "server,from,to,next,share"
    assert len(tables) > design.routes.count


def test_other_seeds_rules_and_cables_make_plans_too():
    for changes in ({"seed": 3}, {"selection": "paper"}, {"duplex": False}, {"prime_only": True}):
        found = study.answer(question(servers=2, degree=1, **changes)).design
        assert found.step_time_s > 0


def test_odd_duplex_rings_need_one_large_panel():
    with pytest.raises(InputError, match="even number of servers"):
        question(servers=5)
    found = study.answer(question(servers=3, degree=2, single_panel=True)).design
    assert found.wiring.duplex


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"degree": 4}, "give a degree of at most 3"),
        ({"bandwidth": -1.0}, "nic_bandwidth must be above 0"),
        ({"servers": 1}, "whole number from 2 on"),
        ({"selection": "worst"}, "use best or paper"),
        ({"allow": ("magic",)}, "use tensor or expert or pipeline"),
        ({"batch": 0}, "give a multiple of 4, such as 4"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused_with_a_remedy(changes, message):
    with pytest.raises(InputError, match=message):
        question(**changes)


def test_models_that_do_not_exist_or_do_not_fit_are_refused():
    with pytest.raises(InputError, match="not in the zoo"):
        study.answer(question(model="dlrmm"))
    with pytest.raises(StrategyError, match="use 4 servers"):
        study.answer(question(model="candle", servers=2, degree=1))
    with pytest.raises(InputError, match="processes or ray"):
        study.answer(question(), engine="steam")


def test_a_question_with_unknown_entries_is_refused():
    with pytest.raises(StrategyError, match="unknown entry 'colour'"):
        PlanQuestion.from_json({"model": "dlrm", "colour": "red"})


def test_a_plan_whose_sums_run_on_trees_keeps_its_word_when_it_is_simulated_from_its_file(tmp_path):
    """Hops of a millisecond: trees are shallower than rings are long."""
    found = study.answer(
        question(model="topoopt-vgg16-dedicated", servers=6, degree=3, latency_s=1e-3, budget=20, rounds=1)
    )
    assert found.design.collectives == "data=forest"
    job = job_of(found.design.question, found.design.micro_batches)
    seating, wiring = found.design.seating, found.design.wiring
    assert found.design.step_time_s < time_step(job.step(seating), job.network(seating, wiring)).seconds
    write_plan(plan_of(found), tmp_path / "plan.json")
    kept = read_plan(tmp_path / "plan.json")
    assert kept.communication.algorithm == "data=forest"
    again = training.answer(training_question_of(kept))
    assert again.statistics.step_time_s == kept.prediction.step_time_s == found.design.step_time_s


@pytest.mark.parametrize("starts", [3, 1])
def test_very_many_servers_are_searched_from_the_best_of_a_few_wirings_and_the_plan_says_so(monkeypatch, starts):
    asked = PlanQuestion("dlrm", published_servers(8), precision="tf32", budget=20, rounds=1, chains=1, compare=())
    usual = study.answer(asked).design
    monkeypatch.setattr("ropewalk.codesign.planner.VERY_MANY_SERVERS", 8)
    monkeypatch.setattr("ropewalk.codesign.planner.MOST_FROM_SEVERAL", 8 if starts > 1 else 7)
    short = study.answer(asked).design
    said = f"8 servers are many: 4 strategies were wired instead of all, and the search continued from {starts}"
    assert any(said in note for note in short.notes)
    assert sum(turn.plane == "strategy" for turn in short.history) == starts
    assert not any("servers are many" in note for note in usual.notes)
    starts = [turn for turn in short.history if turn.plane == "start"]
    assert 1 < len(starts) <= 4
    assert short.step_time_s <= min(turn.seconds for turn in starts) * (1 + 1e-9)
