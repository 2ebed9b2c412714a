"""`ropewalk cluster` from outside: what it prints, what it writes and what it refuses."""

import json
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "jobs.csv"
SMALL = ("--fabric", "leaf-spine:4x4x4", "--gpus-per-server", 2)
"""16 GPUs: four leafs of two 2-GPU servers, four spines."""
JOBS = """name,gpus,arrival_s,duration_s,iterations,collective,communication_share,deadline_s
big,8,0,100,100,all-to-all,0.4,1000
wide,8,1,100,100,halving-doubling,0.3,900
late,8,2,50,50,ring,0.2,300
one,1,3,10,10,,,40
"""


@pytest.fixture
def run(ropewalk):
    """The command; a replay of one seed, and without its parts, unless a test asks for more."""

    def called(*words):
        replays = isinstance(words[0], Path) and "--seeds" not in words
        return ropewalk("cluster", *words, *(("--seeds", 1, "--no-apart") if replays else ()))

    return called


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    return path


def test_in_the_example_vclos_waits_for_spines_and_circuits_help(run):
    answer = run(EXAMPLE, "--fabric", "leaf-spine:16x32x32", "--json")
    assert answer.code == 0, answer.stderr
    kinds = answer.json["kinds"]
    assert kinds["ocs-vclos"]["network_fragmentation_events"] < kinds["vclos"]["network_fragmentation_events"]
    assert kinds["ideal"]["mean_jct_s"] <= kinds["ocs-vclos"]["mean_jct_s"] < kinds["vclos"]["mean_jct_s"]
    assert kinds["vclos"]["mean_jct_s"] < kinds["ecmp"]["mean_jct_s"]


def test_a_trace_is_replayed_under_every_policy(jobs, run, tmp_path):
    page = tmp_path / "page.html"
    answer = run(jobs, *SMALL, "--isolate", "vclos", "--queue", "fifo", "--json", "--page", page, "--seeds", 3)
    assert answer.code == 0, answer.stderr
    kinds = answer.json["kinds"]
    assert list(kinds) == ["ecmp", "source", "vclos", "ocs-vclos", "ideal"]
    for kind in kinds.values():
        assert {
            "jobs", "mean_jct_s", "p99_jct_s", "mean_jrt_s", "mean_jwt_s", "contention_ratio", "gpu_utilisation",
            "network_fragmentation_events", "isolation", "routing",
        } <= set(kind)  # fmt: skip
        assert kind["jobs"] == 4
        assert kind["mean_jct_s"] == pytest.approx(kind["mean_jrt_s"] + kind["mean_jwt_s"])
    assert kinds["vclos"]["contention_ratio"] == 0
    assert kinds["vclos"]["circuits"] is None
    assert kinds["ocs-vclos"]["circuits"] == {"jobs": 3, "set_up": 8, "kept": 4, "torn_down": 0}
    assert kinds["vclos"]["mean_jrt_s"] == pytest.approx(kinds["ideal"]["mean_jrt_s"])
    assert kinds["ecmp"]["mean_jrt_s"] > kinds["ideal"]["mean_jrt_s"]
    assert (kinds["vclos"]["isolation"], kinds["ecmp"]["isolation"]) == ("vclos", "none")
    assert answer.json["headline"] in page.read_text()
    assert answer.json["seeds"] == [0, 1, 2]
    assert answer.json["verdict"]["best"] in kinds
    assert "Network and scheduling separately" in page.read_text()


def test_the_table_says_why_jobs_waited(jobs, run):
    answer = run(jobs, *SMALL, "--no-compare")
    assert answer.code == 0, answer.stderr
    assert "vclos" in answer.stdout
    assert "too few GPUs" in answer.stdout
    assert "ideal" not in answer.stdout


def test_isolation_and_routing_choose_what_is_replayed(jobs, run):
    found = run(jobs, *SMALL, "--isolate", "none", "--routing", "ecmp-polarised,balanced", "--no-compare", "--json")
    assert list(found.json["kinds"]) == ["ecmp-polarised", "balanced"]
    found = run(jobs, *SMALL, "--isolate", "vclos-all-divisors,laas", "--no-compare", "--json", "--queue", "smallest")
    assert list(found.json["kinds"]) == ["laas", "vclos-all-divisors"]
    assert found.json["queue"] == "smallest"


