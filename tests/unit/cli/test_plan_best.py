"""`ropewalk plan` on a network that exists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PROFILES = Path(__file__).parents[2] / "data" / "profiles"
SMALL = ("plan", "gpt:layers=4,hidden=256,heads=4", "--seq", 128, "--cluster", "2x2", "--batch", 8, "--zero", "0,1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("best")


@pytest.fixture
def answered(ropewalk, folder):
    path = folder / "plan.json"
    if not path.exists():
        answer = ropewalk(
            *SMALL, "--plan", path, "--page", folder / "plan.html", "--explain", "tp 2", "--explain", "tp 3"
        )
        assert answer.code == 0, answer.stderr
        (folder / "stdout").write_text(answer.stdout)
    return (folder / "stdout").read_text(), path


def test_the_answer_names_a_strategy_a_bound_and_what_each_strand_is_worth(answered):
    text, _ = answered
    for words in (
        "per step",
        "bound: no strategy takes less than",
        "choice, alone over the baseline",
        "each below 0.5 % alone: ",
        "all together",
        "runs on:",
    ):
        assert words in text


def test_only_what_fits_is_listed_however_few_strategies_there_are(ropewalk):
    asked = ("plan", PROFILES / "skips-pbs-2.txt", "--cluster", "1x2", "--batch", 4, "--dtype", "fp32")
    answer = ropewalk(*asked, "--pp", 2, "--schedules", "1f1b")
    assert answer.code == 0, answer.stderr
    assert "inf" not in answer.stdout
    assert "pp 2" in answer.stdout


def test_it_says_why_another_strategy_is_not_the_answer(answered):
    text, _ = answered
    assert "why not tp 2?" in text
    assert "The best of" in text or "is the answer" in text
    assert "heads do not split over 3" in text or "No strategy of the space matches" in text


def test_the_plan_keeps_its_promise_and_reruns_to_the_same_bytes(answered, ropewalk):
    _, path = answered
    promised = json.loads(path.read_text())["prediction"]["step_time_s"]
    again = ropewalk("simulate", path, "--json")
    assert again.code == 0, again.stderr
    assert json.loads(again.stdout)["step_time_s"] == promised
    rerun = ropewalk("plan", "--from", path)
    assert rerun.code == 0, rerun.stderr
    assert "reruns to the same plan" in rerun.stderr


def test_what_cannot_be_planned_is_refused_with_a_remedy(ropewalk):
    for options, words in (
        (("plan", "gpt2", "--cluster", "1x8", "--batch", 7, "--tp", 1, "--pp", 1), "multiple of 8"),
        (("plan", "megatron-530b", "--cluster", "1x8", "--batch", 8), "is closest and needs"),
        (("plan", "gpt2", "--cluster", "1x4", "--schedules", "dualpipe"), "two copies"),
        (("plan", "gpt2", "--cluster", "1x4", "--schedules", "1f1b-overlap"), "leave 1f1b-overlap out"),
        (("plan", "gpt2", "--cluster", "1x4", "--schedules", "dualpipev"), "simulate --schedule dualpipev"),
        (("plan", "gpt2", "--cluster", "1x4", "--zero", "7"), "use some of 0, 1, 2, 3"),
        (("plan", "gpt2", "--cluster", "1x4", "--allow", "magic"), "unrunnable"),
        (("plan", "gpt2", "--cluster", "1x4", "--batch", 99999999999999), "give at most 1,000,000,000"),
        (("plan", "gpt2", "--cluster", "1x4", "--budget", 5), "ports to be wired"),
    ):  # fmt: skip
        answer = ropewalk(*options)
        assert answer.code == 2, (options, answer.stdout)
        assert words in answer.stderr, answer.stderr


SHARED = (
    "plan", "deepseek-v2-lite:layers=2,hidden=512,experts_per_layer=4,choices=2", "--stack", "megatron", "--seq", 256,
    "--cluster", "1x4", "--batch", 8, "--micro-batch", 1, "--zero", "0,1", "--tp", "1,2", "--pp", 1,
)  # fmt: skip


def test_what_the_stack_does_is_in_the_answer_and_the_plan_keeps_its_promise(ropewalk, tmp_path):
    path = tmp_path / "plan.json"
    found = ropewalk(
        *SHARED,
        "--ep",
        2,
        "--dtype",
        "fp8-delayed",
        "--fp8-params",
        "--shared-overlap",
        "--no-tp-overlap",
        "--plan",
        path,
    )
    assert found.code == 0, found.stderr
    assert "shared experts overlapped" in found.stdout
    plan = json.loads(path.read_text())
    strategy = plan["strategy"]
    assert [strategy[name] for name in ("shared_overlap", "narrow_weights", "tensor_overlap")] == [True, True, False]
    again = ropewalk("simulate", path, "--json")
    assert again.code == 0, again.stderr
    assert json.loads(again.stdout)["step_time_s"] == plan["prediction"]["step_time_s"]


def test_what_no_strategy_for_the_model_could_have_is_refused_before_the_search(ropewalk):
    refused = ropewalk(*SMALL, "--fp8-params", "--shared-overlap")
    assert refused.code == 2
    for words in (
        "no low-precision weights: give --dtype fp8",
        "keeps full-precision weights: give --stack megatron",
        "leave --shared-overlap out",
    ):
        assert words in refused.stderr
    wide = ropewalk(*SMALL[:-1], "3", "--fp8-params")
    assert wide.code == 2
    assert "zero 3 gathers full-precision weights" in wide.stderr
