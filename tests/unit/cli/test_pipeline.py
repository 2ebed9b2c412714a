"""`ropewalk pipeline` from outside: what it prints, what it writes and what it refuses."""

import json
from functools import partial
from inspect import signature

import numpy as np
import pytest
from tiny_profiles import profile_text, write_profile

from ropewalk.cli.pipeline import pipeline_command
from ropewalk.cli.tables import filled
from ropewalk.export.torch_pipeline import read_compute_only
from ropewalk.timetable.named import TIMETABLES

SLOW = ("--bandwidth", "10Gbps", "--nvlink", "10GB/s", "--batch", 64)


@pytest.fixture
def run(ropewalk):
    return partial(ropewalk, "pipeline")


def test_a_plan_comes_as_json_page_and_schedule_for_pytorch(tmp_path, run):
    page, csv = tmp_path / "page.html", tmp_path / "schedule.csv"
    answer = run(
        write_profile(tmp_path), "--cluster", "2x1", *SLOW, "--schedule", "1f1b,1f1b-deep", "--json", "--page", page,
        "--csv", csv,
    )  # fmt: skip
    assert answer.code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert {"stages", "schedule", "step_time_s", "speedup_over_dp", "memory_bytes", "alternatives"} <= set(found)
    for row in (found, *found["alternatives"]):
        if "memory_bytes" in row:
            average, peak = np.array(row["average_memory_bytes"]), np.array(row["memory_bytes"])
            assert average.min() > 0
            assert (average <= peak).all()
    # A head of 400 MB takes 10 Gbps a third of a second to add up, so the model is cut.
    assert [stage["gpus"] for stage in found["stages"]] == [[0], [1]]
    assert found["stages"][0]["layers"][1] + 1 == found["stages"][1]["layers"][0]
    assert found["speedup_over_dp"] > 2
    estimates = {row["name"]: row["estimated_step_time_s"] for row in found["alternatives"]}
    for name in ("data-parallel", "pipedream", "dapple-released"):
        assert estimates[name] >= found["estimated_step_time_s"]
    simulated = {row["name"]: row["step_time_s"] for row in found["alternatives"]}
    assert found["simulated"]
    assert simulated["data-parallel"] >= found["step_time_s"]
    table = read_compute_only(csv.read_text())
    assert (table.devices, table.micro_batches) == (2, found["micro_batches"])
    assert page.stat().st_size > 100_000
    assert "of the plan" in answer.stderr


@pytest.mark.parametrize("level", ["flow", "packet"])
def test_the_plan_in_the_file_takes_the_time_that_was_promised(tmp_path, run, ropewalk, level):
    """Stages with three replicas and one, in the order that the planner made for them."""
    plan = tmp_path / "plan.json"
    schedules = "1f1b,zb-auto"
    answer = run(
        write_profile(tmp_path), "--cluster", "4x1", *SLOW, "--schedule", schedules, "--level", level, "--plan", plan,
        "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert [stage["replicas"] for stage in found["stages"]] == [3, 1]
    again = ropewalk("simulate", plan, "--json")
    assert again.code == 0, again.stderr
    assert json.loads(again.stdout)["step_time_s"] == found["step_time_s"]


def test_a_thin_network_between_servers_shows_in_the_promise_and_not_in_the_estimate(tmp_path, run):
    def found(fabric):
        answer = run(
            write_profile(tmp_path), "--cluster", "4x1", *SLOW, "--schedule", "1f1b", "--fabric", fabric, "--json"
        )
        assert answer.code == 0, answer.stderr
        return json.loads(answer.stdout)

    wide, thin = found("switch"), found("ring")
    assert thin["estimated_step_time_s"] <= wide["estimated_step_time_s"] * (1 + 1e-9)
    assert thin["step_time_s"] != wide["step_time_s"]


def test_the_table_shows_stages_and_every_other_plan(tmp_path, run):
    answer = run(write_profile(tmp_path), "--cluster", "2x1", *SLOW, "--schedule", "1f1b", "--memory", "16GB")
    assert answer.code == 0, answer.stderr
    for part in ("stage", "replicas", "data-parallel", "pipedream", "dapple-released", "the bottleneck is", "search:"):
        assert part in answer.stdout


def test_the_same_question_has_the_same_answer(tmp_path, run):
    arguments = (write_profile(tmp_path), "--cluster", "2x2", *SLOW, "--schedule", "1f1b,zb-h1", "--json")
    first, second = run(*arguments), run(*arguments)
    assert first.code == 0, first.stderr
    assert first.stdout == second.stdout


def test_a_model_of_the_zoo_is_cut_within_the_memory_of_its_gpu(run):
    answer = run("gpt2", "--seq", 256, "--cluster", "1x2", "--batch", 8, "--schedule", "1f1b", "--json")
    assert answer.code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["model"].startswith("gpt2")
    assert max(found["memory_bytes"]) < 141e9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cluster", "2 by 8"), "a shape such as 4x8"),
        (("--cluster", "0x8"), "a server without GPUs"),
        (("--nics", 3), "do not divide evenly over 3 NICs"),
        (("--buffer", "1MiB"), "--buffer would have no effect"),
        (("--batch", 63), "give a micro-batch that divides it"),
        (("--schedule", "2f2b"), "there is no schedule '2f2b'"),
        (("--recompute", "sometimes"), "write one of never, always, auto"),
        (("--tensor", "two"), "write it like 1,2,4"),
        (("--tensor", "64"), "give a smaller --tensor"),
        (("--memory", "1MB"), "no room besides its workspace of 1 GB: give more memory"),
        (("--memory", "1.01GB"), "no plan of tiny-pbs-8 fits"),
        (("--bandwidth", "25"), "unit"),
        (("--profile-batch", 4), "was measured with 8 samples according to its name"),
        (("--seq", 128), "leave --seq 128 out"),
        (("--optimiser", "lamb"), "there is no optimiser 'lamb'"),
        (("--dtype", "int3"), "there is no precision 'int3'"),
    ],
)
def test_what_cannot_be_planned_exits_with_two_and_a_remedy(tmp_path, run, arguments, message):
    answer = run(write_profile(tmp_path), *arguments)
    assert answer.code == 2
    assert message in answer.stderr


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("node1 -- half a line\n", "line 1: neither a layer nor an edge"),
        (profile_text(2) + "\tnode2 -- node9\n", "line 4: edge to or from node9, which has no line"),
        (
            profile_text(3) + "\tnode3 -- node2\n",
            "line 6: with the edge node3 -- node2 2 layers form a",
        ),
        (profile_text(2).replace("parameter_size", "parameters"), "line 1: parameter_size is missing"),
    ],
)
def test_a_broken_profile_is_refused_with_its_file_and_line(tmp_path, run, lines, message):
    path = tmp_path / "broken-pbs-8.txt"
    path.write_text(lines)
    answer = run(path)
    assert answer.code == 2
    assert str(path) in answer.stderr
    assert message in answer.stderr