def test_queues_change_who_waits(jobs, run):
    def waits(*queue):
        found = run(
            jobs, *SMALL, "--isolate", "none", "--routing", "ideal", "--no-compare", "--json", "--details", *queue
        )
        return {one["name"]: one["jwt_s"] for one in found.json["kinds"]["ideal"]["records"]}

    fifo, smallest, backfilled = waits(), waits("--queue", "smallest"), waits("--backfill")
    assert fifo["late"] > 90
    assert fifo["one"] > 90
    assert smallest["one"] < fifo["one"]
    assert backfilled["late"] == pytest.approx(fifo["late"])
    with_deadlines = waits("--queue", "edf")
    assert with_deadlines["one"] <= fifo["one"]


def test_a_replay_goes_on_from_its_file_to_the_same_numbers(jobs, run, tmp_path):
    kept = tmp_path / "kept.json"
    first = run(jobs, *SMALL, "--no-compare", "--json", "--details", "--resume", kept)
    assert (tmp_path / "kept.vclos.json").exists()
    again = run(jobs, *SMALL, "--no-compare", "--json", "--details", "--resume", kept)
    plain = run(jobs, *SMALL, "--no-compare", "--json", "--details")
    assert first.stdout == again.stdout == plain.stdout


def test_a_spine_that_dies_is_survived_by_failing_over_or_by_starting_again(jobs, run):
    def found(*more):
        asked = run(jobs, *SMALL, "--no-compare", "--json", "--details", *more)
        assert asked.code == 0, asked.stderr
        return {one["name"]: one for one in asked.json["kinds"]["vclos"]["records"]}

    calm, hashed = found(), found("--fail", "spine:spine0@20s-60s")
    moved = found("--fail", "spine:0@20s-60s", "--when-a-link-dies", "re-place")
    assert hashed["big"]["finish_s"] > calm["big"]["finish_s"]
    assert (hashed["big"]["restarts"], moved["big"]["restarts"]) == (0, 1)
    for wrong in ("spine:spine0", "spine:9@20s", "link:leaf0-spine0@9s-3s"):
        assert run(jobs, *SMALL, "--fail", wrong).code == 2
    left_out = run(jobs, *SMALL, "--fail", "link:leaf0-spine0@20s", "--json").json
    assert "ocs-vclos" not in left_out["kinds"]
    assert any("ocs-vclos has no leaf-spine links that could fail" in note for note in left_out["notes"])


def test_allocate_places_and_saves_and_the_next_one_sees_it(run, tmp_path):
    state = tmp_path / "state.json"
    got = run("allocate", *SMALL, "--gpus", 8, "--job", "a", "--save", state, "--prove", "all-to-all", "--json").json
    assert got["placed"] is True
    assert got["gpus_on_leaf"] == [4, 4]
    assert len(got["links"]) == 8
    assert [rank["rank"] for rank in got["rank_order"]] == list(range(8))
    assert [rank["spine"] for rank in got["rank_order"]][:4] == got["spines"]
    assert got["proof"]["contention_free"] is True
    full = run("allocate", *SMALL, "--state", state, "--gpus", 12, "--json")
    assert (full.json["placed"], full.json["reason"], full.code) == (False, "gpu-shortage", 3)
    freed = run("allocate", *SMALL, "--state", state, "--release", "a", "--gpus", 16, "--json").json
    assert freed["placed"] is True
    twice = run("allocate", *SMALL, "--state", state, "--gpus", 2, "--job", "a")
    assert twice.code == 2
    assert "already running" in twice.stderr


def test_a_job_can_simply_end(run, tmp_path):
    state, after = tmp_path / "state.json", tmp_path / "after.json"
    run("allocate", *SMALL, "--gpus", 8, "--job", "a", "--save", state)
    ended = run("allocate", *SMALL, "--state", state, "--release", "a", "--save", after, "--json")
    assert (ended.code, ended.json["released"], ended.json["free_gpus"]) == (0, ["a"], 16)
    assert json.loads(after.read_text())["jobs"] == []
    nothing = run("allocate", *SMALL, "--state", state)
    assert nothing.code == 2
    assert "--release" in nothing.stderr


def test_the_state_is_written_as_prometheus_reads_it(run, tmp_path):
    state, out = tmp_path / "state.json", tmp_path / "cluster.prom"
    run("allocate", *SMALL, "--gpus", 8, "--job", "a", "--save", state, "--metrics", out)
    assert 'ropewalk_cluster_gpus{state="used"} 8' in out.read_text().splitlines()
    run("allocate", *SMALL, "--state", state, "--gpus", 12, "--metrics", out)
    assert 'ropewalk_cluster_jobs_waiting{reason="gpu-shortage"} 1' in out.read_text().splitlines()


