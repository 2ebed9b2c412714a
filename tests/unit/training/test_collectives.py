"""Collectives of a training step: named per purpose, chosen by simulation, told in the answer, kept in plans."""

from dataclasses import replace

import pytest

from ropewalk.errors import InputError
from ropewalk.hardware import Given, read_cluster
from ropewalk.sim.level import LevelUse
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.collectives import digest_of
from ropewalk.training.planned import plan_of, question_of

SLOW = read_cluster("4x4", Given(device="a100", nic_bandwidth=1e9, nics=1))
QUESTION = TrainingQuestion("gpt2", SLOW, batch=16)


def with_algorithm(text: str, question: TrainingQuestion = QUESTION, level: str = "flow"):
    return answer(replace(question, network=NetworkUse(algorithm=text, level=LevelUse(level))))


def test_auto_is_faster_where_rings_cross_a_single_nic_too_often_and_reruns_from_its_plan():
    rings, found = with_algorithm("ring"), with_algorithm("auto")
    assert found.statistics.step_time_s < 0.9 * rings.statistics.step_time_s
    (one,) = found.collectives
    assert found.question.network.algorithm == f"data={one.name}" != "ring"
    assert found.chosen.tried[0].algorithm == "ring"
    assert found.chosen.tried[0].seconds == rings.statistics.step_time_s
    plan = plan_of(found)
    again = answer(question_of(plan))
    assert again.statistics.step_time_s == found.statistics.step_time_s == found.chosen.seconds
    assert digest_of(again.collectives) == plan.communication.digest


def test_every_purpose_runs_what_was_named_for_it():
    question = replace(QUESTION, tensor=4)
    found = with_algorithm("data=forest,tensor=mesh", question)
    runs = {(one.purposes, one.act): one for one in found.collectives}
    assert runs[("data",), "all-reduce"].name == "forest"
    assert runs[("data",), "all-reduce"].promise is not None
    assert {one.name for one in found.collectives if one.purposes == ("tensor",)} == {"mesh"}
    told = found.as_json()
    assert {one["name"] for one in told["group_collectives"]} == {"forest", "mesh"}
    assert told["algorithms_tried"] == []


def test_at_the_level_of_packets_rings_stay_unless_something_is_faster_there():
    question = replace(QUESTION, cluster=read_cluster("2x2", Given(device="a100")), batch=4)
    small = replace(question, model="gpt2", sequence=8)
    found, rings = with_algorithm("auto", small, "wire"), with_algorithm("ring", small, "wire")
    assert found.statistics.step_time_s <= rings.statistics.step_time_s


def test_what_does_not_apply_is_refused_with_the_reason_and_what_does():
    with pytest.raises(InputError, match=r"all-reduce of 2 ranks: collective hips needs two levels.*use one of ring"):
        with_algorithm("hips", replace(QUESTION, tensor=2))
    with pytest.raises(InputError, match=r"'gradients' is not a purpose of a step: use one of tensor"):
        with_algorithm("gradients=ring")


def test_a_collective_for_a_purpose_that_the_step_does_not_have_is_noted():
    assert "This step has no collectives for expert." in with_algorithm("expert=direct").notes
