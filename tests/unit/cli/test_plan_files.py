"""One plan file through every command: what one writes the others read, and the promise is kept."""

from __future__ import annotations

import json

import pytest

SMALL = "gpt:layers=4,hidden=256,heads=8,vocabulary=2048"
WRITERS = {
    "data parallel": ("simulate", SMALL, "--seq", 128, "--cluster", "2x2", "--batch", 8),
    "tensor and pipeline": (
        "simulate", SMALL, "--seq", 128, "--cluster", "dgx-h100:1", "--tp", 2, "--pp", 2, "--batch", 16,
        "--rank-order", "tp-pp-dp", "--algorithm", "hierarchical", "--zero", 1,
    ),
    "order of gradients": ("overlap", "vgg16", "--cluster", "2x2", "--bandwidth", "1Gbps", "--batch", 16),
    "stages": ("pipeline", SMALL, "--seq", 128, "--cluster", "1x3", "--batch", 12, "--schedule", "1f1b,zb-h1"),
    "wired": (
        "plan", "vgg16", "--servers", 4, "--degree", 2, "--gpus-per-server", 2, "--device", "a100", "--dtype", "tf32",
        "--budget", 20, "--rounds", 1, "--compare", "none",
    ),
    "with headers": ("simulate", SMALL, "--seq", 128, "--cluster", "2x2", "--level", "wire", "--transport", "tcp"),
}  # fmt: skip
"""Commands that decide something; every one writes the same kind of file."""


@pytest.fixture(params=WRITERS)
def plan(request, ropewalk, tmp_path):
    path = tmp_path / "plan.json"
    written = ropewalk(*WRITERS[request.param], "--plan", path)
    assert written.code == 0, written.stderr
    return path


def test_a_plan_has_the_time_that_was_promised_and_the_same_bytes_again(plan, ropewalk, tmp_path):
    again = ropewalk("simulate", plan, "--json", "--plan", tmp_path / "again.json")
    assert again.code == 0, again.stderr
    assert again.json["step_time_s"] == again.json["promised_step_time_s"] == promised(plan)
    assert (tmp_path / "again.json").read_bytes() == plan.read_bytes()


def test_a_wired_plan_is_simulated_by_classes_as_it_was_promised_unless_somebody_says_otherwise(ropewalk, tmp_path):
    path = tmp_path / "plan.json"
    ropewalk(*WRITERS["wired"], "--plan", path)
    usual, whole = (ropewalk("simulate", path, "--json", *more).json for more in ((), ("--no-symmetry",)))
    assert usual["simulated_tasks"] < usual["tasks"]
    assert whole["simulated_tasks"] == whole["tasks"] == usual["tasks"]
    assert whole["step_time_s"] == pytest.approx(usual["step_time_s"], rel=1e-12)


def test_a_wired_plan_goes_on_without_a_cable_and_what_is_left_is_a_plan(ropewalk, tmp_path):
    path, left = tmp_path / "plan.json", tmp_path / "left.json"
    ropewalk(*WRITERS["wired"], "--plan", path)
    broken = ropewalk("simulate", path, "--failed", "server0-server1", "--json", "--plan", left)
    assert "no cable from server0 to server1: its traffic is routed server0-" in broken.stderr
    assert broken.json["step_time_s"] > broken.json["promised_step_time_s"]
    assert ropewalk("simulate", left, "--json").json["step_time_s"] == broken.json["step_time_s"] == promised(left)


def test_a_plan_on_a_network_that_exists_goes_on_without_a_link_but_not_without_a_gpu(ropewalk, tmp_path):
    path = tmp_path / "plan.json"
    ropewalk("simulate", SMALL, "--seq", 64, "--cluster", "2x2", "--plan", path)
    broken = ropewalk("simulate", path, "--failed", "leaf0-spine1", "--json")
    assert broken.json["step_time_s"] >= broken.json["promised_step_time_s"]
    assert "without leaf0-spine1" in broken.json["fabric"]
    lost = ropewalk("simulate", path, "--failed", "gpu0.1")
    assert (lost.code, lost.stdout) == (2, "")
    assert "without gpu0.1, 3 of the plan's 4 GPUs are left: plan again" in lost.stderr


def test_a_model_has_a_cluster_file_for_what_has_failed(ropewalk):
    refused = ropewalk("simulate", SMALL, "--cluster", "2x2", "--failed", "leaf0-spine1")
    assert refused.code == 2
    assert "list what has failed in a cluster file" in refused.stderr


def test_every_command_reads_a_plan(plan, ropewalk):
    for command in (
        ("fabric", plan),
        ("collective", "allreduce", plan, "--group", "data", "--no-compare"),
        ("export", plan, "--to", "cluster", "--output", plan.with_name("cluster.yaml")),
    ):
        answer = ropewalk(*command)
        assert answer.code == 0, answer.stderr
    on_its_cluster = ropewalk("simulate", SMALL, "--seq", 128, "--cluster", plan)
    assert on_its_cluster.code == 0, on_its_cluster.stderr


def test_a_plan_at_another_level_says_what_was_promised(plan, ropewalk):
    answer = ropewalk("simulate", plan, "--level", "packet")
    assert answer.code == 0, answer.stderr
    assert "the plan predicted" in answer.stdout
    assert "At packet level" in answer.stdout


