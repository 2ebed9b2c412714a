"""What a submission asks of the controller, and which are left to Slurm."""

from dataclasses import replace

import pytest

from ropewalk.serve.slurm.mark import Mark
from ropewalk.serve.slurm.queue import SlurmJob
from ropewalk.serve.slurm.request import JobRequest, NotNow, NotOurs, of_form, of_job
from ropewalk.serve.slurm.submit import Decision, job_answered, not_asked, refused

PLAIN = SlurmJob(7, "train", "ada", "batch", "pending", asked_nodes=2, most_nodes=2, tasks=2)


def asked(**form):
    return of_form({"name": "train", "user": "ada", "partition": "batch"} | form, 8, ("batch",))


@pytest.mark.parametrize(
    ("form", "nodes"),
    [
        ({"nodes": "4"}, 4),
        ({}, 1),
        ({"tasks": "1"}, 1),
        ({"tasks": "32", "tasks_per_node": "8"}, 4),
        ({"tasks": "33", "tasks_per_node": "8"}, 5),
        ({"gpus": "gres:gpu:17"}, 3),
        ({"gpus": "gres/gpu:h100=16"}, 2),
        ({"gpus": "gpu:8", "nodes": "3"}, 3),
    ],
)
def test_how_many_nodes_a_job_asks_for(form, nodes):
    assert asked(**form).nodes == nodes


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"partition": "debug"}, "not one of ropewalk's"),
        ({"het": "1"}, "heterogeneous"),
        ({"features": "h100"}, "certain features"),
        ({"excluded_nodes": "n3"}, "excludes nodes"),
        ({"resv_name": "mine"}, "reservation"),
        ({"tasks": "7"}, "no number of nodes"),
        ({"nodes": "3", "required": "n[1-2]"}, "names some"),
        ({"nodes": "3", "required": "n[1-"}, "cannot be read"),
    ],
)
def test_jobs_that_are_left_to_slurm_say_why(form, why):
    found = asked(**form)
    assert isinstance(found, NotOurs)
    assert why in found.why
    assert not_asked(found).decision == "pass"
    assert not_asked(found).mark.left


@pytest.mark.parametrize(
    ("form", "hold"),
    [
        ({"array": "0-3"}, True),
        ({"begin": "9"}, True),
        ({"dependency": "afterok:3"}, False),
        ({"priority": "0"}, False),
    ],
)
def test_jobs_that_cannot_start_yet_are_held_unless_slurm_must_look_at_them(form, hold):
    found = asked(**form)
    assert isinstance(found, NotNow)
    assert not_asked(found).mark.hold == hold
    assert not_asked(found).decision == ("hold" if hold else "pass")


def test_all_nodes_named_by_the_user_are_asked_for_by_name():
    assert asked(nodes="2", required="n[1-2]").servers == ("n1", "n2")


def test_hostile_names_become_one_printable_line():
    found = asked(name="a\nb\x00" + "x" * 500)
    assert found.name.isprintable()
    assert len(found.name) <= 128


def test_a_waiting_job_asks_for_what_it_asked_slurm():
    assert of_job(PLAIN, (), 0.0) == JobRequest("train", "ada", 2)
    assert isinstance(of_job(replace(PLAIN, waits_for="afterok:1"), (), 0.0), NotNow)
    assert isinstance(of_job(replace(PLAIN, held=True), (), 0.0), NotNow)
    assert isinstance(of_job(replace(PLAIN, eligible_at=9.0), (), 0.0), NotNow)
    assert isinstance(of_job(replace(PLAIN, partition="debug"), ("batch",), 0.0), NotOurs)
    assert isinstance(of_job(replace(PLAIN, restricted="excludes nodes"), (), 0.0), NotOurs)
    assert isinstance(of_job(replace(PLAIN, most_nodes=0), (), 0.0), NotOurs)


def test_nodes_that_an_earlier_grant_wrote_are_not_the_users_wish():
    mark = Mark("00c0ffee00c0ffee", ("n2", "n1"))
    assert of_job(replace(PLAIN, required=("n1", "n2"), mark=mark), (), 0.0).servers == ()
    assert of_job(replace(PLAIN, required=("n1", "n2")), (), 0.0).servers == ("n1", "n2")


def test_what_a_submission_hears():
    request = JobRequest("train", "ada", 2)
    answer = {"state": "pending", "reason": {"message": "16 GPUs are requested, 8 are free"}}
    held = job_answered(request, "00c0ffee00c0ffee", answer)
    assert held.decision == "hold"
    assert "8 are free" in held.text()
    assert refused("impossible", "999 GPUs can never be allocated").decision == "refuse"
    assert refused("internal", "a defect").decision == "pass"
    assert "\n" not in Decision("pass", Mark(), say="a\nb").text().split("say ")[1].rstrip("\n")
