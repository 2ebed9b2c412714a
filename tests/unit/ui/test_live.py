"""The live cluster as its page draws it: load of links, rails, tiers, and the last day."""

from __future__ import annotations

import numpy as np
import pytest
from serve_cluster import Cluster

from ropewalk.serve import operation as asked
from ropewalk.ui.day import DAY_S, day
from ropewalk.ui.live import link_load, live


def held(cluster):
    return [job.allocation for job in cluster.state.jobs.values() if job.allocation is not None]


def test_a_job_with_links_of_its_own_fills_each_of_them_just_once():
    cluster = Cluster()
    cluster.submit(32)
    load, above = link_load(cluster.state.occupancy.plant, held(cluster))
    assert np.array_equal(load, (load > 0).astype(float))
    assert int(load.sum()) == len(held(cluster)[0].links)
    assert above.size == 0


def test_a_job_inside_its_leaf_loads_no_link():
    cluster = Cluster()
    cluster.submit(4)
    load, _ = link_load(cluster.state.occupancy.plant, held(cluster))
    assert not load.any()


def test_a_lost_link_is_carried_by_the_others():
    cluster = Cluster()
    job = cluster.submit(32)
    found = live(cluster.state)
    leaf, spine = found["jobs"][0]["links"][0]
    cluster.do(asked.Fail((f"link:{found['leafs'][leaf]}-{found['spines'][spine]}",)))
    after = live(cluster.state)
    row = np.array(after["load"][leaf])
    assert row.sum() == np.array(found["load"][leaf]).sum()
    assert row.max() > 1.0
    assert [one["degraded"] for one in after["jobs"] if one["id"] == job] == [True]


def test_on_rails_a_leaf_shows_one_gpu_of_each_server_of_its_unit():
    cluster = Cluster(fabric="rails:8x4x4")
    cluster.submit(16)
    found = live(cluster.state)
    assert found["gpus_per_cell"] == 1
    assert [len(servers) for servers in found["servers"]] == [4] * 8
    assert sum(count for _, _, count in found["jobs"][0]["gpus_at"]) == 16
    assert {count for _, _, count in found["jobs"][0]["gpus_at"]} == {1}


def test_jobs_are_told_with_their_own_links_and_the_leafs_they_are_on():
    cluster = Cluster(fabric="rails:8x4x4")
    inside, over = cluster.submit(16), cluster.submit(8, servers=("server4", "server5"))
    shown = {one["id"]: one for one in live(cluster.state)["jobs"]}
    assert (shown[inside]["stage"], shown[inside]["on_leafs"], shown[inside]["dedicated_links"]) == ("leaf", 4, 0)
    assert shown[over]["recent_step_s"] is None
    tiers = Cluster(fabric="fat-tree:8")
    tiers.submit(32)
    (job,) = live(tiers.state)["jobs"]
    assert job["dedicated_links"] == len(job["links"]) == 32


@pytest.mark.parametrize(
    ("policy", "fabric", "gpus", "optical"),
    [
        ("ocs-vclos", "leaf-spine:4x8x8", 24, True),
        ("ocs-vclos-pods", "fat-tree:8", 32, False),
        ("vclos", "fat-tree:8", 32, False),
    ],
)
def test_links_in_circuits_are_reserved_as_others_are(policy, fabric, gpus, optical):
    cluster = Cluster(policy, fabric)
    links = live(cluster.state)["status"]["links"]
    assert links["free"] == links["total"] > 0
    cluster.submit(gpus)
    found = live(cluster.state)
    assert found["status"]["links"]["free"] == links["total"] - found["jobs"][0]["dedicated_links"]
    assert found["optical"] == optical


def test_slow_jobs_are_told_with_their_slowdown():
    cluster = Cluster()
    job = cluster.submit(8, promised_step_s=0.4)
    for number in range(4):
        cluster.now += 1.0
        cluster.do(asked.Progress(job, 10 * (number + 1), 6.0, 10))
    (shown,) = live(cluster.state)["jobs"]
    assert shown["slow"]
    assert round(shown["slowdown"], 6) == 1.5


def test_the_last_day_has_what_ran_and_what_waited():
    cluster = Cluster()
    first, waiting = cluster.submit(32), cluster.submit(16)
    began = cluster.state.job(first).started_at
    cluster.now += 100.0
    cluster.do(asked.End(first))
    cluster.now += 50.0
    found = day(cluster.state, cluster.now)
    bars = {one["id"]: one for one in found["jobs"]}
    assert bars[first]["ended_at"] == bars[waiting]["started_at"] > began
    assert found["left_out"] == 0
    assert [used for _, used in found["used"]] == [0, 32, 16]


def test_yesterday_is_not_drawn_but_what_still_runs_counts():
    cluster = Cluster()
    old, running = cluster.submit(8), cluster.submit(16)
    cluster.now += 10.0
    cluster.do(asked.End(old))
    found = day(cluster.state, cluster.now + DAY_S + 1.0)
    assert [one["id"] for one in found["jobs"]] == [running]
    assert found["used"] == [[found["since"], 16]]


def test_where_ended_jobs_were_forgotten_the_day_begins_later(monkeypatch):
    for module in ("ropewalk.serve.state", "ropewalk.ui.day"):
        monkeypatch.setattr(f"{module}.KEPT_ENDED", 3)
    cluster = Cluster()
    for _ in range(5):
        cluster.now += 1.0
        cluster.do(asked.End(cluster.submit(8)))
    oldest = next(iter(cluster.state.ended.values()))
    assert day(cluster.state, cluster.now)["since"] == oldest.ended_at


def test_of_many_jobs_the_largest_are_drawn(monkeypatch):
    monkeypatch.setattr("ropewalk.ui.day.MOST_BARS", 1)
    cluster = Cluster()
    large = cluster.submit(16)
    cluster.submit(4)
    cluster.now += 100.0
    found = day(cluster.state, cluster.now)
    assert [one["id"] for one in found["jobs"]] == [large]
    assert found["left_out"] == 1
    assert found["used"][-1][1] == 20
