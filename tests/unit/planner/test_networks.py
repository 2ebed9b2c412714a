"""The best strategy on several networks of the same servers, and on as few servers as reach a target."""

import json
from dataclasses import replace

import pytest

from ropewalk.errors import ClusterError, InputError, PlanError
from ropewalk.hardware import on_network, read_cluster
from ropewalk.hardware.bill import network_price
from ropewalk.planner.networks import NetworksQuestion, answer_on_networks
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer

SMALL = Space(server=2, tensor=(1, 2), pipeline=(1,), context=(1,), micro_batch=(1,), zero=(0,), recompute=("none",))
PLAN = PlannerQuestion("gpt2", read_cluster("4x2"), batch=8, sequence=64, space=SMALL)


@pytest.fixture(scope="module")
def beside():
    return answer_on_networks(NetworksQuestion(PLAN, ("own", "rail-only", "wire", "wire:2x50Gbps")))


def test_every_network_has_the_best_strategy_of_its_own_search(beside):
    alone = answer(replace(PLAN, cluster=on_network(PLAN.cluster, "rail-only")))
    found = next(one for one in beside.found if one.name == "rail-only")
    assert found.training.statistics.step_time_s == alone.training.statistics.step_time_s


def test_rows_have_the_price_of_the_network_that_is_built(beside):
    prices = {row.result.name: row.result.price.total for row in beside.comparison.rows}
    assert prices["rail-only"] == network_price(on_network(PLAN.cluster, "rail-only")).total
    assert prices["wire"] < prices["rail-only"] < prices["own"]


def test_ports_are_wired_for_the_strategy_and_never_beat_an_ideal_switch(beside):
    wired = [one for one in beside.found if one.name.startswith("wire")]
    assert len(wired) == 2
    for one in wired:
        assert one.training.question.network.designed is not None
        assert one.training.statistics.step_time_s >= one.planned.bound.seconds


def test_slower_ports_are_unequal_hosts(beside):
    kinds = {row.result.name: row.kind for row in beside.comparison.rows}
    assert kinds["wire:2x50Gbps"] == "unequal hosts"
    assert kinds["wire"] == kinds["rail-only"] == "equal bandwidth"
    assert "unequal hosts" in beside.comparison.verdict


def test_the_one_to_take_is_the_cheapest_of_equal_bandwidth_that_is_about_as_fast_as_any(beside):
    equal = [row.result for row in beside.comparison.rows if row.kind != "unequal hosts"]
    fastest = min(one.step_time_s for one in equal)
    close = [one for one in equal if one.step_time_s <= 1.01 * fastest]
    assert beside.best.name == beside.comparison.pick == min(close, key=lambda one: one.price.total).name


def test_networks_that_do_not_fit_are_refused_all_at_once_before_anything_is_searched():
    with pytest.raises(PlanError) as refused:
        answer_on_networks(NetworksQuestion(PLAN, ("own", "torus:3x3", "leaf-spine:2x2x2", "spaghetti")))
    assert "3 findings" in str(refused.value)


def test_ports_that_cannot_be_wired_are_left_out_with_the_reason():
    three = replace(PLAN, cluster=read_cluster("3x2"), batch=6)
    found = answer_on_networks(NetworksQuestion(three, ("rail-only", "wire")))
    assert [one.name for one in found.found] == ["rail-only"]
    assert "use an even number of servers" in found.missed[0]
    with pytest.raises(InputError, match="use an even number of servers"):
        answer_on_networks(NetworksQuestion(three, ("wire",)))


def test_a_target_takes_as_few_servers_as_reach_it(beside):
    whole = next(one for one in beside.found if one.name == "own").planned.best.seconds
    half = answer(replace(PLAN, cluster=read_cluster("2x2"))).best.seconds
    between = (whole + half) / 2
    found = answer_on_networks(NetworksQuestion(PLAN, ("own", "rail-only"), target=f"{between:.9f}s"))
    assert [one.reached.servers for one in found.found] == [4, 4]
    assert found.best.name == "rail-only"
    assert found.comparison.verdict.startswith("rail-only reaches ")
    assert " with 4 servers (8 GPUs), " in found.comparison.verdict
    assert [one.servers for one in found.found[0].reached.tried] == [1, 2, 4]
    relaxed = answer_on_networks(NetworksQuestion(PLAN, target=f"{half * 1.01:.9f}s"))
    assert relaxed.best.cluster.equal.count == 2


def test_a_target_nobody_reaches_is_refused_with_the_fastest():
    few = replace(PLAN, cluster=read_cluster("2x2"))
    with pytest.raises(PlanError, match=r"no strategy on 2 servers takes less than .*: ask for .* or name a larger"):
        answer_on_networks(NetworksQuestion(few, target="1us"))
    with pytest.raises(PlanError, match="target 1us is not reached on any of own, rail-only"):
        answer_on_networks(NetworksQuestion(few, ("own", "rail-only"), target="1us"))


def test_a_cluster_of_one_size_has_no_fewer_servers():
    broken = replace(PLAN, cluster=replace(PLAN.cluster, failed=("server3",)))
    with pytest.raises(ClusterError, match="server3 failed, so its servers differ: remove the failed parts"):
        answer_on_networks(NetworksQuestion(broken, target="1s"))


def test_the_command_prints_a_verdict_a_table_and_json_and_writes_the_plan_of_the_network_to_take(ropewalk, tmp_path):
    question = ("plan", "gpt2", "--cluster", "2x2", "--batch", 4, "--seq", 64, "--network", "own,rail-only")
    shown = ropewalk(*question, "--plan", tmp_path / "plan.json", "--page", tmp_path / "plan.html")
    assert shown.code == 0, shown.stderr
    assert "rail-only is recommended" in shown.stdout.replace("\n", " ")
    assert "price list mixnet" in shown.stdout
    assert "Networks compared" in (tmp_path / "plan.html").read_text()
    found = json.loads(ropewalk(*question, "--json").stdout)
    assert [row["network"] for row in found["networks"]] == ["own", "rail-only"]
    promised = json.loads(ropewalk("simulate", tmp_path / "plan.json", "--json").stdout)
    assert promised["step_time_s"] == found["networks"][1]["step_time_s"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--network", "rails", "--explain", "tp 2"), "--explain would have no effect"),
        (("--batch", 8, "--network", "rails", "--degree", 4), "--degree would have no effect"),
        (("--batch", 8, "--network", "rails", "--fabric", "torus"), "--fabric would have no effect"),
        (("--batch", 8, "--network", ","), "--network is empty"),
        (("--batch", 8, "--target", "soon"), "not a number with a unit"),
        (("--batch", 8, "--network", "rails", "--prices", "free"), "there is no price list 'free': use one of mixnet"),
    ],
)
def test_options_that_do_not_fit_are_refused(ropewalk, options, message):
    answer = ropewalk("plan", "gpt2", "--cluster", "2x2", *options)
    assert answer.code == 2
    assert message in answer.stderr