def test_a_drained_spine_stops_jobs_across_leafs_and_explain_names_it(run, tmp_path):
    state = tmp_path / "state.json"
    run("allocate", *SMALL, "--gpus", 2, "--save", state, "--drain", "spine:spine1")
    why = run("explain", *SMALL, "--state", state, "--gpus", 8, "--json").json
    assert why["placed"] is True  # on two GPUs of each of four leafs
    state2 = tmp_path / "more.json"
    run("allocate", *SMALL, "--gpus", 2, "--job", "other", "--state", state, "--save", state2,
        "--drain", "link:leaf0-spine0", "--drain", "link:1-2", "--drain", "link:2-3", "--drain", "spine:2")  # fmt: skip
    why = run("explain", *SMALL, "--state", state2, "--gpus", 8)
    assert why.code == 0, why.stderr
    assert "no common spines" in why.stdout
    assert "blocking spines" in why.stdout


def test_explain_refuses_options_of_a_replay_where_nothing_is_replayed(run, tmp_path):
    state = tmp_path / "now.json"
    run("allocate", *SMALL, "--gpus", 2, "--save", state)
    for option in (("--at", "soon"), ("--queue", "fifo"), ("--mix", "cv"), ("--fail", "1s:spine0")):
        refused = run("explain", *SMALL, "--state", state, "--gpus", 8, *option)
        assert (refused.code, refused.stdout) == (2, "")
        assert f"{option[0]} would have no effect: it belongs to a replay" in refused.stderr


def test_explain_says_what_one_job_of_a_trace_waited_for(jobs, run):
    found = run("explain", jobs, *SMALL, "--job", "late", "--json").json
    assert found["reason"] == "gpu-shortage"
    assert found["waited_s"]["gpu-shortage"] > 0
    assert found["start_s"] > found["arrival_s"] == 2.0
    behind = run("explain", jobs, *SMALL, "--job", "one")
    assert "too few GPUs" in behind.stdout
    assert run("explain", jobs, *SMALL, "--job", "nobody").code == 2
    assert run("explain", jobs, *SMALL, "--job", "late", "--at", "9000s").code == 2
    assert run("explain", *SMALL).code == 2


def test_explain_says_what_the_head_of_the_queue_lacked(run, tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "name,gpus,arrival_s,duration_s,model\nfirst,12,0,100,bert\nhead,8,1,50,bert\nsmall,2,2,10,bert\n"
    )  # fmt: skip
    found = run("explain", path, *SMALL, "--job", "small", "--json").json
    assert (found["placed"], found["running"], found["ahead_in_queue"]) == (True, False, ["head"])
    assert found["head_of_queue"]["job"] == "head"
    assert found["head_of_queue"]["reason"] == "gpu-shortage"
    assert found["when_it_was_head"] == []
    told = run("explain", path, *SMALL, "--job", "small").stdout
    assert "small (2 GPUs) could start, but waits behind 1 job ahead of it" in told
    assert "the head of the queue is head (8 GPUs): too few GPUs" in told
    later = run("explain", path, *SMALL, "--job", "small", "--at", "105s", "--json").json
    assert (later["running"], later["head_of_queue"]) == (True, None)
    head = run("explain", path, *SMALL, "--job", "head", "--json").json
    assert [one["at_s"] for one in head["when_it_was_head"]] == [1.0]
    assert "runs on" in run("explain", path, *SMALL, "--job", "first").stdout


