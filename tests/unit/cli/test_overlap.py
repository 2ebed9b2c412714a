"""`ropewalk overlap` from outside: what it prints, what it writes and what it refuses."""

import json
from functools import partial

import pytest
from tiny_profiles import write_profile

from ropewalk.fabric import LeafSpine
from ropewalk.fabric.files import write_fabric

SLOW = ("--cluster", "2x2", "--nics", "1", "--bandwidth", "10Gbps", "--nvlink", "100GB/s")


@pytest.fixture
def run(ropewalk):
    return partial(ropewalk, "overlap")


def test_an_order_comes_as_json_and_as_a_page(tmp_path, run):
    page = tmp_path / "page.html"
    answer = run(write_profile(tmp_path), *SLOW, "--json", "--page", page)
    assert answer.code == 0, answer.stderr
    found = json.loads(answer.stdout)
    wanted = {"groups", "partition_bytes", "credit_bytes", "order", "step_time_s", "lower_bound_s", "alternatives"}
    assert wanted <= set(found)
    steps = {row["name"]: row["step_time_s"] for row in found["alternatives"]}
    assert list(steps) == ["fifo", "buckets", "merged", "priority", "dear", "fused", "streamed"]
    assert found["lower_bound_s"] <= found["step_time_s"] * (1 + 1e-9)
    assert found["step_time_s"] == min(row["step_time_s"] for row in found["alternatives"] if row["simulated"])
    # The head comes last in the forward pass but first out of the backward pass: whoever waits for it loses.
    assert steps["fused"] < 0.99 * steps["buckets"]
    assert sorted(name for group in found["groups"] for name in group) == sorted(f"layer {n}" for n in range(1, 7))
    assert sum(move["size_bytes"] for move in found["order"]) == pytest.approx(found["gradient_bytes"])
    assert page.stat().st_size > 100_000


def test_gradients_stream_through_the_collectives_that_are_named(tmp_path, run):
    names = "ring,halving-doubling,hips,forest,topoadopt,in-network"
    asked = (write_profile(tmp_path), *SLOW, "--mix", "5GB/s", "--through")
    answer = run(*asked, names, "--json")
    assert answer.code == 0, answer.stderr
    through = json.loads(answer.stdout)["through"]
    assert {one["collective"] for one in through} == set(names.split(","))
    assert [one["streamed_s"] for one in through] == sorted(one["streamed_s"] for one in through)
    assert all(one["complete_s"][0] <= max(one["complete_s"]) == one["streamed_s"] for one in through)
    told = run(*asked, "in-network")
    assert "in-network" in told.stdout.partition("all gradients as one buffer on the fabric")[2]
    refused = run(*asked, "forests")
    assert refused.code == 2
    assert "did you mean forest?" in refused.stderr


def test_the_estimate_agrees_with_the_simulation_where_no_update_is_in_the_way(tmp_path, run):
    answer = run(write_profile(tmp_path), *SLOW, "--optimiser", "none", "--json")
    assert answer.code == 0, answer.stderr
    rows = {row["name"]: row for row in json.loads(answer.stdout)["alternatives"] if row["simulated"]}
    assert set(rows) == {"fifo", "buckets", "merged", "priority", "fused", "streamed"}
    for row in rows.values():
        assert row["step_time_s"] == pytest.approx(row["estimated_step_time_s"], rel=1e-9)


def test_a_fabric_file_is_a_network_like_any_other(tmp_path, run):
    write_fabric(LeafSpine(2, 2, 1, bandwidth=1.25e9).build(), tmp_path / "net.yaml")
    answer = run(write_profile(tmp_path), *SLOW[:4], "--fabric", tmp_path / "net.yaml", "--json")
    assert answer.code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["cluster"]["network"].endswith("net.yaml")
    refused = run(write_profile(tmp_path), *SLOW, "--bandwidth", "5Gbps", "--fabric", tmp_path / "net.yaml")
    assert refused.code == 2
    assert "leave the NIC bandwidth out, as the file has it" in refused.stderr


