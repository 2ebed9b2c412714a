"""Shards in replays: what a second panel saves, promises that hold or not, replays that continue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.codesign.sharing import FLIP_S, PATCH_S, patched_ahead, patched_between
from ropewalk.hardware.prices import price_list
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.question import ClusterQuestion, Conditions
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.shards.allocate import shard
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.simulation import Rules
from ropewalk.tenancy.study import answer
from ropewalk.tenancy.timeline import Timeline
from ropewalk.tenancy.work import Iteration, JobExchange

RACKS = plant("leaf-spine:4x4x8", gpus_per_server=4)
WORK = Iteration(1.0, (JobExchange("hierarchical-ring", 1e8),))


def run(jobs: list[Job], policy: str = "topoopt", backfill: str = "none", **asked: object) -> Timeline:
    one, rules = POLICIES[policy], Rules("source", backfill=backfill)
    return replay(one.plant(RACKS), jobs, allocate=one.make, rules=rules, policy=policy, check_every_event=True,
                  **asked)  # type: ignore[arg-type]  # fmt: skip


def whole(name: str, arrival_s: float = 0.0, iterations: float = 3000.0, gpus: int = 32) -> Job:
    return Job(name, gpus, arrival_s, iterations, WORK)


@pytest.mark.parametrize(("policy", "turns"), [("topoopt", patched_ahead), ("topoopt-one-panel", patched_between)])
def test_jobs_one_after_the_other_end_when_the_published_turns_say(policy: str, turns: object) -> None:
    found = run([whole(name) for name in "abc"], policy)
    alone_s = run([replace(whole("a"), iterations=3000.0)], policy).jobs[0].quiet_s
    expected = turns([alone_s] * 3, price_list(), 4, RACKS.nic_bandwidth)  # type: ignore[operator]
    assert [job.finish_s for job in found.jobs] == pytest.approx(list(expected.ends_s))


def test_who_waits_is_patched_ahead_and_only_changes_panels() -> None:
    found = run([whole("a"), whole("b", 10.0)])
    assert found.patching is not None
    assert (found.patching.shards, found.patching.ahead, found.patching.orders) == (2, 1, 2)
    assert found.patching.waited_s == pytest.approx(PATCH_S + 2 * FLIP_S)
    assert found.patching.waited_gpu_s == pytest.approx(32 * (PATCH_S + 2 * FLIP_S))


def test_who_came_too_late_waits_for_the_rest_of_its_cables() -> None:
    first = run([whole("a")]).jobs[0]
    found = run([whole("a"), whole("b", first.finish_s - 60.0)])
    assert found.jobs[1].jrt_s == pytest.approx(first.quiet_s + PATCH_S - 60.0 + FLIP_S)
    assert found.patching is not None
    assert found.patching.ahead == 0


def test_small_jobs_keep_off_promised_servers_where_others_are_free() -> None:
    """b is promised the four servers of a and those that are idle; c then takes a server of d, who has room."""
    jobs = [
        whole("d", 0.0, 9000.0, gpus=2),
        whole("a", 0.0, gpus=16),
        whole("b", 5.0, gpus=28),
        whole("c", 6.0, gpus=2),
    ]
    found = run(jobs, backfill="easy")
    at = {job.name: job for job in found.jobs}
    assert at["c"].start_s == 6.0
    assert {gpu // 4 for gpu in at["c"].allocation.gpus} == {gpu // 4 for gpu in at["d"].allocation.gpus}
    assert found.patching is not None
    assert found.patching.ahead == 1


def test_a_server_that_dies_sends_its_job_elsewhere_to_be_patched_again() -> None:
    failed = Failure(500.0, Drained(servers=[0]))
    found = run([whole("a", gpus=16)], failures=[failed])
    (job,) = found.jobs
    assert job.restarts == 1
    assert 0 not in {gpu // 4 for gpu in job.allocation.gpus}
    assert found.patching is not None
    assert found.patching.shards == 2


def test_a_replay_that_was_stopped_ends_with_the_same_bytes(tmp_path) -> None:
    jobs = [whole(f"j{at}", 40.0 * at, 100.0 + 60 * at, gpus=(8, 16, 28, 4, 12, 32)[at % 6]) for at in range(18)]

    class Killed(Exception): ...

    def stop(done: int, total: int | None, now: str) -> None:
        if done >= 6:
            raise Killed

    file = tmp_path / "run.json"
    with pytest.raises(Killed):
        run(jobs, checkpoint=file, checkpoint_every=1, progress=stop)
    assert run(jobs, checkpoint=file, resume=True).as_json() == run(jobs).as_json()


def test_studies_charge_the_patch_delay_that_was_asked_for() -> None:
    asked = ClusterQuestion(RACKS, [whole("a")], [POLICIES["topoopt-one-panel"]], Conditions(patch_delay_s=7.0))
    found = answer(asked)
    job = found.timelines[0].jobs[0]
    assert job.jrt_s == pytest.approx(job.quiet_s + 7.0)
    assert found.as_json()["kinds"]["topoopt-one-panel"]["patching"]["waited_s"] == 7.0


def test_switches_cannot_fail_where_there_are_none() -> None:
    failed = Failure(1.0, Drained(spines=[0]))
    asked = ClusterQuestion(
        RACKS, [whole("a")], [POLICIES["topoopt"], POLICIES["ecmp"]], Conditions(failures=(failed,))
    )
    found = answer(asked)
    assert [policy.name for policy in found.policies] == ["ecmp"]
    assert "no switches" in found.notes[0]


def test_promises_are_servers_of_one_island_those_that_are_free_first() -> None:
    islands = PanelPlant.of_plant(RACKS, panel_ports=4)
    assert islands.islands == 2
    jobs = [whole("a", 0.0, 9000.0, 12), whole("b", 0.0, 3000.0, 12), whole("c", 5.0, 1000.0, 16)]
    found = replay(islands, jobs, allocate=shard, rules=Rules("source"), policy="topoopt", check_every_event=True)
    at = {job.name: {gpu // 4 for gpu in job.allocation.gpus} for job in found.jobs}
    assert at == {"a": {0, 1, 2}, "b": {4, 5, 6}, "c": {4, 5, 6, 7}}
    assert found.patching is not None
    assert (found.patching.shards, found.patching.ahead, found.patching.in_vain) == (3, 1, 0)
