"""`ropewalk cluster` over pods and on rails, from outside."""

import json

import pytest

from ropewalk.tenancy.routings import ROUTINGS

TREE = ("--fabric", "fat-tree:8", "--gpus-per-server", 2)


@pytest.fixture
def run(ropewalk):
    return lambda *words: ropewalk("cluster", *words)


def test_a_job_over_pods_says_its_cores_and_is_proved(run, tmp_path):
    state = tmp_path / "now.json"
    answer = run("allocate", *TREE, "--gpus", 32, "--job", "big", "--save", state, "--prove", "all-to-all", "--json")
    assert answer.code == 0, answer.stderr
    assert answer.json["pods"] == 2
    assert len(answer.json["core_links"]) == 32
    assert answer.json["core_links"][0] == ["agg0.0", "core0.0", 0]
    assert answer.json["rank_order"][5]["core"] == "core1.1"
    assert answer.json["proof"]["contention_free"]
    assert json.loads(state.read_text())["jobs"][0]["core_cables"] == [0] * 32
    shown = run("allocate", *TREE, "--state", state, "--gpus", 32, "--job", "next")
    assert "cores: core0.0, core0.1" in shown.stdout
    assert "over 2 pods" in shown.stdout


def test_a_drained_core_is_named_by_whoever_waits_for_it(run):
    drains = [word for core in ("core0.0", "core1.0", "core2.0", "core3.0") for word in ("--drain", f"core:{core}")]
    answer = run("allocate", *TREE, "--gpus", 128, *drains, "--json")
    assert answer.code == 3
    assert answer.json["tier"] == "core"
    assert answer.json["blocking_cores"] == ["core0.0", "core1.0", "core2.0", "core3.0"]
    shown = run("allocate", *TREE, "--gpus", 128, *drains)
    assert "blocking cores: core0.0" in shown.stdout


def test_rules_of_a_job_over_cores_are_refused_with_what_can_be_done(run, tmp_path):
    state = tmp_path / "now.json"
    run("allocate", *TREE, "--gpus", 32, "--job", "big", "--save", state)
    answer = run("rules", "big", *TREE, "--state", state, "--addresses", "numbered", "--to", tmp_path / "rules")
    assert answer.code == 2
    assert "sends over cores" in answer.stderr


@pytest.mark.parametrize(
    ("fabric", "named"),
    [("fat-tree:8,4", "ocs-vclos"), ("rails:16x4x4", "has rails"), ("rail-only:2x8", "has rails")],
)
def test_traces_are_replayed_and_policies_that_do_not_apply_are_left_out(fabric, named, run, tmp_path):
    trace = tmp_path / "jobs.csv"
    trace.write_text(
        "name,gpus,arrival_s,duration_s,iterations,collective,communication_share\n"
        "a,16,0,100,100,all-to-all,0.4\nb,16,1,100,100,ring,0.3\nc,4,2,50,50,ring,0.2\n"
    )
    answer = run(trace, "--fabric", fabric, "--gpus-per-server", 4, "--seeds", 1, "--no-apart")
    assert answer.code == 0, answer.stderr
    assert "vclos" in answer.stdout
    assert named in answer.stdout + answer.stderr


def test_a_cluster_on_rails_is_that_of_other_commands(run):
    answer = run("allocate", "--cluster", "8x4", "--fabric", "rails:8x4x4", "--gpus", 32, "--json")
    assert answer.code == 0, answer.stderr
    assert answer.json["stage"] == "clos"
    assert len(answer.json["links"]) == 32


def test_fat_tree_alone_is_what_three_tiers_of_switches_hold(run):
    answer = run("allocate", "--fabric", "fat-tree", "--ports", 16, "--gpus", 1024, "--json")
    assert answer.code == 0, answer.stderr
    assert (answer.json["plant"], answer.json["pods"]) == ("fat-tree:16", 16)


def test_a_fat_tree_is_taken_as_it_is_and_its_servers_are_said(run):
    answer = run("allocate", "--fabric", "fat-tree:8", "--gpus", 32, "--json")
    assert answer.code == 0
    assert "servers of 4 GPUs, which leafs of fat-tree:8 hold whole" in answer.stderr
    assert (answer.json["plant"], answer.json["pods"]) == ("fat-tree:8", 2)
    oversubscribed = run("allocate", "--fabric", "fat-tree:2to1", "--ports", 16, "--gpus", 8, "--json")
    assert oversubscribed.json["plant"] == "fat-tree:16,16,4"
    assert oversubscribed.stderr == ""


def test_options_without_effect_on_a_network_are_refused(run):
    for option, value in (("--ports", 32), ("--cables", 2)):
        answer = run("allocate", "--fabric", "fat-tree:8", option, value, "--gpus", 4)
        assert answer.code == 2
        assert f"{option} is for" in answer.stderr


