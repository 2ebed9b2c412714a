"""Servers, leafs, spines and links go out of service and come back."""

from __future__ import annotations

import pytest
from serve_cluster import Cluster

from ropewalk.serve import operation as asked
from ropewalk.serve.asked import ReceivedRequest
from ropewalk.serve.reads import plant
from ropewalk.tenancy.drained import Drained


def test_a_drained_server_keeps_its_job_and_gets_no_other() -> None:
    cluster = Cluster()
    job = cluster.submit(4)
    drained = cluster.do(asked.Drain(("server:server0", "spine:spine1"), "fan"))
    assert drained.answer["affected"] == [job]
    assert drained.events[0].document == {"parts": ["server:server0", "spine:spine1"], "note": "fan"}
    assert cluster.state_of(job) == "running"
    cluster.do(asked.End(job))
    assert cluster.state.occupancy.free == 28
    assert not cluster.do(asked.Drain(("server:server0",))).events
    cluster.do(asked.Restore(("server:server0",)))
    assert cluster.state.occupancy.free == 32


def test_the_plant_names_optical_switches_that_are_out_of_service() -> None:
    cluster = Cluster("ocs-vclos")
    cluster.do(asked.Drain(("spine:ocs7",)))
    cluster.do(asked.Fail(("link:leaf0-ocs1",)))
    shown = plant(cluster.state, ReceivedRequest(None, {}, {}))
    assert (shown["drained"], shown["failed"]) == (["spine:ocs7"], ["link:leaf0-ocs1"])


def test_a_part_that_is_drained_and_failed_comes_back_when_both_are_over() -> None:
    cluster = Cluster()
    cluster.do(asked.Drain(("server:server0",)))
    cluster.do(asked.Fail(("server:server0",)))
    cluster.do(asked.Restore(("server:server0",)))
    assert cluster.state.occupancy.free == 28
    cluster.do(asked.Repair(("server:server0",)))
    assert cluster.state.occupancy.free == 32


def test_a_failed_server_ends_its_job_or_sends_it_to_the_front_of_the_queue() -> None:
    cluster = Cluster()
    dies, again = cluster.submit(8), cluster.submit(8, requeue=True)
    cluster.submit(16)
    waits = cluster.submit(8)
    failed = cluster.do(asked.Fail(("leaf:leaf0", "leaf:leaf1"))).answer
    assert failed["became"] == {dies: "failed", again: "requeued"}
    assert cluster.state.job(dies).outcome == "failed"
    assert [job.id for job in cluster.state.queued()] == [again, waits]
    repaired = cluster.do(asked.Repair(("leaf:leaf1",)))
    assert [event.kind for event in repaired.events] == ["parts-repaired", "job-started"]
    assert cluster.state.job(again).restarts == 1


def test_a_job_that_loses_a_link_gets_another_spine_and_keeps_the_others() -> None:
    cluster = Cluster()
    job = cluster.submit(8, servers=("server0", "server2"))
    before = cluster.state.job(job).allocation
    assert before is not None
    dead = before.spines[1]
    failed = cluster.do(asked.Fail((f"link:leaf0-spine{dead}",)))
    after = cluster.state.job(job).allocation
    assert after is not None
    assert failed.answer["became"] == {job: "rerouted"}
    assert after.gpus == before.gpus
    assert after.guarantee == "contention-free"
    assert [a == b for a, b in zip(before.spines, after.spines, strict=True)] == [True, False, True, True]
    assert cluster.state.job(job).generation == 2


def test_without_another_spine_a_job_shares_its_own_links_and_heals_with_the_repair() -> None:
    cluster = Cluster()
    job = cluster.submit(32)
    failed = cluster.do(asked.Fail(("spine:spine3",)))
    held = cluster.state.job(job).allocation
    assert held is not None
    assert failed.answer["became"] == {job: "degraded"}
    assert (held.guarantee, len(held.links), cluster.state.job(job).degraded) == ("none", 28, True)
    assert 3 not in held.spine_of_gpu
    cluster.do(asked.Repair(("spine:spine3",)))
    healed = cluster.state.job(job)
    assert healed.allocation is not None
    assert (healed.allocation.guarantee, len(healed.allocation.links), healed.degraded) == (
        "contention-free",
        32,
        False,
    )


