"""`ropewalk cluster submit|status|end|…`: the same words and the same JSON from a service and from a state file."""

import json
import re
from functools import partial

import pytest

SMALL = ("--fabric", "leaf-spine:4x4x4", "--gpus-per-server", 2)
TIMES = re.compile(r'("(?:[a-z_]+_at|at|earliest_start_s|expected_end)": )[0-9.e+]+|("owner": )"[^"]*"')


@pytest.fixture
def by_file(ropewalk, tmp_path):
    """Commands on a state file of 16 GPUs."""
    state = tmp_path / "state.json"

    def run(command, *more):
        plant = SMALL if command in ("submit", "what-if") and not state.exists() else ()
        return ropewalk("cluster", command, *more, "--state", state, *plant)

    run.path = state
    return run


@pytest.fixture
def by_service(ropewalk, served, monkeypatch):
    monkeypatch.setenv("ROPEWALK_TOKEN", served.tokens["operate"])
    monkeypatch.setenv("ROPEWALK_SERVICE", served.url)
    return partial(ropewalk, "cluster")


SCRIPT = (
    (0, "submit", "a", "--gpus", 16, "--expected", "2h", "--label", "team=x"),
    (3, "submit", "b", "--gpus", 4, "--user", "ada", "--priority", 2),
    (4, "submit", "c", "--gpus", 17),
    (3, "what-if", "--gpus", 2),
    (0, "queue"),
    (0, "status", "b"),
    (0, "explain", "b"),
    (0, "report", "a", "--step", 40, "--steps", 40, "--took", "16.8s"),
    (2, "report", "b", "--step", 40, "--took", "420ms"),
    (0, "status", "a"),
    (0, "drain", "server:server7", "--note", "fan"),
    (0, "end", "a"),
    (0, "resize", "b", "--gpus", 6),
    (0, "fail", "link:leaf0-spine0"),
    (0, "repair", "link:leaf0-spine0"),
    (0, "restore", "server:server7"),
    (0, "what-if", "--gpus", 2),
    (0, "policy", "ecmp"),
    (0, "policy"),
    (0, "cancel", "b"),
    (0, "status"),
)


def test_a_file_and_a_service_answer_alike(by_file, by_service):
    for code, *words in SCRIPT:
        answers = [run(*words, "--json") for run in (by_file, by_service)]
        assert [one.code for one in answers] == [code, code], (words, answers)
        texts = [TIMES.sub(r"\1\2T", one.stdout) for one in answers]
        assert texts[0] == texts[1], words
        complaints = [one.stderr for one in answers]
        assert complaints[0] == complaints[1]
    events = [[{**json.loads(line), "at": 0, "actor": ""} for line in run("events", "--json").stdout.splitlines()]
              for run in (by_file, by_service)]  # fmt: skip
    assert events[0] == events[1]
    assert [event["seq"] for event in events[0]] == list(range(1, len(events[0]) + 1))


def test_what_people_read_names_what_they_need(by_file):
    by_file("submit", "a", "--gpus", 16)
    waits = by_file("submit", "b\x07", "--gpus", 4)
    assert waits.code == 2
    waits = by_file("submit", "b", "--gpus", 4)
    assert (waits.code, "gpu-shortage: 4 GPUs are requested, 0 are free" in waits.stdout) == (3, True)
    assert "16 of 16 GPUs used" in by_file("status").stdout
    assert "1. b (j2, 4 GPUs)" in by_file("queue").stdout
    assert "is over: failed" in by_file("end", "a", "--outcome", "failed").stdout
    assert "job-started j2" in by_file("events").stdout


def test_a_job_that_ends_for_want_of_circuits_says_what_would_have_kept_it(ropewalk, tmp_path):
    """All four spines of the pods that it is in: without one of them there are no circuits for it."""
    tree = ("--fabric", "fat-tree:8", "--gpus-per-server", 2, "--policy", "ocs-vclos-pods")
    for name, more, became in (("ends", (), "failed"), ("again", ("--requeue",), "requeued")):
        state = ("--state", tmp_path / f"{name}.json")
        assert ropewalk("cluster", "submit", "a", "--gpus", 24, *more, *state, *tree).code == 0
        failed = ropewalk("cluster", "fail", "spine:agg0.0", *state)
        assert f"j1: {became}" in failed.stdout
        assert ("--requeue" in failed.stdout) == (became == "failed")
    started = ropewalk("cluster", "status", "a", *state).stdout
    assert "runs: ocs-pods, contention-free" in started, "in pods that have all their spines"
    assert "agg0" not in started


