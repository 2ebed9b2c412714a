"""Why a job waits, when it should start, and what would happen if."""

from __future__ import annotations

from serve_cluster import Cluster

from ropewalk.serve import operation as asked
from ropewalk.serve.projection import explanation, what_if


def test_what_if_says_where_a_job_would_start_and_changes_nothing() -> None:
    cluster = Cluster()
    asks = asked.Submit("if", 16)
    answer = what_if(cluster.state.fork(), asks)
    assert answer["would_start"]
    assert not cluster.state.jobs
    assert answer["now"] == cluster.do(asks).answer["allocation"]


def test_what_if_says_when_a_job_would_start_by_expected_ends() -> None:
    cluster = Cluster()
    cluster.submit(16, expected_s=100.0)
    cluster.submit(16, expected_s=50.0)
    answer = what_if(cluster.state.fork(), asked.Submit("if", 32))
    assert not answer["would_start"]
    assert answer["earliest_start_at"] == 101.0
    assert answer["earliest_start_s"] == 101.0 - cluster.now
    assert answer["in_the_way"] == ["j2", "j1"]
    assert answer["reason"]["details"]["missing_gpus"] == 32
    assert what_if(cluster.state.fork(), asked.Submit("if", 16))["earliest_start_at"] == 52.0


def test_the_queue_ahead_counts() -> None:
    cluster = Cluster()
    cluster.submit(32, expected_s=100.0)
    ahead = cluster.submit(32, expected_s=10.0)
    answer = what_if(cluster.state.fork(), asked.Submit("if", 8))
    assert answer["earliest_start_at"] == 111.0
    assert answer["in_the_way"][0] == ahead
    assert answer["reason"]["code"] == "behind-in-queue"
    assert answer["reason"]["details"]["also"]["code"] == "gpu-shortage"


def test_a_job_whose_end_nobody_knows_makes_no_promise() -> None:
    cluster = Cluster()
    cluster.submit(32)
    assert what_if(cluster.state.fork(), asked.Submit("if", 8))["earliest_start_s"] is None


def test_explain_names_the_jobs_on_the_links_that_are_missing() -> None:
    cluster = Cluster()
    holder = cluster.submit(8, servers=("server0", "server2"))
    for leaf in range(4):
        cluster.do(asked.Drain((f"link:leaf{leaf}-spine7", f"link:leaf{leaf}-spine6", f"link:leaf{leaf}-spine5")))
    cluster.do(asked.Drain(("server:server4", "server:server6")))
    waiting = cluster.submit(16)
    told = explanation(cluster.state.fork(), waiting)
    reason = told["reason"]
    assert reason["code"] == "network-fragmentation"
    assert reason["details"]["blocking"] == [holder]
    assert set(reason["details"]["nearest"]["leafs"]) <= {"leaf0", "leaf1", "leaf2", "leaf3"}
    assert reason["details"]["out_of_service"]
    assert reason["remedy"]


def test_explain_of_a_held_job_says_so() -> None:
    cluster = Cluster()
    job = cluster.submit(8, hold=True)
    told = explanation(cluster.state.fork(), job)
    assert (told["reason"]["code"], told["earliest_start_s"]) == ("held", None)