def test_explain_knows_parts_that_died_and_jobs_that_moved(run, tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("name,gpus,arrival_s,duration_s,model\nmoved,4,0,100,bert\n")

    def at(when):
        found = run("explain", path, *SMALL, "--job", "moved", "--fail", "leaf:0@20s-900s", "--at", when, "--json").json
        assert (found["running"], found["restarts"]) == (True, 1)
        return found["leafs"]

    assert at("10s") == ["leaf0"]
    assert at("30s") != ["leaf0"]


def test_rules_of_a_job_with_circuits_list_what_optical_switches_join(run, tmp_path):
    state, out = tmp_path / "state.json", tmp_path / "files"
    optical = ("--isolate", "ocs-vclos")
    run("allocate", *SMALL, *optical, "--gpus", 12, "--job", "a", "--save", state)
    answer = run("rules", "a", *SMALL, *optical, "--state", state, "--addresses", "numbered", "--to", out)
    assert answer.code == 0, answer.stderr
    lines = (out / "circuits.csv").read_text().splitlines()
    assert len(lines) > 1
    assert json.loads((out / "circuits.json").read_text())["spine_rules"]
    assert len(json.loads((out / "rules.json").read_text())["leafs"]) >= 3


def test_the_table_of_a_replay_fits_a_terminal_of_eighty_columns(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "jobs.csv"
    path.write_text("name,gpus,arrival_s,duration_s,model\n" + "".join(f"j{n},8,{n},123456,vgg16\n" for n in range(40)))
    told = run(path, *SMALL, "--isolate", "vclos,ocs-vclos,laas,vclos-all-divisors,ocs-vclos-all-divisors").stdout
    assert "…" not in told


def test_jobs_that_are_timed_by_their_models_say_clock_and_stack(run, tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("name,gpus,arrival_s,iterations,model\na,4,0,10,alexnet\n")
    told = " ".join(run(path, *SMALL).stdout.split())
    assert "1 of 1 jobs have simulated steps of their models on h200 at 700 W, eager stack unless a model" in told


def test_rules_are_one_for_every_gpu_on_the_leaf(run, tmp_path):
    state, out = tmp_path / "state.json", tmp_path / "files"
    run("allocate", *SMALL, "--gpus", 8, "--job", "a", "--save", state)
    answer = run("rules", "a", *SMALL, "--state", state, "--addresses", "numbered", "--to", out, "--json")
    assert answer.code == 0, answer.stderr
    rules = json.loads((out / "rules.json").read_text())
    assert [len(leaf["rules"]) for leaf in rules["leafs"]] == [5, 5]
    checked = answer.json["read_back"]
    assert {"rankfile.openmpi", "ranks.csv", "links.csv", "links.json", "rules.json", "addresses.csv"} < set(checked)
    assert sum(name.startswith("sonic/") for name in checked) == 2
    again = run("rules", "a", *SMALL, "--state", state, "--addresses", out / "addresses.csv", "--to", out, "--json")
    assert again.json["read_back"] == [name for name in checked if name != "addresses.csv"]
    assert len((out / "nodes.txt").read_text().split()) == 4
    assert len(list((out / "sonic").iterdir())) == 2
    assert run("rules", "b", *SMALL, "--state", state, "--to", out).code == 2


def test_size_gives_both_of_clos_conditions(run):
    found = run("size", "--ports", 64, "--json").json
    assert (found["rearrangeable"]["gpus"], found["rearrangeable"]["switches"]) == (2048, 96)
    assert (found["strictly non-blocking"]["gpus"], found["strictly non-blocking"]["switches"]) == (1344, 105)
    assert "2048" in run("size").stdout


def test_a_generated_trace_is_the_same_for_the_same_seed_and_can_be_replayed(run, tmp_path):
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    facts = run("generate", a, *SMALL, "--jobs", 12, "--load", 0.7, "--seed", 3, "--json").json
    assert facts["jobs"] == 12
    assert facts["largest_job"] <= 16
    run("generate", b, *SMALL, "--jobs", 12, "--load", 0.7, "--seed", 3)
    assert a.read_bytes() == b.read_bytes()
    assert run(a, *SMALL, "--isolate", "none", "--routing", "ideal", "--no-compare", "--json").code == 0


def test_topology_files_are_clusters_too(jobs, run, tmp_path):
    leafs = tmp_path / "leafs.csv"
    leafs.write_text("server,leaf\n" + "".join(f"s{n},leaf{n // 2}\n" for n in range(8)))
    found = run(jobs, "--fabric", leafs, "--gpus-per-server", 2, "--no-compare", "--json").json
    assert (found["gpus"], found["plant"]) == (16, "leafs.csv")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (JOBS.replace("big,8,", "big,80,"), ("line 2", "80 GPUs", "16")),
        (JOBS.replace("deadline_s", "dead_line"), ("dead_line",)),
        (JOBS.replace("late,8,2", "late,8,-2"), ("line 4", "-2")),
        (JOBS.splitlines()[0] + "\n", ("no job",)),
        ("", ("empty",)),
        (JOBS.replace("one,", "big,"), ("line 5", "line 2")),
        (JOBS.replace("all-to-all", "all-to-none"), ("all-to-none", "big")),
    ],
)
def test_bad_traces_are_refused_with_file_and_line(text, says, run, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    answer = run(path, *SMALL)
    assert answer.code == 2
    assert answer.stdout == ""
    for word in says:
        assert word in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--isolate", "walls"), "vclos"),
        (("--routing", "fastest"), "ecmp"),
        (("--queue", "lifo"), "fifo"),
        (("--backfill", "--backfill-rule", "hard"), "easy"),
        (("--fabric", "torus:4x4"), "leaf-spine"),
        (("--fabric", "leaf-spine:4x4x4", "--gpus-per-server", "3"), "divisor"),
        (("--fabric", "leaf-spine:4x4x4", "--under", "x"), "--under"),
        (("--fabric", "nowhere.conf"), "nowhere.conf"),
    ],
)
def test_bad_options_are_refused_with_the_remedy(options, says, jobs, run):
    answer = run(jobs, *options)
    assert answer.code == 2
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_state_that_is_none_is_refused(run, tmp_path):
    bad = tmp_path / "state.json"
    for text in ("[]", "{}", "no json"):
        bad.write_text(text)
        answer = run("allocate", *SMALL, "--state", bad, "--gpus", 2)
        assert answer.code == 2
        assert "Traceback" not in answer.stderr
    assert run("allocate", *SMALL, "--gpus", 2, "--drain", "cellar:3").code == 2
    assert run("allocate", *SMALL, "--gpus", 2, "--drain", "leaf:77").code == 2
    assert run("allocate", *SMALL, "--gpus", 2, "--drain", "link:0:0").code == 2
    never = run("allocate", *SMALL, "--gpus", 99)
    assert (never.code, "99 GPUs are requested" in never.stdout) == (4, True)