def test_two_jobs_of_one_name_are_told_apart_by_id(by_file):
    by_file("submit", "a", "--gpus", 2)
    by_file("submit", "a", "--gpus", 2)
    both = by_file("end", "a")
    assert (both.code, "j1, j2" in both.stderr) == (2, True)
    assert by_file("end", "j1").code == 0
    assert by_file("end", "a").code == 0
    gone = by_file("end", "a")
    assert (gone.code, "there is no waiting or running job" in gone.stderr) == (2, True)


def test_a_job_is_held_and_released(by_file, by_service):
    for run in (by_file, by_service):
        assert run("submit", "a", "--gpus", 16).code == 0
        assert run("submit", "b", "--gpus", 4).code == 3
        assert run("hold", "b", "--note", "no data").code == 0
        assert [one["name"] for one in run("queue", "--json").json["held"]] == ["b"]
        assert "no data" in run("status", "b").stdout
        assert run("release", "b").code == 0
        assert run("queue", "--json").json["held"] == []


def test_the_latest_events_are_shown(by_file, by_service):
    for run in (by_file, by_service):
        for name in "abc":
            run("submit", name, "--gpus", 2)
        numbers = [json.loads(line)["seq"] for line in run("events", "--limit", 2, "--json").stdout.splitlines()]
        assert numbers == [5, 6], "of six"
        run("policy", "--backfill", "easy")
        changed = run("events", "--limit", 1).stdout
        assert changed.split(" policy-changed ")[1].startswith("backfill=none->easy")


def test_a_degraded_job_is_called_so_until_it_has_links_again(by_file, by_service):
    for run in (by_file, by_service):
        run("submit", "whole", "--gpus", 16)
        assert "j1: degraded" in run("fail", "spine:spine1").stdout
        for command in (("status", "whole"), ("explain", "whole")):
            said = run(*command).stdout
            assert "clos, no guarantee" in said
            assert "degraded: it has lost links" in said
        assert "clos, no guarantee, degraded" in run("status").stdout
        assert "dedicated links again: j1" in run("repair", "spine:spine1").stdout
        assert "degraded" not in run("status", "whole").stdout


def test_parts_that_a_job_lacks_are_named(by_file, by_service):
    for run in (by_file, by_service):
        run("submit", "first", "--gpus", 16)
        assert run("submit", "whole", "--gpus", 16).code == 3
        run("drain", "server:server0")
        run("end", "first")
        said = run("explain", "whole").stdout
        assert "out of service: server:server0" in said
        assert "return servers to service" in said


def test_a_file_is_not_followed(by_file):
    by_file("submit", "a", "--gpus", 2)
    refused = by_file("events", "--follow")
    assert (refused.code, "for a service" in refused.stderr) == (2, True)


def test_a_state_file_is_of_the_cluster_that_is_described(ropewalk, tmp_path):
    submit = ("cluster", "submit", "a", "--gpus", 2, "--state", tmp_path / "s.json")
    silent = ropewalk(*submit)
    assert (silent.code, "describes its cluster" in silent.stderr, (tmp_path / "s.json").exists()) == (2, True, False)
    assert ropewalk(*submit, *SMALL).code == 0
    assert ropewalk(*submit, *SMALL).code == 0
    other = ropewalk(*submit, "--fabric", "leaf-spine:4x4x8", "--gpus-per-server", 2)
    assert (other.code, "servers 8 there, 16 here" in other.stderr) == (2, True)
    laas = ropewalk(*submit, "--policy", "laas")
    assert (laas.code, "cluster policy" in laas.stderr) == (2, True)
    assert ropewalk("cluster", "policy", "laas", "--state", tmp_path / "s.json").code == 0
    usual = ropewalk(*submit, "--policy", "vclos")
    assert (usual.code, "cluster policy" in usual.stderr) == (2, True), "the usual one is no exception"
    assert ropewalk("cluster", "what-if", "--gpus", 2, "--policy", "laas", "--state", tmp_path / "s.json").code == 0
    assert len(ropewalk("cluster", "status", "--state", tmp_path / "s.json", "--json").json["live"]) == 2


