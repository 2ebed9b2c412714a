"""Two answers beside each other: numbers that both have, and of several networks those of the one to take."""

from __future__ import annotations

from ropewalk.ui.compare import compare


def question(*words):
    return {"command": ["plan"], "arguments": ["gpt2", *words], "command_line": "ropewalk plan gpt2"}


def test_an_answer_for_several_networks_is_compared_by_the_one_to_take():
    several = {
        "pick": "wire",
        "networks": [
            {"network": "own", "step_time_s": 3.0, "strategy": "dp 8"},
            {"network": "wire", "step_time_s": 1.0, "strategy": "dp 16"},
        ],
    }
    one = {"step_time_s": 2.0, "best": {"said": "dp 4, tp 4"}}
    found = compare(question("--network", "own,wire"), question(), (several, one))
    assert (found["first_said"], found["second_said"]) == ("dp 16", "dp 4, tp 4")
    (number,) = found["numbers"]
    assert (number["first"], number["second"], number["better"]) == (1.0, 2.0, False)
    assert found["strands"] == []


def test_answers_that_are_no_documents_share_nothing():
    found = compare(question(), question(), ({"text": "a"}, [1, 2]))
    assert found["numbers"] == found["strands"] == []
    assert (found["first_said"], found["second_said"]) == (None, None)
    assert found["asked"]["differs"] == []


def test_what_an_object_repeats_of_the_numbers_on_top_is_told_once():
    answers = tuple(
        {"step_time_s": at, "best": {"step_time_s": at}, "plain": {"step_time_s": 9 * at}, "exposed_s": {"data": at}}
        for at in (1.0, 2.0)
    )
    found = compare(question(), question(), answers)
    assert [one["name"] for one in found["numbers"]] == ["step_time_s", "plain.step_time_s", "exposed_s.data"]
    assert [one["better"] for one in found["numbers"]] == [False, False, False]
