"""Jobs through the controller: they come, start, wait, end, are bound and expire."""

from __future__ import annotations

from serve_cluster import Cluster

from ropewalk.serve import operation as asked


def test_an_end_starts_as_many_as_fit_in_order() -> None:
    cluster = Cluster()
    whole = cluster.submit(32)
    waiting = [cluster.submit(16), cluster.submit(8), cluster.submit(32)]
    ended = cluster.do(asked.End(whole))
    assert [event.kind for event in ended.events] == ["job-ended", "job-started", "job-started"]
    assert [cluster.state_of(job) for job in waiting] == ["running", "running", "pending"]
    assert [job.id for job in ended.changed] == [whole, *waiting[:2]]


def test_the_first_in_line_blocks_those_behind_it() -> None:
    cluster = Cluster()
    cluster.submit(16)
    cluster.submit(32)
    small = cluster.do(asked.Submit("small", 4)).answer
    assert small["state"] == "pending"
    assert small["reason"]["code"] == "behind-in-queue"
    assert small["reason"]["details"]["ahead"] == ["j2"]


def test_backfill_is_advised_where_it_is_off_and_an_expected_time_where_it_is_on() -> None:
    remedies = []
    for backfill, expected_s in (("none", None), ("easy", None), ("easy", 1e6)):
        cluster = Cluster(backfill=backfill)
        cluster.submit(16, expected_s=100.0)
        cluster.submit(32)
        waits = cluster.do(asked.Submit("long", 8, expected_s=expected_s)).answer
        assert waits["reason"]["code"] == "behind-in-queue"
        remedies.append(waits["reason"]["remedy"])
    assert "turn on backfill" in remedies[0]
    assert "expected to run: backfill assumes 24 h" in remedies[1]
    assert "less time" in remedies[2]
    assert all("turn on" not in remedy for remedy in remedies[1:])


def test_backfill_lets_a_short_job_past_that_does_not_delay_the_first() -> None:
    cluster = Cluster(backfill="easy")
    cluster.submit(16, expected_s=100.0)
    cluster.submit(32)
    long, short = cluster.submit(8, expected_s=1000.0), cluster.submit(8, expected_s=50.0)
    assert (cluster.state_of(long), cluster.state_of(short)) == ("pending", "running")


def test_a_job_that_can_never_start_is_refused_and_not_queued() -> None:
    cluster = Cluster()
    refusal = cluster.refused(asked.Submit("odd", 20))
    assert refusal.code == "impossible"
    assert "no equal split" in refusal.message
    assert not cluster.state.jobs
    assert Cluster("laas").submit(20) == "j1"


def test_priority_comes_before_arrival() -> None:
    cluster = Cluster()
    first = cluster.submit(32)
    low, high = cluster.submit(32), cluster.submit(32, priority=1.0)
    cluster.do(asked.End(first))
    assert (cluster.state_of(low), cluster.state_of(high)) == ("pending", "running")


def test_ending_twice_changes_nothing() -> None:
    cluster = Cluster()
    job = cluster.submit(8)
    once = cluster.do(asked.End(job, "failed", "it crashed"))
    again = cluster.do(asked.End(job))
    assert again.answer == once.answer
    assert not again.changed
    assert not again.events


def test_the_version_goes_up_once_for_each_operation_that_changes_a_job() -> None:
    cluster = Cluster()
    cluster.submit(32)
    job = cluster.submit(8)
    assert cluster.state.job(job).version == 1
    cluster.do(asked.Hold(job))
    cluster.do(asked.Hold(job))
    assert cluster.state.job(job).version == 2
    cluster.do(asked.End("j1"))
    assert cluster.state.job(job).version == 2
    assert cluster.do(asked.Release(job)).answer["version"] == 3


def test_a_held_job_keeps_its_place_and_starts_when_released() -> None:
    cluster = Cluster()
    first = cluster.submit(32)
    held, behind = cluster.submit(32, hold=True), cluster.submit(32)
    cluster.do(asked.Release(held))
    cluster.do(asked.End(first))
    assert (cluster.state_of(held), cluster.state_of(behind)) == ("running", "pending")
    assert cluster.refused(asked.Hold(held)).code == "wrong-state"


def test_exact_servers_are_given_or_waited_for() -> None:
    cluster = Cluster()
    job = cluster.do(asked.Submit("here", 8, servers=("server3", "server6"))).answer
    assert [one["name"] for one in job["allocation"]["servers"]] == ["server3", "server6"]
    assert job["allocation"]["guarantee"] == "contention-free"
    second = cluster.do(asked.Submit("there", 4, servers=("server6",))).answer
    assert second["reason"]["code"] == "server-fragmentation"
    assert "server6" in second["reason"]["message"]
    assert second["reason"]["remedy"] == "wait until these servers are free, or submit it again for other servers"
    cluster.do(asked.End(job["id"]))
    assert cluster.state_of(second["id"]) == "running"