def test_the_same_question_has_the_same_answer_as_in_simulate(tmp_path, run, ropewalk):
    """Data parallelism with DDP's buckets, and the best order from its JSON."""
    asked = (write_profile(tmp_path), *SLOW, "--batch", 256, "--json")
    overlap, simulate = run(*asked), ropewalk("simulate", *asked, "--dp", 4)
    assert overlap.code == simulate.code == 0, overlap.stderr + simulate.stderr
    steps = {row["name"]: row["step_time_s"] for row in json.loads(overlap.stdout)["alternatives"]}
    assert steps["buckets"] == json.loads(simulate.stdout)["step_time_s"]


def test_every_level_simulates_it(tmp_path, run):
    seconds = {}
    for level in ("flow", "wire", "packet"):
        answer = run(write_profile(tmp_path), *SLOW, "--level", level, "--json")
        assert answer.code == 0, answer.stderr
        seconds[level] = json.loads(answer.stdout)["step_time_s"]
    assert seconds["packet"] == pytest.approx(seconds["flow"], rel=0.15)
    assert seconds["wire"] == pytest.approx(seconds["packet"], rel=0.1)


def test_parameter_servers_have_their_own_ways(tmp_path, run):
    answer = run(write_profile(tmp_path), *SLOW, "--sync", "ps", "--ps-servers", 1)
    assert answer.code == 0, answer.stderr
    for part in ("ByteScheduler", "BytePS", "1 parameter servers are on dedicated hosts", "at best"):
        assert part in answer.stdout


def test_sizes_that_are_given_are_used(tmp_path, run):
    answer = run(write_profile(tmp_path), *SLOW, "--partition", "4MB", "--credit", "8MB", "--json")
    assert answer.code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert (found["partition_bytes"], found["credit_bytes"], found["found_by"]) == (4e6, 8e6, "as given")


def test_bucket_sizes_are_written_for_pytorch_and_are_no_worse_than_its_own(tmp_path, run):
    path = tmp_path / "ddp.json"
    answer = run(write_profile(tmp_path), *SLOW, "--ddp", path, "--json")
    assert answer.code == 0, answer.stderr
    written = json.loads(path.read_text())
    caps = written["keywords"]["bucket_cap_mb_list"]
    assert len(caps) == len(written["buckets"])
    assert sum(caps) * 2**20 == pytest.approx(json.loads(answer.stdout)["gradient_bytes"])
    assert "by default" in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cluster", "8,4"), "give equal ones, such as 4x8"),
        (("--batch", 33), "does not divide evenly over 32 GPUs: give a multiple of 32, such as 32"),
        (("--nics", 3), "8 GPUs of a server do not divide evenly over 3 NICs"),
        (("--cluster", "1x1"), "needs no synchronisation"),
        (("--sync", "gossip"), "write --sync all-reduce or ps"),
        (("--ps-servers", 2), "an all-reduce has no parameter servers"),
        (("--partition", "4MB", "--credit", "8MB", "--tune"), "leave one of them out"),
        (("--partition", "1B"), "give a partition size of"),
        (("--no-simulate", "--level", "packet"), "estimates have no level"),
        (("--ecn", "1kB,2kB,0.1"), "--ecn"),
        (("--routing", "pigeon"), "there is no router 'pigeon'"),
        (("--round-latency", "2"), "unit"),
        (("--sync", "ps", "--ddp", "x.json"), "supports all-reduce only"),
        (("--sync", "ps", "--plan", "x.json"), "a plan uses all-reduce"),
    ],
)
def test_what_cannot_be_answered_exits_with_two_and_a_remedy(tmp_path, run, arguments, message):
    answer = run(write_profile(tmp_path), *arguments)
    assert answer.code == 2
    assert message in answer.stderr