def test_what_a_plan_has_decided_cannot_be_given_again(plan, ropewalk):
    for option in (("--tp", 2), ("--cluster", "4x8"), ("--batch", 3), ("--bandwidth", "10Gbps")):
        refused = ropewalk("simulate", plan, *option)
        assert refused.code == 2
        assert f"{option[0]} would have no effect: the plan fixes it" in refused.stderr
    assert "is a plan and already fixes it" in ropewalk("fabric", plan, "--bandwidth", "10Gbps").stderr


def test_a_damaged_plan_is_refused_whole(plan, ropewalk, tmp_path):
    document = json.loads(plan.read_text())
    document["strategy"]["tensor"] = "all"
    document["colour"] = "red"
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(document))
    for command in (("simulate", broken, "--page", tmp_path / "page.html"), ("fabric", broken)):
        refused = ropewalk(*command)
        assert refused.code == 2
        assert "colour: unknown entry" in refused.stderr
        assert "strategy.tensor is 'all': give a whole number" in refused.stderr
    assert not (tmp_path / "page.html").exists()


def test_a_group_that_a_plan_does_not_have_is_refused(ropewalk, tmp_path):
    path = tmp_path / "plan.json"
    ropewalk(*WRITERS["data parallel"], "--plan", path)
    assert "no groups for 'tensor'" in ropewalk("collective", "allreduce", path, "--group", "tensor").stderr
    assert "has 1 data groups" in ropewalk("collective", "allreduce", path, "--group", "data:7").stderr


def test_a_collective_is_put_into_a_plan_with_the_time_it_then_has(ropewalk, tmp_path):
    before, after = tmp_path / "plan.json", tmp_path / "forest.json"
    ropewalk(*WRITERS["data parallel"], "--plan", before)
    made = ropewalk("collective", "allreduce", before, "--group", "data", "--no-compare", "--plan", after)
    assert made.code == 0, made.stderr
    assert json.loads(after.read_text())["communication"]["algorithm"] == "data=forest"
    again = ropewalk("simulate", after, "--json")
    assert again.json["step_time_s"] == promised(after)
    refused = ropewalk("collective", "allreduce", "torus:2x2", "--plan", tmp_path / "none.json")
    assert refused.code == 2
    assert "--plan needs a plan and one of its groups" in refused.stderr


def test_a_plan_whose_collectives_are_made_differently_now_says_so(ropewalk, tmp_path):
    path = tmp_path / "plan.json"
    ropewalk(*WRITERS["data parallel"], "--plan", path)
    what_if = ((), ("--level", "packet"), ("--no-symmetry",), ("--jitter", 0.03), ("--straggler", "1:2"))
    assert not any("built differently" in ropewalk("simulate", path, *more).stdout for more in what_if)
    document = json.loads(path.read_text())
    document["communication"]["digest"] = "0" * 64
    path.write_text(json.dumps(document))
    assert "built differently than by ropewalk" in ropewalk("simulate", path).stdout


def test_no_command_writes_over_the_plan_it_reads_or_one_output_over_the_other(ropewalk, tmp_path):
    path, twice = tmp_path / "plan.json", tmp_path / "twice.json"
    ropewalk(*WRITERS["wired"], "--plan", path)
    before = path.read_bytes()
    for command in (
        ("simulate", path, "--plan", path),
        ("simulate", SMALL, "--cluster", path, "--plan", path),
        ("pipeline", SMALL, "--cluster", path, "--plan", path),
        ("overlap", SMALL, "--cluster", path, "--plan", path),
        ("plan", "--from", path, "--plan", path),
        ("fabric", path, "--page", path),
        ("collective", "allreduce", path, "--export", path),
        ("export", path, "--to", "cluster", "--output", path),
    ):
        refused = ropewalk(*command)
        assert (refused.code, path.read_bytes()) == (2, before)
        assert f"cannot write {path}: this command reads it: choose another path" in refused.stderr
    for command in (
        ("overlap", SMALL, "--plan", twice, "--page", twice),
        ("pipeline", SMALL, "--plan", twice, "--csv", twice),
        ("plan", "vgg16", "--plan", twice, "--patch", twice),
        ("collective", "allreduce", "ring:4", "--export", twice, "--export", twice),
    ):
        refused = ropewalk(*command)
        assert (refused.code, twice.exists()) == (2, False)
        assert "another output is written to it: choose another path" in refused.stderr


def test_a_plan_is_no_model_and_a_rerun_takes_no_other_question(ropewalk, tmp_path):
    path = tmp_path / "plan.json"
    ropewalk(*WRITERS["wired"], "--plan", path)
    for command in ("overlap", "pipeline", "plan", "cost"):
        refused = ropewalk(command, path)
        assert refused.code == 2
        assert f"{path} is a plan, not a model" in refused.stderr
    refused = ropewalk("plan", "--from", path, "--servers", 8, "--budget", 5)
    assert refused.code == 2
    assert "--servers, --budget would have no effect" in refused.stderr
    assert "fixes the question" in refused.stderr
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"study": {}}))
    assert "lost the question it answers" in ropewalk("plan", "--from", path).stderr


def test_micro_batches_that_no_memory_holds_are_refused(ropewalk):
    refused = ropewalk("simulate", SMALL, "--cluster", "1x2", "--pp", 2, "--batch", 10**9, "--micro-batch", 1)
    assert refused.code == 2
    assert "1000000000 micro-batches are too many" in refused.stderr


def promised(path) -> float:
    return json.loads(path.read_text())["prediction"]["step_time_s"]