def test_exact_servers_on_unequal_leafs_get_links_and_a_weaker_promise() -> None:
    cluster = Cluster()
    job = cluster.do(asked.Submit("here", 12, servers=("server0", "server1", "server6"))).answer
    assert job["allocation"]["guarantee"] == "rearrangeable"
    assert job["allocation"]["links"] == 16


def test_servers_that_do_not_exist_are_refused_by_name() -> None:
    refusal = Cluster().refused(asked.Submit("here", 4, servers=("server99",)))
    assert (refusal.code, refusal.details) == ("not-found", {"servers": ["server99"]})


def test_an_unbound_reservation_expires_and_a_bound_one_does_not() -> None:
    cluster = Cluster()
    lost, bound = cluster.submit(8, expires_s=5.0), cluster.submit(8, expires_s=5.0)
    cluster.do(asked.Bind(bound, "slurm:7"))
    cluster.now += 10.0
    assert cluster.controller.next_expiry == 6.0
    assert cluster.do(asked.Expire()).answer == {"expired": [lost]}
    assert cluster.state.job(lost).outcome == "lost"
    assert cluster.state_of(bound) == "running"
    assert cluster.refused(asked.Bind(bound, "slurm:8")).code == "conflict"


def test_links_stay_taken_until_their_rules_are_gone() -> None:
    cluster = Cluster(keep_links=True)
    whole = cluster.submit(32)
    cluster.do(asked.End(whole))
    assert cluster.state.occupancy.free == 32
    waiting = cluster.do(asked.Submit("next", 16)).answer
    assert waiting["reason"]["code"] == "network-fragmentation"
    inside = cluster.submit(8, priority=1.0)
    assert cluster.state_of(inside) == "running"
    gone = cluster.do(asked.RulesGone(whole, generation=1))
    assert [event.kind for event in gone.events] == ["links-released", "job-started"]
    assert whole not in cluster.state.jobs
    assert not cluster.do(asked.RulesGone(whole)).changed


def test_turning_the_keeping_of_links_off_frees_them() -> None:
    cluster = Cluster(keep_links=True)
    cluster.do(asked.End(cluster.submit(32)))
    assert cluster.state.occupancy.releasing
    cluster.do(asked.ChangePolicy(keep_links=False))
    assert not cluster.state.occupancy.releasing
    assert not cluster.state.jobs


def test_a_running_job_is_adopted_with_links_around_the_others() -> None:
    cluster = Cluster()
    job = cluster.do(asked.Adopt("there", ("server0", "server2"), external="slurm:3", started_at=0.0)).answer
    assert (job["state"], job["managed"], job["allocation"]["links"]) == ("running", True, 8)
    assert cluster.do(asked.Adopt("there", ("server0", "server2"), external="slurm:3")).answer == job
    refusal = cluster.refused(asked.Adopt("also there", ("server2", "server3")))
    assert (refusal.code, refusal.details["jobs"]) == ("conflict", ["j1"])


def test_an_adopted_job_without_free_links_is_unmanaged_and_keeps_others_off_its_leafs() -> None:
    cluster = Cluster(keep_links=True)
    cluster.do(asked.End(cluster.submit(32)))
    job = cluster.do(asked.Adopt("there", ("server0", "server2"))).answer
    assert (job["managed"], job["allocation"]["guarantee"]) == (False, "none")
    cluster.do(asked.RulesGone("j1"))
    other = cluster.do(asked.Submit("isolated", 16)).answer
    assert other["allocation"]["leafs"] == ["leaf2", "leaf3"]
    cluster.do(asked.End(job["id"]))
    assert not cluster.state.open_links()


def test_an_adopted_job_displaces_those_that_were_given_its_servers() -> None:
    cluster = Cluster()
    given = cluster.submit(32)
    job = cluster.do(asked.Adopt("there", ("server0", "server1"), displaces=(given,)))
    assert [event.kind for event in job.events] == ["job-requeued", "job-adopted"]
    assert cluster.state.job(given).again
    assert cluster.state_of(given) == "pending"


def test_on_rails_links_are_for_whole_servers() -> None:
    """Half of each of two servers of a unit are as many GPUs as one whole server, but on half of its rails."""
    cluster = Cluster(fabric="rails:8x4x4")
    servers = ("server0", "server1", "server4", "server5")
    refusal = cluster.refused(asked.Submit("halves", 8, servers=servers))
    assert (refusal.code, "in whole servers" in refusal.message) == ("impossible", True)
    adopted = cluster.do(asked.Adopt("halves", servers, 8)).answer
    assert (adopted["managed"], adopted["allocation"]["stage"]) == (False, "shared")
    whole = cluster.do(asked.Submit("whole", 8, servers=("server2", "server6"))).answer
    assert whole["state"] == "pending", "the halves send over all spines of these leafs"
    cluster.do(asked.End(str(adopted["id"])))
    got = cluster.state.job(str(whole["id"])).allocation
    assert got is not None
    assert (got.stage, got.guarantee) == ("clos", "contention-free")