def test_a_profile_that_does_not_say_its_batch_asks_for_it(tmp_path, run):
    path = tmp_path / "nameless.txt"
    path.write_text(profile_text(2))
    assert "does not contain its batch size" in run(path).stderr
    answer = run(path, "--profile-batch", 8, "--cluster", "1x2", "--schedule", "1f1b", "--json")
    assert answer.code == 0, answer.stderr


def test_a_plan_of_a_profile_finds_its_batch_in_its_name(tmp_path, run):
    path, plan, page = tmp_path / "nameless.txt", tmp_path / "plan.json", tmp_path / "page.html"
    path.write_text(profile_text(2))
    more = ("--cluster", "1x2", "--schedule", "1f1b", "--plan", plan, "--page", page)
    refused = run(path, "--profile-batch", 8, *more)
    assert refused.code == 2
    assert "rename it to nameless-pbs-8.txt and leave --profile-batch out" in refused.stderr
    assert not plan.exists()
    assert not page.exists()
    assert run(path.rename(tmp_path / "nameless-pbs-8.txt"), *more).code == 0
    assert plan.exists()


def test_a_schedule_for_pytorch_needs_equal_stages(tmp_path, run):
    """One GPU has no pipeline: there is nothing to write, and so no page and no JSON either."""
    csv, page = tmp_path / "schedule.csv", tmp_path / "page.html"
    where = ("--cluster", "1x1", "--batch", 8, "--schedule", "1f1b")
    answer = run(write_profile(tmp_path), *where, "--csv", csv, "--page", page, "--json")
    assert answer.code == 2
    assert "two or more stages with equally many replicas" in answer.stderr
    assert not csv.exists()
    assert not page.exists()
    assert answer.stdout == ""


def test_the_help_names_every_schedule_that_can_be_asked_for_and_no_other():
    text = filled(signature(pipeline_command).parameters["schedule"].default.help)
    assert set(text.partition("auto, or ")[2].rstrip(".").split(", ")) == set(TIMETABLES)


def test_plans_have_no_other_schedule_than_those_asked_for(run, tmp_path):
    """Early backward of another planner would be faster."""
    model = "gpt:layers=2,hidden=512,heads=8,vocabulary=8192", "--seq", 128
    page = tmp_path / "page.html"
    answer = run(
        *model, "--cluster", "4x1", "--bandwidth", "1Gbps", "--batch", 16, "--schedule", "dualpipe", "--json", "--page",
        page,
    )  # fmt: skip
    assert answer.code == 0, answer.stderr
    assert "stage 0, second copy" in page.read_text()
    assert answer.json["schedule"] == "dualpipe"
    others = {row["name"]: row["step_time_s"] for row in answer.json["alternatives"]}
    assert min(second for second in others.values() if second) < answer.json["step_time_s"]
    shares = [stage["share_of_batch"] * stage["replicas"] for key in ("stages", "second_copy") for stage in
              answer.json[key]]  # fmt: skip
    assert shares == [0.5] * len(shares)


def test_a_schedule_more_never_makes_the_answer_slower(run):
    model = (
        "gpt:layers=4,hidden=512,heads=8,vocabulary=1024",
        "--seq",
        128,
        "--cluster",
        "2x2",
        "--bandwidth",
        "1Gbps",
    )
    seconds = []
    for names in ("gpipe", "gpipe,1f1b", "gpipe,1f1b,zb-h1", "gpipe,1f1b,zb-h1,zb-v"):
        answer = run(
            *model, "--cluster", "2x2", "--bandwidth", "1Gbps", "--batch", 16, "--schedule", names, "--json"
        )  # fmt: skip
        assert answer.code == 0, answer.stderr
        assert answer.json["simulated"]
        seconds.append(answer.json["step_time_s"])
    assert seconds == sorted(seconds, reverse=True)
