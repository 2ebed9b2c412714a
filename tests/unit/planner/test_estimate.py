"""The fast estimate: the same answer whatever is known already, candidates as columns, and why not another one."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from ropewalk.errors import PlanError, WorkloadError
from ropewalk.hardware import read_cluster
from ropewalk.planner.described import in_words
from ropewalk.planner.estimate import Networks, estimate
from ropewalk.planner.explain import named
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.workload.files import write_workload
from ropewalk.workload.source import open_workload

QUESTION = PlannerQuestion("gpt2", read_cluster("1x4"), batch=16, sequence=64)


@pytest.fixture(scope="module")
def found():
    return estimate(QUESTION)


def test_the_best_is_the_first_candidate_and_simulated(found):
    listed = found.as_json()["candidates"]
    assert listed["said"][0] == found.best.strategy.said()
    assert listed["simulated"][0]
    assert listed["step_time_s"][0] == found.best.seconds


def test_columns_say_what_strategies_say(found):
    said = [one.strategy.said() for one in (found.best, *found.others)]
    assert [in_words(found.field.columns, at) for at in range(len(said))] == said


def test_every_candidate_has_a_value_in_every_column(found):
    many = len(found.field.seconds)
    for column in found.as_json()["candidates"]["columns"]:
        assert len(column["at"]) == many
        assert set(column["at"]) == set(range(len(column["labels"])))
        assert len(column["words"]) == len(column["labels"])


def test_what_is_known_of_a_network_changes_no_digit():
    networks = Networks()
    first = estimate(QUESTION, networks=networks)
    other = dataclasses.replace(QUESTION, batch=32)
    again = estimate(other, known=first.prices, networks=networks)
    assert again.as_json() == estimate(other).as_json()


def test_layouts_are_shared_between_models_of_one_network_alone():
    networks = Networks()
    use = estimate(QUESTION, networks=networks).prices.use
    here, there = (networks.layouts(read_cluster(name), use) for name in ("1x4", "1x8"))
    assert here
    assert not there


def test_a_row_of_the_table_can_be_asked_about_as_it_is(found):
    for other in found.others:
        asked = other.strategy.said()
        explained = found.explained(asked)
        degrees = named(asked, found.question.space)
        assert degrees["micro_batch"] == other.strategy.micro_batch
        assert explained.sentences
        assert not explained.absent


def test_the_parts_of_another_strategy_add_up_to_its_step(found):
    slower = next(one for one in found.others if one.strategy.pipeline > 1)
    explained = found.explained(slower.strategy.said())
    assert explained.other == slower.strategy.said()
    assert explained.parts[0].name == "computing"
    ours = sum(part.best_s for part in explained.parts)
    theirs = sum(part.other_s for part in explained.parts)
    assert ours == pytest.approx(found.best.seconds, rel=0.05)
    assert theirs > ours
    assert re.search(
        r"^On average a GPU spends \S+ \S+ more (in exposed communication|computing|waiting)", explained.sentences[1]
    )


def test_the_best_one_explains_itself(found):
    assert found.explained(found.best.strategy.said()).sentences == (f"{found.best.strategy.said()} is the answer.",)


def test_what_an_estimate_does_not_look_at_is_said_to_be_left_to_the_search(found):
    assert "a search considers all" in found.explained("tp 3").sentences[-1]


def test_candidates_are_ordered_by_time_behind_the_simulated_ones(found):
    field = found.field
    assert np.all(np.diff(field.seconds[~field.simulated]) >= 0)


def test_a_file_written_for_one_micro_batch_is_planned_with_it_as_the_model_of_the_zoo_is(tmp_path):
    file = tmp_path / "net.yaml"
    write_workload(open_workload("vgg11", 8), file)
    question = PlannerQuestion(str(file), read_cluster("1x4"), batch=64)
    space = Space(micro_batch=(8,))
    written, zoo = estimate(question), estimate(dataclasses.replace(question, model="vgg11", space=space))
    assert set(written.priced.candidates.column("micro_batch").tolist()) == {8}
    assert (written.best.strategy, written.best.seconds) == (zoo.best.strategy, pytest.approx(zoo.best.seconds))
    assert written.mfu == pytest.approx(zoo.mfu)
    with pytest.raises(PlanError, match=r"into micro-batches of 8, for which it was written: .* multiple of 32"):
        estimate(dataclasses.replace(question, batch=20))
    with pytest.raises(WorkloadError, match="fixed at micro-batches of 8"):
        estimate(dataclasses.replace(question, space=Space(micro_batch=(4,))))


def test_samples_that_are_no_sequences_have_no_tokens():
    images = estimate(PlannerQuestion("resnet50", read_cluster("1x2"), batch=16)).as_json()
    assert images["tokens_per_s"] is None
    assert images["samples_per_s"] == pytest.approx(16 / images["step_time_s"])
    text = estimate(QUESTION).as_json()
    assert text["tokens_per_s"] == pytest.approx(64 * text["samples_per_s"])
