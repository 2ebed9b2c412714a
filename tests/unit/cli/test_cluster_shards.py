"""Shards behind patch panels, and circuits between pods, as an operator asks for them."""

SMALL = ("--fabric", "leaf-spine:4x4x4", "--gpus-per-server", 2)
TREE = ("--fabric", "fat-tree:4", "--gpus-per-server", 1)


def test_a_shard_is_allocated_explained_and_gets_its_patch_list(ropewalk, tmp_path):
    state = tmp_path / "now.json"
    asked = ("cluster", "allocate", *SMALL, "--isolate", "topoopt")
    got = ropewalk(*asked, "--gpus", 8, "--job", "a", "--save", state, "--prove", "ring", "--json").json
    assert (got["stage"], got["guarantee"]) == ("shard", "isolated")
    assert got["proof"]["contention_free"] is True
    waits = ropewalk(*asked, "--gpus", 16, "--state", state, "--json")
    assert (waits.code, waits.json["reason"]) == (3, "gpu-shortage")
    folder = tmp_path / "a"
    written = ropewalk("cluster", "rules", "a", *SMALL, "--isolate", "topoopt", "--state", state, "--to", folder)
    assert written.code == 0, written.stderr
    head, *patches = (folder / "patch.csv").read_text().splitlines()
    assert head == "panel,server,port,peer,peer_port"
    assert len(patches) == 8  # four servers with two sending fibres each


def test_replays_say_what_was_patched_and_charge_the_delay(ropewalk, tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,gpus,arrival_s,duration_s,iterations,communication_share\na,8,0,100,100,0.2\n")
    asked = ("cluster", jobs, *SMALL, "--isolate", "topoopt-one-panel", "--no-compare", "--seeds", 1, "--no-apart")
    done = ropewalk(*asked, "--patch-delay", "30s", "--json").json["kinds"]["topoopt-one-panel"]
    assert done["mean_jrt_s"] == 130.0
    assert (done["patching"]["shards"], done["patching"]["waited_s"]) == (1, 30.0)
    assert "8 fibres patched for 1 shard;" in ropewalk(*asked).stdout
    refused = ropewalk(*asked, "--patch-delay", "-3s")
    assert refused.code == 2
    assert "is negative" in refused.stderr


def test_pods_are_joined_by_circuits_and_snapshots_see_them(ropewalk, tmp_path):
    got = ropewalk(
        "cluster", "allocate", *TREE, "--isolate", "ocs-vclos", "--gpus", 8, "--prove", "all-to-all", "--json"
    ).json
    assert (got["stage"], got["proof"]["contention_free"], got["pods"]) == ("ocs-core", True, 2)
    jobs = tmp_path / "jobs.csv"
    row = "duration_s,iterations,collective,communication_share"
    jobs.write_text(f"name,gpus,arrival_s,{row}\na,8,0,100,100,all-to-all,0.4\nb,8,0,100,100,all-to-all,0.4\n")
    moment = ("cluster", "snapshot", jobs, *TREE, "--at", "10s", "--isolate", "ocs-vclos", "--json")
    seen = ropewalk(*moment).json["jobs"]
    assert [round(job["slowdown"], 9) for job in seen] == [1.0, 1.0]
    asked = ("cluster", jobs, *TREE, "--isolate", "ocs-vclos", "--no-compare", "--seeds", 1, "--no-apart", "--json")
    assert ropewalk(*asked).json["kinds"]["ocs-vclos"]["circuits"] == {
        "jobs": 2,
        "set_up": 16,
        "kept": 0,
        "torn_down": 0,
    }
    submit = ("cluster", "submit", "x", "--gpus", 8, *TREE, "--state", tmp_path / "s.json", "--policy")
    live = ropewalk(*submit, "ocs-vclos", "--json").json
    assert (live["state"], live["allocation"]["stage"]) == ("running", "ocs-core")
