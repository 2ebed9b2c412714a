"""Jobs that grow and shrink keep their GPUs where that is possible."""

from __future__ import annotations

import pytest
from serve_cluster import Cluster

from ropewalk.serve import operation as asked


def _gpus(cluster: Cluster, job: str) -> list[int]:
    held = cluster.state.job(job).allocation
    assert held is not None
    return list(held.gpus)


def test_a_job_grows_inside_its_server_and_then_on_its_leaf() -> None:
    cluster = Cluster()
    job = cluster.submit(2)
    first = _gpus(cluster, job)
    assert cluster.do(asked.Resize(job, 4)).answer["kept_gpus"] == 2
    assert cluster.do(asked.Resize(job, 8)).answer["kept_gpus"] == 4
    assert set(first) <= set(_gpus(cluster, job))
    assert cluster.state.job(job).generation == 3


def test_a_job_grows_to_other_leafs_with_links_of_its_own() -> None:
    cluster = Cluster()
    job = cluster.submit(8)
    grown = cluster.do(asked.Resize(job, 24)).answer
    assert (grown["kept_gpus"], len(grown["allocation"]["leafs"])) == (8, 3)
    assert grown["allocation"]["guarantee"] == "contention-free"
    assert grown["allocation"]["links"] == 24


def test_a_job_shrinks_to_fewer_leafs_and_gives_its_links_back() -> None:
    cluster = Cluster()
    job = cluster.submit(32)
    small = cluster.do(asked.Resize(job, 16)).answer
    assert (small["kept_gpus"], small["allocation"]["leafs"]) == (16, ["leaf0", "leaf1"])
    assert int(cluster.state.occupancy.ports_of_leaf.sum()) == 32 - 16
    one = cluster.do(asked.Resize(job, 3)).answer
    assert (one["allocation"]["stage"], one["kept_gpus"]) == ("server", 3)


def test_links_that_a_smaller_job_does_not_use_wait_for_their_rules() -> None:
    cluster = Cluster(keep_links=True)
    job = cluster.submit(32)
    small = cluster.do(asked.Resize(job, 16)).answer
    assert (small["releasing"], small["generation"]) == ([1], 2)
    assert len(cluster.state.occupancy.releasing["j1/1"].links) == 16
    cluster.do(asked.RulesGone(job, generation=1))
    assert not cluster.state.occupancy.releasing


def test_a_job_that_cannot_grow_where_it_is_moves_or_is_refused() -> None:
    cluster = Cluster()
    job, _neighbours = cluster.submit(2), [cluster.submit(2), cluster.submit(4)]
    refusal = cluster.refused(asked.Resize(job, 8, keep_all=True))
    assert refusal.code == "conflict"
    assert "keep_all" in refusal.remedy
    assert cluster.do(asked.Resize(job, 8)).answer["kept_gpus"] == 0


def test_a_job_that_cannot_have_more_keeps_what_it_has() -> None:
    cluster = Cluster()
    job = cluster.submit(16)
    before = _gpus(cluster, job)
    cluster.submit(16)
    refusal = cluster.refused(asked.Resize(job, 32))
    assert (refusal.code, refusal.details["reason"]) == ("conflict", "gpu-shortage")
    assert _gpus(cluster, job) == before


def test_a_waiting_job_asks_for_another_number() -> None:
    cluster = Cluster()
    cluster.submit(24)
    job = cluster.submit(32)
    assert cluster.do(asked.Resize(job, 8)).answer["state"] == "running"


@pytest.mark.parametrize("policy", ["ecmp", "laas", "ocs-vclos"])
def test_other_policies_resize_as_well(policy: str) -> None:
    cluster = Cluster(policy)
    job = cluster.submit(8)
    assert cluster.do(asked.Resize(job, 16)).answer["kept_gpus"] == 8
    assert cluster.do(asked.Resize(job, 8)).answer["kept_gpus"] == 8


def test_on_rails_a_job_that_grows_goes_through_the_rails_in_turn() -> None:
    """It had the last two GPUs of a server; with all of it, ranks go from the first rail on."""
    cluster = Cluster("vclos", "rails:8x4x4")
    first, grows = cluster.submit(2), cluster.submit(2)
    cluster.do(asked.End(first))
    cluster.submit(8)
    answer = cluster.do(asked.Resize(grows, 16, keep_all=True)).answer
    held = cluster.state.job(grows).allocation
    assert held is not None
    assert (answer["kept_gpus"], held.stage, held.gpus[:4]) == (2, "clos", (0, 1, 2, 3))