def test_a_service_is_not_described_and_not_asked_beside_a_file(by_service, served, tmp_path):
    for more in (SMALL, ("--policy", "laas"), ("--policy", "vclos"), ("--queue", "edf")):
        refused = by_service("submit", "a", "--gpus", 2, *more)
        assert (refused.code, "leave them out" in refused.stderr) == (2, True), more
    both = by_service("status", "--service", "http://127.0.0.1:1", "--state", tmp_path / "s.json")
    assert (both.code, "one of them" in both.stderr) == (2, True)


def test_a_job_that_starts_leaves_files_for_its_launcher(by_file, tmp_path):
    by_file("submit", "a", "--gpus", 4, "--files", tmp_path / "a")
    assert (tmp_path / "a" / "nodes.txt").read_text() == "server0\nserver1\n"
    assert json.loads((tmp_path / "a" / "links.json").read_text())["job"] == "j1"


def test_a_state_file_is_a_snapshot_for_other_commands_and_is_not_lost_to_them(by_file, ropewalk, tmp_path):
    by_file("submit", "a", "--gpus", 8)
    seen = ropewalk("cluster", "allocate", "--state", by_file.path, "--gpus", 12, "--json")
    assert (seen.code, seen.json["reason"]) == (3, "gpu-shortage")
    lost = ropewalk("cluster", "allocate", "--state", by_file.path, "--gpus", 2, "--save", by_file.path)
    assert (lost.code, "keeps a queue and a history" in lost.stderr) == (2, True)
    assert ropewalk("cluster", "explain", "--state", by_file.path, "--gpus", 12).code == 0


def test_other_commands_ask_under_the_policy_of_the_state_file_unless_told_otherwise(by_file, ropewalk, tmp_path):
    by_file("submit", "a", "--gpus", 2)
    by_file("drain", "spine:spine0", "spine:spine1", "spine:spine2", "spine:spine3")
    assert ropewalk("cluster", "allocate", "--state", by_file.path, "--gpus", 8).code == 3
    by_file("policy", "crux")
    shared = ropewalk("cluster", "allocate", "--state", by_file.path, "--gpus", 8, "--json")
    assert (shared.code, shared.json["stage"]) == (0, "shared")
    assert ropewalk("cluster", "allocate", "--state", by_file.path, "--gpus", 8, "--isolate", "vclos").code == 3
    explained = ropewalk("cluster", "explain", "--state", by_file.path, "--gpus", 8, "--json")
    assert explained.json["placed"] is True
    nobody = ropewalk("cluster", "rules", "b", "--state", by_file.path, "--to", tmp_path / "b")
    assert "no job 'b' runs in the state: name one of j1" in nobody.stderr
    by_file("end", "a")
    nobody = ropewalk("cluster", "rules", "b", "--state", by_file.path, "--to", tmp_path / "b")
    assert "no job 'b' runs in the state, which has none" in nobody.stderr


def test_a_state_file_keeps_optical_switches_and_cores_that_are_out_of_service(ropewalk, tmp_path):
    state = tmp_path / "tree.json"
    tree = ("--fabric", "fat-tree:4", "--gpus-per-server", 1, "--policy", "ocs-vclos")
    assert ropewalk("cluster", "submit", "a", "--gpus", 2, "--state", state, *tree).code == 0
    assert ropewalk("cluster", "drain", "core:ocs0", "--state", state).code == 0
    assert ropewalk("cluster", "fail", "core:core1.0", "--state", state).code == 0
    status = ropewalk("cluster", "status", "--state", state, "--json").json
    assert (status["drained"], status["failed"]) == (["core:ocs0"], ["core:core1.0"])
    back = ropewalk("cluster", "policy", "vclos", "--state", state)
    assert (back.code, "core:ocs0 is out of service, and does not exist under vclos" in back.stderr) == (2, True)
    assert ropewalk("cluster", "restore", "core:ocs0", "--state", state).code == 0
    assert ropewalk("cluster", "policy", "vclos", "--state", state).code == 0
    status = ropewalk("cluster", "status", "--state", state, "--json").json
    assert (status["drained"], status["failed"]) == ([], ["core:core1.0"])


