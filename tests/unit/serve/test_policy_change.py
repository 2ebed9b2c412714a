"""The policy changes while jobs run."""

from __future__ import annotations

from serve_cluster import Cluster

from ropewalk.serve import operation as asked
from ropewalk.tenancy.parts import part_names


def test_jobs_that_share_links_keep_new_isolated_ones_off_their_leafs() -> None:
    cluster = Cluster("ecmp")
    shared = cluster.submit(16)
    answer = cluster.do(asked.ChangePolicy("vclos")).answer
    assert answer["sharing_links"] == [shared]
    inside, across = cluster.submit(8), cluster.do(asked.Submit("across", 8, servers=("server4", "server6"))).answer
    assert cluster.state_of(inside) == "running"
    assert across["allocation"]["guarantee"] == "contention-free" if across["state"] == "running" else True
    cluster.do(asked.End(shared))
    assert not cluster.state.open_links()


def test_isolated_jobs_keep_their_links_when_others_begin_to_share() -> None:
    cluster = Cluster()
    own = cluster.submit(16)
    answer = cluster.do(asked.ChangePolicy("source")).answer
    assert answer["links_of_their_own"] == [own]
    assert "may be slowed down" in answer["guarantee"]
    shared = cluster.do(asked.Submit("next", 16)).answer
    assert shared["allocation"]["stage"] == "shared"


def test_cables_become_circuits_only_where_no_job_crosses_leafs() -> None:
    cluster = Cluster()
    across, inside = cluster.submit(16), cluster.submit(4)
    refusal = cluster.refused(asked.ChangePolicy("ocs-vclos"))
    assert (refusal.code, refusal.details["jobs"]) == ("conflict", [across])
    cluster.do(asked.End(across))
    cluster.do(asked.ChangePolicy("ocs-vclos"))
    assert cluster.state_of(inside) == "running"
    assert cluster.do(asked.Submit("circuits", 16)).answer["allocation"]["stage"] == "ocs"


def test_waiting_jobs_that_can_never_start_under_the_new_policy_are_held() -> None:
    cluster = Cluster("ecmp")
    cluster.submit(32)
    odd, even = cluster.submit(20), cluster.submit(16)
    assert cluster.do(asked.ChangePolicy("vclos")).answer["put_aside"] == [odd]
    assert cluster.state.job(odd).held
    assert "can never start under vclos" in cluster.state.job(odd).note
    cluster.do(asked.End("j1"))
    assert cluster.state_of(even) == "running"
    assert cluster.refused(asked.Release(odd)).code == "impossible"


def test_another_order_sorts_those_who_wait() -> None:
    cluster = Cluster()
    cluster.submit(32)
    large, small = cluster.submit(16), cluster.submit(8)
    cluster.do(asked.ChangePolicy(queue="smallest"))
    assert [job.id for job in cluster.state.queued()] == [small, large]


def test_a_job_that_has_no_links_but_several_servers_is_in_the_way_of_patch_panels() -> None:
    cluster = Cluster(fabric="leaf-spine:4x8x8")
    inside = cluster.submit(6)
    refusal = cluster.refused(asked.ChangePolicy("topoopt"))
    assert refusal.details["jobs"] == [inside]
    assert refusal.message == (f"{inside} runs on several servers, which topoopt would have to join by patch panels")
    assert refusal.remedy == "wait until it has ended, or end it"


def test_parts_out_of_service_are_the_same_ones_where_another_plant_counts_them_differently() -> None:
    cluster = Cluster(fabric="fat-tree:8")
    cluster.do(asked.Drain(("core:core0.0",)))
    failed = ("core:core1.0", "link:edge0.0-agg0.1")
    cluster.do(asked.Fail(failed))
    cluster.do(asked.ChangePolicy("ocs-vclos"))
    plant = cluster.state.occupancy.plant
    assert part_names(plant, cluster.state.drained) == ("core:core0.0",)
    assert part_names(plant, cluster.state.failed) == ("link:edge0.0-agg0.1", "core:core1.0")
    assert cluster.state.occupancy.drained == cluster.state.drained | cluster.state.failed
    cluster.do(asked.Drain(("core:ocs0",)))
    refusal = cluster.refused(asked.ChangePolicy("vclos"))
    assert (refusal.message, refusal.details) == (
        "core:ocs0 is out of service, and does not exist under vclos", {"parts": ["core:ocs0"]}
    )  # fmt: skip
    cluster.do(asked.Restore(("core:ocs0",)))
    cluster.do(asked.ChangePolicy("vclos"))
    assert part_names(cluster.state.occupancy.plant, cluster.state.drained) == ("core:core0.0",)
    cluster.do(asked.Repair(failed))
    cluster.do(asked.Restore(("core:core0.0",)))
    assert not cluster.state.occupancy.drained


def test_a_spine_that_is_down_is_no_patch_panel_of_the_same_number() -> None:
    cluster = Cluster()
    cluster.do(asked.Fail(("spine:spine3", "link:leaf0-spine1")))
    refusal = cluster.refused(asked.ChangePolicy("topoopt"))
    assert refusal.details["parts"] == ["spine:spine3", "link:leaf0-spine1"]


def test_settings_that_do_not_exist_are_refused() -> None:
    refusal = Cluster().refused(asked.ChangePolicy("walls"))
    assert refusal.code == "invalid"
    assert "use one of" in refusal.message
    assert Cluster().refused(asked.ChangePolicy(queue="loudest")).code == "invalid"


def test_on_rails_racks_behind_panels_are_other_leafs_so_nothing_may_run() -> None:
    cluster = Cluster("topoopt", "rails:8x4x4")
    inside = cluster.submit(4)
    refusal = cluster.refused(asked.ChangePolicy("vclos"))
    assert (refusal.code, refusal.details["jobs"]) == ("conflict", [inside])
    cluster.do(asked.End(inside))
    cluster.do(asked.Drain(("leaf:unit1",)))
    assert "leafs or links are out of service" in cluster.refused(asked.ChangePolicy("vclos")).message
    cluster.do(asked.Restore(("leaf:unit1",)))
    cluster.do(asked.ChangePolicy("vclos"))
    assert len(cluster.do(asked.Submit("rails", 4)).answer["allocation"]["leafs"]) == 4