def test_a_degraded_job_heals_when_drained_links_come_back() -> None:
    cluster = Cluster()
    job = cluster.submit(32)
    cluster.do(asked.Drain(("link:leaf1-spine5",)))
    cluster.do(asked.Fail(("spine:spine3",)))
    still = cluster.do(asked.Repair(("spine:spine3",))).answer
    assert (still["affected"], cluster.state.job(job).degraded) == ([], True)
    back = cluster.do(asked.Restore(("link:leaf1-spine5",)))
    assert back.answer["affected"] == [job]
    assert [event.kind for event in back.events] == ["parts-restored", "job-rerouted"]
    assert not cluster.state.job(job).degraded


@pytest.mark.parametrize("keep_links", [False, True])
def test_a_degraded_job_heals_when_another_lets_go_of_links(keep_links: bool) -> None:
    """Each has all spines between two pairs of leafs; what one job has left is what the other may get."""
    cluster = Cluster(keep_links=keep_links)
    hurt, other = (cluster.submit(8, servers=servers) for servers in (("server0", "server2"), ("server1", "server3")))
    cluster.do(asked.Fail(("link:leaf0-spine0",)))
    assert cluster.state.job(hurt).degraded
    ended = cluster.do(asked.End(other))
    if keep_links:
        assert cluster.state.job(hurt).degraded, "links of the other are still on devices"
        ended = cluster.do(asked.RulesGone(other))
    assert ended.events[-1].kind == "job-rerouted"
    healed = cluster.state.job(hurt)
    assert healed.allocation is not None
    assert (healed.degraded, healed.allocation.guarantee) == (False, "contention-free")


def test_of_many_degraded_jobs_some_are_tried_at_a_time_and_all_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr("ropewalk.serve.dispatch.MOST_TRIED", 1)
    monkeypatch.setattr("ropewalk.serve.healing._heal", lambda _, job: tried.append(job.id))
    cluster = Cluster()
    pairs = (("server0", "server2"), ("server1", "server3"))
    hurt = [cluster.submit(8, servers=servers) for servers in pairs]
    cluster.do(asked.Fail(("link:leaf0-spine0", "link:leaf0-spine4")))
    assert cluster.state.degraded == set(hurt)
    for _ in range(2):
        before = len(tried)
        cluster.do(asked.End(cluster.submit(8, servers=("server4", "server6"))))
        assert len(tried) == before + 1
    assert set(tried[-2:]) == set(hurt)


def test_without_another_spine_a_job_that_may_be_queued_again_is() -> None:
    cluster = Cluster()
    job = cluster.submit(32, requeue=True)
    assert cluster.do(asked.Fail(("spine:spine3",))).answer["became"] == {job: "requeued"}


def test_a_job_whose_spines_are_all_gone_runs_over_links_of_others_and_says_so() -> None:
    cluster = Cluster()
    job = cluster.submit(8, servers=("server0", "server2"))
    dead = tuple(f"link:leaf0-spine{spine}" for spine in range(8))
    failed = cluster.do(asked.Fail(dead))
    assert failed.answer["became"] == {job: "degraded"}
    assert "other jobs" in failed.events[-1].document["note"]
    held = cluster.state.job(job).allocation
    assert held is not None
    assert held.stage == "shared"


@pytest.mark.parametrize(("plant", "gpus", "spine"), [("fat-tree:8", 32, "agg0.0"), ("rails:8x4x4", 32, "spine0")])
def test_a_job_that_shares_links_of_others_gets_its_own_back_with_the_repair(plant: str, gpus: int, spine: str) -> None:
    """On three tiers and on rails a job that lacks one link has none left; those it may use are out for others only."""
    cluster = Cluster("vclos", plant)
    job = cluster.submit(gpus)
    before = cluster.state.job(job).allocation
    assert before is not None
    assert before.guarantee == "contention-free"
    assert cluster.do(asked.Fail((f"spine:{spine}",))).answer["became"] == {job: "degraded"}
    hurt = cluster.state.job(job).allocation
    assert hurt is not None
    assert (hurt.stage, hurt.links) == ("shared", ())
    assert cluster.do(asked.Repair((f"spine:{spine}",))).answer["affected"] == [job]
    healed = cluster.state.job(job)
    assert healed.allocation is not None
    assert (healed.degraded, healed.allocation.guarantee) == (False, "contention-free")
    assert len(healed.allocation.links) == len(before.links)
    assert cluster.state.open_links() == Drained()


