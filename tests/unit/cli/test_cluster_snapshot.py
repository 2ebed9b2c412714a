"""`ropewalk cluster snapshot` from outside: what it prints, what it writes and what it refuses."""

from functools import partial
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "moment.csv"
SMALL = ("--fabric", "leaf-spine:6x8x8", "--gpus-per-server", 4)


@pytest.fixture
def run(ropewalk):
    return partial(ropewalk, "cluster", "snapshot", EXAMPLE, *SMALL)


def test_the_jobs_of_a_moment_and_what_others_cost_them(run, tmp_path):
    page = tmp_path / "moment.html"
    answer = run("--at", "100s", "--isolate", "none", "--json", "--page", page)
    assert answer.code == 0, answer.stderr
    found = answer.json
    assert (found["policy"], found["level"], found["moment"]) == ("ecmp", "flow", "at 100 s of moment.csv under ecmp")
    jobs = {job["name"]: job for job in found["jobs"]}
    assert list(jobs) == ["ring-a", "moe-b", "ring-c", "dense-d", "small-e"]
    assert jobs["ring-a"]["slowdown"] > 1.05
    assert jobs["ring-a"]["shares_links_with"] == {"moe-b": 2}
    assert jobs["ring-a"]["replay_slowdown"] == pytest.approx(jobs["ring-a"]["slowdown"], rel=0.1)
    assert jobs["dense-d"]["leafs"] == ["leaf5"]
    assert "ring-a takes 1.07× as long as alone; 1 of 5 jobs is slowed down" in page.read_text()


def test_under_vclos_the_table_says_that_nobody_is_slowed_down(run):
    answer = run("--at", "100s")
    assert answer.code == 0, answer.stderr
    assert "No job slows another one down under vclos" in answer.stdout
    assert "replay says" in answer.stdout
    assert "pauses" not in answer.stdout


def test_packet_by_packet_it_says_who_paused_whom(run, tmp_path):
    page = tmp_path / "moment.html"
    options = ("--scale", 0.002, "--transport", "rdma-pfc", "--buffer", "2MB", "--iterations", 1, "--page", page)
    answer = run("--at", "100s", "--isolate", "none", "--level", "packet", *options)
    assert answer.code == 0, answer.stderr
    assert "times and bytes scaled by 0.002" in answer.stdout
    assert "paused by" in answer.stdout
    assert "Job paused by other" in page.read_text()


def test_routings_of_shared_links_can_be_chosen(run):
    answer = run("--at", "100s", "--isolate", "none", "--routing", "balanced", "--jobs", "ring-a,moe-b", "--json")
    assert (answer.json["policy"], len(answer.json["jobs"])) == ("balanced", 2)
    assert "add --isolate none" in run("--at", "100s", "--routing", "balanced").stderr


def test_a_state_says_where_jobs_are_and_the_table_what_they_do(ropewalk, run, tmp_path):
    state = tmp_path / "now.json"
    for job in ("ring-a", "moe-b"):
        before = ("--state", state) if state.exists() else ()
        assert ropewalk("cluster", "allocate", *SMALL, *before, "--gpus", 12, "--job", job, "--save", state).code == 0
    answer = run("--state", state, "--json")
    assert answer.code == 0, answer.stderr
    assert [job["slowdown"] for job in answer.json["jobs"]] == pytest.approx([1.0, 1.0])
    assert "--queue would have no effect: a state file lists" in run("--state", state, "--queue", "edf").stderr
    other = tmp_path / "others.csv"
    other.write_text("name,gpus,arrival_s,iterations,compute_s,volume_bytes\nring-a,8,0,1,0.1,1000\nmoe-b,12,0,1,1,1\n")
    refused = ropewalk("cluster", "snapshot", other, *SMALL, "--state", state)
    assert "ring-a has 8 GPUs here and 12 in the state: write 12" in refused.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give either --at TIME, such as --at 5000s, or --state FILE"),
        (("--at", "9999999s"), "GPU usage peaks at 4 s, give --at 4s"),
        (("--at", "100s", "--level", "fine"), "unknown level 'fine'"),
        (("--at", "100s", "--buffer", "1MB"), "--buffer would have no effect"),
        (("--at", "100s", "--jobs", "nobody"), "nobody does not run at 100 s of moment.csv under vclos"),
        (("--at", "100s", "--scale", "2"), "a scale of 2 is not above 0 and at most 1"),
        (("--at", "100s", "--level", "packet"), "give --scale 0."),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_remedy(run, tmp_path, options, message):
    page = tmp_path / "never.html"
    answer = run(*options, "--page", page)
    assert (answer.code, answer.stdout) == (2, "")
    assert message in answer.stderr
    assert not page.exists()


@pytest.mark.parametrize("command", ["snapshot", "agreement"])
def test_more_iterations_than_can_be_simulated_are_refused_at_once_with_a_number_that_can(ropewalk, command):
    refused = ropewalk("cluster", command, EXAMPLE, *SMALL, "--at", "100s", "--iterations", 2**40)
    assert (refused.code, refused.stdout) == (2, "")
    assert "more than 5,000,000 are simulated at once: give --iterations " in refused.stderr


def test_jobs_that_send_nothing_have_iterations_that_end(ropewalk, tmp_path):
    alone = tmp_path / "jobs.csv"
    alone.write_text("name,gpus,arrival_s,duration_s\na,1,0,100\n")
    refused = ropewalk("cluster", "snapshot", alone, *SMALL, "--at", "2s", "--iterations", 2**40)
    assert refused.code == 2
    assert "give --iterations 5000000" in refused.stderr