@pytest.mark.parametrize(
    ("fabric", "policy", "others"),
    [
        (("leaf-spine:4x8x8", 4), "ocs-vclos-pods", "use one of laas, vclos, vclos-all-divisors, ocs-vclos, ocs-vclos"),
        (("rails:16x4x4", 8), "laas", "use one of vclos, vclos-all-divisors, topoopt, topoopt-one-panel, none"),
        (("rails:16x4x4", 8), "ocs-vclos", "use one of vclos, vclos-all-divisors, topoopt, topoopt-one-panel, none"),
        (("leaf-spine:4x8x8", 4), "crux", "use --isolate none, and --routing crux in replays"),
    ],
)
def test_a_policy_that_does_not_know_the_cluster_is_refused_with_those_that_do(run, fabric, policy, others):
    where = ("--fabric", fabric[0], "--gpus-per-server", fabric[1])
    for asked in (("allocate",), ("explain",)):
        answer = run(*asked, *where, "--gpus", 16, "--isolate", policy)
        assert answer.code == 2
        assert others in answer.stderr


def test_a_job_with_more_gpus_than_there_are_uplinks_is_told_so(run):
    where = ("--fabric", "leaf-spine:4x4x8", "--gpus-per-server", 8, "--gpus", 16)
    answer = run("allocate", *where, "--isolate", "vclos")
    assert answer.code == 4
    assert "leafs of leaf-spine:4x4x8 have 4, 16 in all, and servers 8 GPUs" in answer.stdout
    assert run("allocate", *where, "--isolate", "none").code == 0


@pytest.mark.parametrize("asked", ["allocate", "explain"])
def test_a_job_that_can_never_start_is_told_what_does(run, asked):
    where = ("--fabric", "fat-tree:16,2,4", "--gpus-per-server", 4)
    refused = run(asked, *where, "--gpus", 120)
    assert "can never start here" in refused.stdout
    advised = run(asked, *where, "--gpus", 120, "--json").json["sizes_that_start"]
    assert f"Ask for {advised[0]} GPUs" in refused.stdout
    for size in advised:
        assert run("allocate", *where, "--gpus", size).code == 0
    assert "with shared links (ecmp) it starts" in refused.stdout
    assert run("allocate", *where, "--gpus", 120, "--isolate", "none").code == 0


def test_a_replay_that_no_policy_can_have_names_those_that_can(run, tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,gpus,arrival_s,duration_s,communication_share\na,4,0,100,0.3\n")
    where = (jobs, "--fabric", "rails:8x4x4", "--gpus-per-server", 4, "--seeds", 1, "--no-compare", "--no-apart")
    refused = run("replay", *where, "--isolate", "laas")
    assert refused.code == 2
    assert refused.stderr.strip().endswith("(--isolate)")
    for name in refused.stderr.rpartition("use one of ")[2].split(" (")[0].split(", "):
        assert run("replay", *where, "--isolate", name).code == 0


def test_every_routing_knows_three_tiers(run, tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,gpus,arrival_s,duration_s,communication_share\na,32,0,100,0.3\nb,32,0,100,0.3\n")
    where = (jobs, "--fabric", "fat-tree:8", "--gpus-per-server", 4, "--seeds", 1, "--no-compare", "--no-apart")
    told = run("replay", *where, "--isolate", "none", "--routing", ",".join(ROUTINGS), "--json").json
    assert set(told["kinds"]) == set(ROUTINGS)
    assert not [note for note in told["notes"] if "left out" in note]


def test_the_headline_names_policies_that_are_as_fast_and_those_that_refuse_jobs(run, tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "name,gpus,arrival_s,duration_s,model,communication_share\n"
        "a,16,0,1000,vgg16,0.3\nb,8,10,100,vgg16,0.3\nc,24,20,2000,vgg16,0.3\n"
    )
    where = ("--fabric", "leaf-spine:4x4x8", "--gpus-per-server", 8, "--seeds", 2)
    answer = run("replay", jobs, *where)
    assert "Not ranked, because some jobs can never start under them: vclos (2 of 3 jobs)" in answer.stdout
    assert answer.stdout.count("than under ecmp") == 1
    found = run("replay", jobs, *where, "--json").json
    assert found["verdict"]["not_ranked"] == ["vclos", "ocs-vclos"]
    assert found["verdict"]["best"] == "source"
    assert found["policies"]["vclos"]["later_than_packed_on_ideal"]["both"] is None
    quiet = run("replay", jobs, "--fabric", "leaf-spine:4x8x8", "--gpus-per-server", 8, "--no-apart", "--seeds", 2)
    assert "Jobs take as long under source as under vclos and ocs-vclos, and no policy is faster" in quiet.stdout


@pytest.mark.parametrize(
    ("option", "typed", "meant"),
    [("--isolate", "vclso", "vclos"), ("--queue", "fifoo", "fifo"), ("--backfill-rule", "esay", "easy"),
     ("--routing", "ecpm", "ecmp"), ("--placement", "pakced", "packed")],
)  # fmt: skip
def test_mistyped_policies_and_queues_name_what_was_meant(run, tmp_path, option, typed, meant):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,gpus,arrival_s,duration_s,communication_share\na,4,0,100,0.3\n")
    refused = run("replay", jobs, "--fabric", "leaf-spine:2x4x4", "--backfill", option, typed)
    assert refused.code == 2
    assert f"{typed!r}: did you mean {meant}?" in refused.stderr