def test_a_snapshot_of_allocate_is_taken_over(ropewalk, tmp_path):
    state = tmp_path / "old.json"
    ropewalk("cluster", "allocate", *SMALL, "--gpus", 8, "--job", "old", "--save", state)
    unknown = ropewalk("cluster", "status", "--state", state)
    assert (unknown.code, "--fabric" in unknown.stderr) == (2, True)
    assert ropewalk("cluster", "submit", "new", "--gpus", 4, "--state", state, *SMALL).code == 0
    status = ropewalk("cluster", "status", "--state", state, "--json").json
    assert [(one["name"], one["gpus"]) for one in status["live"]] == [("old", 8), ("new", 4)]
    assert all(one["started_at"] > 1.5e9 for one in status["live"]), "it is known from now on, not since 1970"
    assert ropewalk("cluster", "end", "old", "--state", state).code == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: kept["jobs"].append(kept["jobs"][0]),
        lambda kept: kept["jobs"][0].pop("name"),
        lambda kept: kept["plant"].update(gpus_per_server="two"),
        lambda kept: kept.update(settings={"policy": "walls"}),
        lambda kept: kept.update(next_job="x"),
        lambda kept: kept["events"].reverse(),
        lambda kept: kept.pop("drained"),
        lambda kept: kept["jobs"][0]["allocation"].update(gpus=[0, 0]),
        lambda kept: kept["jobs"][0].update(state="asleep"),
    ],
)
def test_a_damaged_state_file_is_a_message_and_stays_as_it_is(by_file, damage):
    by_file("submit", "a", "--gpus", 8)
    by_file("submit", "b", "--gpus", 4)
    document = json.loads(by_file.path.read_text())
    damage(document["controller"])
    by_file.path.write_text(json.dumps(document))
    before = by_file.path.read_bytes()
    answer = by_file("end", "j1")
    assert answer.code == 2, answer
    assert answer.stderr.startswith("ropewalk: ")
    assert by_file.path.read_bytes() == before


def test_without_a_service_or_a_file_it_says_how_to_name_one(ropewalk, monkeypatch):
    monkeypatch.delenv("ROPEWALK_SERVICE", raising=False)
    nobody = ropewalk("cluster", "status")
    assert (nobody.code, "ROPEWALK_SERVICE" in nobody.stderr) == (2, True)
    silent = ropewalk("cluster", "status", "--service", "unix:/nowhere/x.sock")
    assert (silent.code, "no service answers" in silent.stderr) == (1, True)


def test_a_token_that_may_not_is_told_so(ropewalk, served, monkeypatch):
    monkeypatch.setenv("ROPEWALK_SERVICE", served.url)
    monkeypatch.delenv("ROPEWALK_TOKEN", raising=False)
    assert ropewalk("cluster", "status").code == 2
    monkeypatch.setenv("ROPEWALK_TOKEN", served.tokens["read"])
    assert ropewalk("cluster", "status").code == 0
    refused = ropewalk("cluster", "drain", "server:server0")
    assert (refused.code, "role operate" in refused.stderr) == (2, True)


def test_a_job_is_held_to_the_step_time_of_its_plan(by_file, ropewalk, tmp_path):
    plan = tmp_path / "plan.json"
    ropewalk(
        "simulate", "gpt:layers=2,hidden=64,heads=4,vocabulary=512", "--seq", 64, "--cluster", "2x2", "--plan", plan
    )
    promised = json.loads(plan.read_text())["prediction"]["step_time_s"]
    other = by_file("submit", "a", "--gpus", 2, "--plan", plan)
    assert (other.code, "is for 4 GPUs, and the job asks for 2: give --gpus 4" in other.stderr) == (2, True)
    started = json.loads(by_file("submit", "a", "--gpus", 4, "--plan", plan, "--json").stdout)
    assert started["speed"]["promised_step_s"] == promised
    assert "it has not reported its speed" in by_file("status", "a").stdout
    said = by_file("report", "a", "--step", 10, "--steps", 10, "--took", f"{promised * 20:.9f}s").stdout
    assert "100.0 % longer than promised" in said
    assert "(+100 %)" in by_file("status").stdout