def test_a_job_that_shares_links_of_others_gets_its_own_where_it_is_resized() -> None:
    cluster = Cluster("vclos", "fat-tree:8")
    job = cluster.submit(32)
    cluster.do(asked.Fail(("core:core0.0",)))
    assert cluster.state.job(job).degraded
    cluster.do(asked.Resize(job, 16, keep_all=True))  # one pod needs no cores
    resized = cluster.state.job(job)
    assert resized.allocation is not None
    assert (resized.degraded, resized.allocation.guarantee) == (False, "contention-free")


def test_a_job_on_circuits_that_loses_a_switch_gets_other_circuits_or_stops() -> None:
    cluster = Cluster("ocs-vclos")
    job = cluster.submit(8, servers=("server0", "server2"))
    held = cluster.state.job(job).allocation
    assert held is not None
    switch = cluster.state.occupancy.plant.spine_names[held.spines[0]]
    assert cluster.do(asked.Fail((f"spine:{switch}",))).answer["became"] == {job: "rerouted"}
    full = Cluster("ocs-vclos")
    whole = full.submit(32)
    assert full.do(asked.Fail(("spine:ocs7",))).answer["became"] == {whole: "failed"}


def test_parts_that_do_not_exist_are_refused() -> None:
    assert Cluster().refused(asked.Drain(("server:nobody",))).code == "not-found"
    assert Cluster().refused(asked.Fail(("link:leaf0-spine99",))).code == "not-found"


def test_a_job_over_pods_whose_core_dies_keeps_its_gpus_and_gets_other_circuits() -> None:
    cluster = Cluster("ocs-vclos", "fat-tree:8")
    job = cluster.submit(32)
    before = cluster.state.job(job).allocation
    assert before is not None
    assert before.stage == "ocs-core"
    plant = cluster.state.occupancy.plant
    core = plant.core_names[before.core_of_gpu[0]]
    assert core.startswith("core")
    failed = cluster.do(asked.Fail((f"core:{core}",)))
    after = cluster.state.job(job).allocation
    assert after is not None
    assert failed.answer["became"] == {job: "rerouted"}
    assert after.gpus == before.gpus
    assert core not in {plant.core_names[one] for one in after.core_of_gpu}
    # Four leafs in each pod need all four switches: without one of them there is no way.
    assert cluster.do(asked.Fail((f"core:{plant.core_names[0]}",))).answer["became"] == {job: "failed"}


def test_rules_of_circuits_above_pods_are_not_written_so_their_links_cannot_be_kept() -> None:
    cluster = Cluster("ocs-vclos", "fat-tree:8")
    refusal = cluster.refused(asked.ChangePolicy(keep_links=True))
    assert refusal.code == "invalid"
    assert "rules of ocs-vclos are not written on three tiers" in str(refusal)


def test_a_job_over_pods_keeps_its_gpus_when_a_spine_with_circuits_inside_its_pod_dies() -> None:
    cluster = Cluster("ocs-vclos-pods", "fat-tree:8")
    job = cluster.submit(8, servers=("server0", "server4"))
    before = cluster.state.job(job).allocation
    assert before is not None
    assert (before.stage, len(before.leafs), len(before.core_links)) == ("ocs-pods", 2, 8)
    plant = cluster.state.occupancy.plant
    spine = plant.spine_names[before.spines[0]]
    # Four lanes in each pod are all that there are: without one, leafs are two virtual ones of two GPUs each.
    assert cluster.do(asked.Fail((f"spine:{spine}",))).answer["became"] == {job: "rerouted"}
    after = cluster.state.job(job).allocation
    assert after is not None
    assert after.gpus == before.gpus
    assert len(set(after.spine_of_gpu)) == 4
    assert spine not in {plant.spine_names[one] for one in after.spines}
    inside = cluster.submit(8, servers=("server8", "server9"))
    held = cluster.state.job(inside).allocation
    assert held is not None
    assert held.stage == "ocs"