TYPOS = """name,gpus,arrival_s,duration_s,model
a,8,0,100,vgg-16
b,8,1,100,vgg-16
c,8,2,100,vgg16
d,8,3,100,CycleGAN
e,8,4,100,
"""


def test_models_that_are_not_known_are_refused_with_names_that_come_near(run, tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(TYPOS)
    refused = run(jobs, *SMALL, "--no-compare", "--mix", "published")
    assert (refused.code, refused.stdout) == (2, "")
    assert "'CycleGAN', which is unknown" in refused.stderr
    taken = ("--model-as", "CycleGAN=bert")
    assert run(jobs, *SMALL, "--no-compare", "--mix", "published", *taken).code == 0
    nameless = run(jobs, *SMALL, "--no-compare", *taken)
    assert nameless.code == 2
    assert "choose a mix with --mix published" in nameless.stderr
    assert run(jobs, *SMALL, "--no-compare", "--model-as", "CycleGAN").code == 2


def test_what_jobs_train_is_said_first(run, tmp_path):
    jobs, page = tmp_path / "jobs.csv", tmp_path / "page.html"
    jobs.write_text("name,gpus,arrival_s,duration_s,model\na,8,0,100,bert\nb,4,0,50,\nc,8,9,50,alexnet\n")
    asked = (jobs, *SMALL, "--no-compare", "--mix", "published")
    printed = run(*asked, "--page", page)
    assert printed.code == 0, printed.stderr
    first, second, third, *_ = printed.stdout.splitlines()
    assert first == "1 of 3 jobs have published shares of communication: bert"
    assert second.startswith("1 of 3 jobs have simulated steps of their models on h200 at 700 W, eager stack")
    assert third.startswith("1 of 3 jobs have a model of the chosen mix (--mix published): ")
    assert first in page.read_text()
    assert run(*asked, "--json").json["jobs_train"] == [first, second, third]


def test_a_queue_by_deadlines_is_refused_where_no_job_has_one(run, tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(TYPOS.replace("CycleGAN", "bert"))
    refused = run(jobs, *SMALL, "--queue", "edf", "--no-compare")
    assert (refused.code, refused.stdout) == (2, "")
    assert "no job of" in refused.stderr
    assert "or use --queue fifo" in refused.stderr
    assert run(jobs, *SMALL, "--queue", "fifo", "--no-compare", "--mix", "published").code == 0
    jobs.write_text("name,gpus,arrival_s,duration_s,model,deadline_s\na,8,0,100,vgg16,900\nb,8,0,100,vgg16,\n")
    some = run(jobs, *SMALL, "--queue", "edf", "--no-compare")
    assert "warning: 1 of 2 jobs have no deadline and come last (--queue edf)" in some.stdout
