"""Comments and lists of jobs and nodes, as Slurm 22.05 wrote them; whatever users typed stays text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.errors import ClusterError
from ropewalk.serve.slurm.mark import NOTHING, Mark, read_mark
from ropewalk.serve.slurm.nodes import read_nodes
from ropewalk.serve.slurm.queue import read_queue

RECORDED = Path(__file__).parents[3] / "data" / "slurm"
TOKENS = st.text("0123456789abcdef", min_size=16, max_size=16)
NODES = st.lists(st.integers(0, 99).map("server{}".format), unique=True, max_size=9).map(tuple)


def recorded():
    return (RECORDED / "squeue-22.05.json").read_text()


@given(TOKENS | st.just(""), NODES, st.booleans(), st.booleans(), st.text("abc :x", max_size=30).map(str.strip))
def test_a_mark_reads_back_from_its_comment(token, nodes, hold, left, note):
    mark = Mark(token, nodes, hold, left, note)
    assert read_mark(mark.text()) == mark


@given(st.text(max_size=60))
def test_any_other_comment_says_nothing_and_breaks_nothing(text):
    mark = read_mark(text)
    assert mark == NOTHING or text.startswith("ropewalk")


def test_a_note_of_a_stranger_is_one_line():
    assert "\n" not in Mark(note="a\nb\x1b[0m").text()


def test_the_recorded_list_says_what_slurm_said():
    jobs = {job.name: job for job in read_queue(recorded())}
    running = jobs['big; rm -rf / "$(x)"']
    assert (running.phase, running.nodes) == ("active", ("server12", "server13"))
    assert running.mark == Mark("00c0ffee00c0ffee", ("server1", "server0"))
    assert jobs["short"].completing
    assert jobs["dependent"].waits_for.startswith("afterok")
    assert jobs["excluding"].restricted == "excludes nodes"
    assert jobs["tasks"].most_nodes == 0
    assert jobs["tasks"].tasks == 7
    array = next(job for job in read_queue(recorded()) if job.array_tasks)
    assert array.array_tasks == tuple(range(6))
    assert array.held


def test_newer_releases_write_states_as_lists_and_numbers_as_objects():
    document = json.loads(recorded())
    old = read_queue(json.dumps(document))
    for job in document["jobs"]:
        job["job_state"] = [job["job_state"]]
        for field in ("priority", "time_limit", "eligible_time", "node_count", "max_nodes", "tasks"):
            value = job[field]
            job[field] = {"set": value is not None, "infinite": False, "number": value or 0}
    assert read_queue(json.dumps(document)) == old


def test_a_finished_job_that_still_has_nodes_is_not_over():
    document = json.loads(recorded())
    document["jobs"][0]["job_state"] = ["COMPLETED", "COMPLETING"]
    assert read_queue(json.dumps(document))[0].phase == "active"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"jobs": 3}', '{"jobs": [3]}', '{"jobs": [{}]}', "[" * 100_000, '{"jobs": [{"job_id": "x"}]}'],
)
def test_what_is_no_list_of_jobs_is_refused_with_a_remedy(text):
    with pytest.raises(ClusterError, match="give the output of squeue --json"):
        read_queue(text)


def test_every_field_of_the_wrong_kind_is_refused():
    for field in ("job_id", "job_state", "nodes", "node_count", "priority", "admin_comment", "name"):
        document = json.loads(recorded())
        document["jobs"][0][field] = {"surprise": []} if field != "priority" else "high"
        if field in ("job_id", "node_count"):
            document["jobs"][0][field] = [1]
        with pytest.raises(ClusterError, match="cannot be read"):
            read_queue(json.dumps(document))


def test_nodes_that_take_no_jobs():
    nodes = read_nodes((RECORDED / "sinfo-22.05.json").read_text())
    assert nodes["server12"] == ""
    assert nodes["server14"] == "down, not_responding (off)"
    assert nodes["server15"] == "drain (fan noise)"
    with pytest.raises(ClusterError, match="sinfo --json"):
        read_nodes('{"nodes": [{"name": 3}]}')
