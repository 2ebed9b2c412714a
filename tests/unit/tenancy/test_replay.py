"""Whole traces of a few jobs, by hand."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ropewalk.documents.sealed import sealed
from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.record import BEHIND_HEAD, JobRecord
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.simulation import Rules
from ropewalk.tenancy.timeline import Timeline
from ropewalk.tenancy.work import Iteration, JobExchange

NIC = 12.5e9
SECOND = Iteration(1.0)
"""An iteration of one second without a byte."""


def ring_work(compute_s: float, ring_s: float, gpus: int) -> Iteration:
    """Computing, and a flat ring that takes so long where only NICs limit it."""
    return Iteration(compute_s, (JobExchange("ring", ring_s * NIC * gpus / (2 * (gpus - 1))),))


def times(found: Timeline) -> list[tuple[float, float]]:
    return [(job.start_s, job.finish_s) for job in found.jobs]


def spans(job: JobRecord) -> list[tuple[float, float]]:
    """Begin and end of everything it ran."""
    return [(stretch.start_s, stretch.end_s) for stretch in job.stretches]


@pytest.fixture
def eight() -> Plant:
    return plant("leaf-spine:1x1x8", gpus_per_server=8)


def test_head_of_line_blocking_keeps_a_job_waiting_that_would_fit(eight: Plant) -> None:
    jobs = [Job("a", 6, 0.0, 10, SECOND), Job("b", 6, 1.0, 10, SECOND), Job("c", 2, 2.0, 1, SECOND)]
    found = replay(eight, jobs, allocate="none", rules=Rules("ideal"))
    assert times(found) == [(0.0, 10.0), (10.0, 20.0), (10.0, 11.0)]
    assert found.jobs[1].waited_s == {"gpu-shortage": 9.0}
    assert found.jobs[2].waited_s == {BEHIND_HEAD: 8.0}
    assert found.waiting_reasons() == {BEHIND_HEAD: 8.0, "gpu-shortage": 9.0}
    assert found.waiting_ratio == 0.0
    assert found.waiting_causes() == {"gpu-shortage": 17.0}  # of b, and of c because of b
    assert found.causes_of(found.jobs[2]) == {"gpu-shortage": 8.0}


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_backfill_starts_what_does_not_delay_the_head(eight: Plant, backfill: str) -> None:
    jobs = [Job("a", 6, 0.0, 10, SECOND), Job("b", 6, 1.0, 10, SECOND), Job("c", 2, 2.0, 1, SECOND)]
    found = replay(eight, jobs, allocate="none", rules=Rules("ideal", backfill=backfill))
    assert times(found) == [(0.0, 10.0), (10.0, 20.0), (2.0, 3.0)]


def test_queues_start_waiting_jobs_in_their_own_order(eight: Plant) -> None:
    jobs = [
        Job("first", 8, 0.0, 10, SECOND),
        Job("big", 8, 1.0, 2, SECOND, deadline_s=100.0),
        Job("long", 4, 2.0, 9, SECOND, deadline_s=50.0),
        Job("late", 8, 3.0, 1, SECOND),
    ]
    starts = {
        queue: [job.start_s for job in replay(eight, jobs, allocate="none", rules=Rules("ideal", queue=queue)).jobs[1:]]
        for queue in ("fifo", "smallest", "edf", "shortest")
    }
    assert starts == {
        "fifo": [10.0, 12.0, 21.0],
        "smallest": [19.0, 10.0, 21.0],
        "edf": [19.0, 10.0, 21.0],
        "shortest": [11.0, 13.0, 10.0],
    }


def test_one_gpu_jobs_on_one_server_are_a_single_server_queue() -> None:
    """Deterministic service of 4 s, arrivals every 3 s: the n-th job waits n seconds (Lindley's recursion)."""
    one = Plant("one", 1, np.array([0]), np.array([[1]]))
    jobs = [Job(f"j{number}", 1, 3.0 * number, 4, SECOND) for number in range(6)]
    found = replay(one, jobs, allocate="none", rules=Rules("ideal"))
    assert [job.jwt_s for job in found.jobs] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert found.gpu_utilisation == pytest.approx(1.0)
    assert found.mean_jct_s == pytest.approx(4 + 2.5)


def test_exponential_queue_matches_its_closed_form() -> None:
    """M/M/1 at a load of 1/2: mean completion is 1 / (service rate - arrival rate) = 2 mean services."""
    one = Plant("one", 1, np.array([0]), np.array([[1]]))
    random = np.random.default_rng(7)
    arrivals = np.cumsum(random.exponential(2.0, 4000))
    service = random.exponential(1.0, 4000)
    jobs = [Job(f"j{n}", 1, float(arrivals[n]), float(service[n]), SECOND) for n in range(4000)]
    found = replay(one, jobs, allocate="none", rules=Rules("ideal"))
    assert found.mean_jct_s == pytest.approx(2.0, rel=0.12)
    assert found.gpu_utilisation == pytest.approx(0.5, rel=0.05)


def test_half_a_round_alone_then_a_sharer_leaves_one_whole_round_time() -> None:
    """What is done stays done: half the bytes at half the rate take T more, not 1.5 T."""
    where = plant("leaf-spine:2x1x2", gpus_per_server=1)
    work = ring_work(0.0, 10.0, 2)

    def allocate(state: object, name: str, gpus: int) -> object:
        return on(where, name, [0, 2] if name == "a" else [1, 3])

    jobs = [Job("a", 2, 0.0, 1, work), Job("b", 2, 5.0, 10, work)]
    found = replay(where, jobs, allocate=allocate, rules=Rules("ecmp"), policy="by hand")  # type: ignore[arg-type]
    assert found.jobs[0].finish_s == pytest.approx(15.0)
    assert found.jobs[1].finish_s == pytest.approx(15.0 + 95.0)
    assert found.jobs[0].quiet_s == pytest.approx(10.0)
    assert found.contention_ratio == pytest.approx((0.5 + 0.5) * 1 / 11)


def on(where: Plant, job: str, gpus: list[int]) -> Allocation:
    leafs = where.leaf_of_gpu[gpus].tolist()
    return Allocation(
        job, tuple(gpus), "shared", tuple(sorted(set(leafs))), (), (), (-1,) * len(gpus), tuple(leafs), "none"
    )


def mixed_trace(jobs: int, seed: int = 0) -> list[Job]:
    """Jobs of 2 to 16 GPUs with rings and all-to-alls that come faster than 64 GPUs can take them."""
    random = np.random.default_rng(seed)
    found, now = [], 0.0
    for number in range(jobs):
        now += float(random.exponential(3.0))
        gpus = int(random.choice([2, 4, 8, 16]))
        collective = str(random.choice(["ring", "halving-doubling", "all-to-all"]))
        found.append(
            Job(
                f"j{number}", gpus, now, int(random.integers(5, 40)),
                Iteration(0.5, (JobExchange(collective, 0.3 * NIC),)), deadline_s=now + 100.0,
            )
        )  # fmt: skip
    return found


@pytest.fixture
def sixty_four() -> Plant:
    return plant("leaf-spine:8x8x8", gpus_per_server=2)


@pytest.mark.parametrize("policy", ["vclos", "vclos-all-divisors", "laas", "none"])
@pytest.mark.parametrize("queue", ["fifo", "edf"])
def test_invariants_hold_after_every_event_of_a_busy_trace(sixty_four: Plant, policy: str, queue: str) -> None:
    routing = "ecmp" if policy == "none" else "source"
    jobs = mixed_trace(60)
    found = replay(sixty_four, jobs, allocate=policy, rules=Rules(routing, queue=queue), check_every_event=True)
    assert len(found.jobs) == 60
    assert all(job.start_s >= job.arrival_s for job in found.jobs)
    assert all(sum(job.waited_s.values()) == pytest.approx(job.jwt_s) for job in found.jobs)
    assert found.utilisation_of_wanted <= 1.0
    if policy != "none":
        assert found.contention_ratio == 0.0 or policy == "laas"


def test_isolated_jobs_run_at_quiet_speed_and_wait_for_spines(sixty_four: Plant) -> None:
    jobs = mixed_trace(80)
    isolated = replay(sixty_four, jobs, allocate="vclos", rules=Rules("source"))
    for job in isolated.jobs:
        assert job.jrt_s == pytest.approx(job.quiet_s)
    shared = replay(sixty_four, jobs, allocate="none", rules=Rules("ecmp"))
    assert shared.mean_slowdown > 1.02
    assert shared.contention_ratio > 0.1
    assert shared.network_fragmentation_events == 0


def test_a_job_that_can_never_start_is_refused_and_blocks_nobody(sixty_four: Plant) -> None:
    jobs = [Job("prime", 11, 0.0, 5, SECOND), Job("next", 4, 1.0, 5, SECOND)]
    found = replay(sixty_four, jobs, allocate="vclos", rules=Rules("source"))
    assert [job.name for job in found.jobs] == ["next"]
    assert [refusal.name for refusal in found.refused] == ["prime"]
    assert found.refused[0].explanation
    assert found.summary()["refused_jobs"] == 1


def test_bad_jobs_are_all_named_at_once(sixty_four: Plant) -> None:
    jobs = [Job("a", 65, 0.0, 1, SECOND), Job("b", 0, -1.0, 0, SECOND), Job("b", 1, 0.0, 1, SECOND)]
    with pytest.raises(ClusterError) as caught:
        replay(sixty_four, jobs, allocate="none")
    for part in ("asks for 65 GPUs", "asks for 0 GPUs", "arrives at -1.0 s", "has 0 iterations", "'b' is listed twice"):
        assert part in str(caught.value)
    with pytest.raises(ClusterError, match="the list is empty"):
        replay(sixty_four, [], allocate="none")
    with pytest.raises(ClusterError, match="no isolation 'luck'"):
        replay(sixty_four, jobs[2:], allocate="luck")


def test_ocs_vclos_charges_a_job_with_circuits_its_mirrors_once_and_others_nothing() -> None:
    where = OpticalPlant.of_plant(plant("leaf-spine:4x4x4", gpus_per_server=2), reconfiguration_s=3.0)
    jobs = [Job("wide", 8, 0.0, 10, ring_work(0.5, 0.5, 8)), Job("near", 4, 0.0, 10, SECOND)]
    found = replay(where, jobs, allocate="ocs-vclos", rules=Rules("source"), check_every_event=True)
    assert [job.allocation.stage for job in found.jobs] == ["ocs", "leaf"]
    assert times(found) == [(0.0, pytest.approx(13.0)), (0.0, 10.0)]
    assert found.settings["circuit_delay_s"] == 3.0
    with pytest.raises(ClusterError, match="has no optical switches"):
        replay(plant("leaf-spine:4x4x4", gpus_per_server=2), jobs, allocate="ocs-vclos", rules=Rules("source"))


def test_every_try_of_a_head_that_failed_is_written_down(eight: Plant) -> None:
    jobs = [Job("a", 6, 0.0, 10, SECOND), Job("b", 6, 1.0, 10, SECOND), Job("c", 2, 2.0, 1, SECOND)]
    found = replay(eight, jobs, allocate="none", rules=Rules("ideal"))
    assert [(one.job, one.at_s, one.reason) for one in found.blocked] == [("b", 1.0, "gpu-shortage")]
    assert [head and head.name for head in map(found.head_at, (0.5, 1.0, 9.9, 10.0))] == [None, "b", "b", None]


# Failures.


def test_a_dead_leaf_sends_its_job_to_the_head_of_the_line(eight: Plant) -> None:
    where = plant("leaf-spine:2x4x4", gpus_per_server=4)
    jobs = [Job("a", 4, 0.0, 10, SECOND), Job("b", 4, 0.0, 10, SECOND), Job("c", 4, 1.0, 10, SECOND)]
    failure = Failure(4.5, Drained(leafs=[0]), until_s=100.0)
    found = replay(where, jobs, allocate="none", rules=Rules("ideal"), failures=[failure], check_every_event=True)
    a, b, c = found.jobs
    assert b.finish_s == 10.0
    assert spans(a) == [(0.0, 4.5), (10.0, 16.0)]  # four whole iterations stay done
    assert a.restarts == 1
    assert a.quiet_s == 10.0
    assert a.jwt_s == pytest.approx(16.0 - 4.5 - 6.0)
    assert sum(a.waited_s.values()) == pytest.approx(a.jwt_s)  # no running time among it
    assert spans(c) == [(16.0, 26.0)]
    assert [stretch.allocation.leafs for stretch in a.stretches] == [(0,), (1,)]
    assert [a.place_at(when) is None for when in (0.0, 4.4, 4.5, 9.9, 10.0, 16.0)] == [
        False, False, True, True, False, True,
    ]  # fmt: skip


def vclos_pair() -> tuple[Plant, list[Job]]:
    """Two isolated jobs of two leafs each on 4 leafs, all-reducing over every reserved spine."""
    where = plant("leaf-spine:4x4x4", gpus_per_server=2)
    return where, [Job(name, 8, 0.0, 50, ring_work(0.5, 0.5, 8)) for name in ("a", "b")]


def neighbours(state: object, name: str, gpus: int) -> Allocation:
    """Two jobs on the same two leafs, each with two spines of its own."""
    seats, spines = ((0, 1, 4, 5), (0, 1)) if name == "a" else ((2, 3, 6, 7), (2, 3))
    links = tuple((leaf, spine) for leaf in (0, 1) for spine in spines)
    return Allocation(name, seats, "clos", (0, 1), spines, links, spines * 2, (0, 0, 1, 1))


def test_failing_over_to_ecmp_keeps_the_job_running_and_breaks_isolation() -> None:
    """The last GPU of a leaf sends the ring on; its link dies, and the hash may lead over a link of the neighbour."""
    where = plant("leaf-spine:2x4x4", gpus_per_server=2)
    jobs = [Job(name, 4, 0.0, 50, ring_work(0.1, 0.9, 4)) for name in ("a", "b")]
    failure = Failure(10.0, Drained(links=[(0, 1)]))
    slowed = set()
    for seed in range(12):
        found = replay(where, jobs, allocate=neighbours, rules=Rules("source", seed=seed), failures=[failure])
        a, b = found.jobs
        assert a.restarts == 0
        assert a.stretches[0].start_s == 0.0
        slowed.add((a.jrt_s > a.quiet_s * 1.1, b.jrt_s > b.quiet_s * 1.1))
    assert slowed == {(False, False), (True, True)}


def test_re_placing_stops_the_job_and_gives_it_links_that_live() -> None:
    where, jobs = vclos_pair()
    held = replay(where, jobs, allocate="vclos", rules=Rules("source")).jobs[0].allocation
    dead = held.links[0]
    failure = Failure(10.2, Drained(links=[dead]))
    found = replay(
        where, jobs[:1], allocate="vclos", rules=Rules("source", when_a_link_dies="re-place"), failures=[failure],
        check_every_event=True,
    )  # fmt: skip
    (job,) = found.jobs
    assert job.restarts == 1
    assert dead not in job.allocation.links
    assert spans(job) == [(0.0, pytest.approx(10.2)), (pytest.approx(10.2), pytest.approx(10.2 + 40.0))]
    assert [dead in stretch.allocation.links for stretch in job.stretches] == [True, False]


def test_a_drained_spine_takes_no_new_jobs_and_leaves_running_ones_alone() -> None:
    where, jobs = vclos_pair()
    jobs = [jobs[0], replace(jobs[1], arrival_s=20.0)]
    first = replay(where, jobs[:1], allocate="vclos", rules=Rules("source")).jobs[0]
    drained = first.allocation.spines[0]
    found = replay(
        where,
        jobs,
        allocate="vclos",
        rules=Rules("source"),
        failures=[Failure(10.0, Drained(spines=[drained]), drain=True)],
    )
    assert found.jobs[0].finish_s == first.finish_s
    assert drained not in found.jobs[1].allocation.spines


def test_jobs_that_a_lasting_failure_leaves_no_room_for_are_refused_at_the_end() -> None:
    where = plant("leaf-spine:2x4x4", gpus_per_server=4)
    jobs = [Job("a", 8, 0.0, 10, SECOND), Job("b", 4, 1.0, 10, SECOND)]
    found = replay(where, jobs, allocate="none", rules=Rules("ideal"), failures=[Failure(5.0, Drained(leafs=[1]))])
    assert [refusal.name for refusal in found.refused] == ["a"]
    assert times(found) == [(5.0, 15.0)]


def test_failures_of_parts_that_do_not_exist_or_fail_twice_are_refused(eight: Plant) -> None:
    jobs = [Job("a", 1, 0.0, 1, SECOND)]
    with pytest.raises(ClusterError, match="there is no spine 9"):
        replay(eight, jobs, allocate="none", failures=[Failure(1.0, Drained(spines=[9]))])
    twice = [Failure(1.0, Drained(spines=[0])), Failure(2.0, Drained(spines=[0]))]
    with pytest.raises(ClusterError, match="already out of service"):
        replay(eight, jobs, allocate="none", failures=twice)
    with pytest.raises(ClusterError, match="a later end"):
        replay(eight, jobs, allocate="none", failures=[Failure(2.0, Drained(spines=[0]), until_s=1.0)])
    with pytest.raises(ClusterError, match="not 'hope'"):
        replay(eight, jobs, allocate="none", rules=Rules(when_a_link_dies="hope"))


# Checkpoints.


class Killed(Exception):
    pass


@pytest.mark.parametrize(
    ("policy", "routing", "queue", "backfill"),
    [
        ("none", "ecmp", "fifo", "none"),
        ("none", "balanced", "shortest", "easy"),
        ("vclos", "source", "smallest", "none"),
        ("vclos", "source", "edf", "conservative"),
    ],
)
def test_a_killed_replay_resumes_to_the_same_bytes(
    sixty_four: Plant, tmp_path: Path, policy: str, routing: str, queue: str, backfill: str
) -> None:
    jobs = mixed_trace(50, seed=3)
    failures = [Failure(30.0, Drained(links=[(0, 0)]), until_s=90.0), Failure(40.0, Drained(leafs=[2]), until_s=80.0)]
    file = tmp_path / "replay.json"

    def run(**more: object) -> Timeline:
        rules = Rules(routing, queue=queue, backfill=backfill, seed=5)
        return replay(sixty_four, jobs, allocate=policy, rules=rules, failures=failures, **more)  # type: ignore[arg-type]

    whole = run().as_json()
    for kill_at in (7, 40, 85):
        seen = 0

        def die(done: int, total: int, now_s: float, last: int = kill_at) -> None:
            nonlocal seen
            seen += 1
            if seen == last:
                raise Killed

        file.unlink(missing_ok=True)
        with pytest.raises(Killed):
            run(checkpoint=file, checkpoint_every=6, progress=die)
        assert run(checkpoint=file, resume=True).as_json() == whole
    assert run(checkpoint=file, resume=True).as_json() == whole  # a finished replay has nothing left to do


def test_a_replay_over_circuits_goes_on_after_a_kill(sixty_four: Plant, tmp_path: Path) -> None:
    where, jobs, file = OpticalPlant.of_plant(sixty_four), mixed_trace(40, seed=3), tmp_path / "replay.json"

    def run(**more: object) -> Timeline:
        return replay(where, jobs, allocate="ocs-vclos", rules=Rules("source"), **more)  # type: ignore[arg-type]

    def die(done: int, total: int, now_s: float) -> None:
        if done == 20:
            raise Killed

    with pytest.raises(Killed):
        run(checkpoint=file, checkpoint_every=5, progress=die)
    assert run(checkpoint=file, resume=True).as_json() == run().as_json()
    slower = OpticalPlant.of_plant(sixty_four, reconfiguration_s=1.0)
    with pytest.raises(ClusterError, match="another cluster"):
        replay(slower, jobs, allocate="ocs-vclos", rules=Rules("source"), checkpoint=file, resume=True)


def test_a_process_that_is_killed_leaves_a_file_from_which_another_goes_on(sixty_four: Plant, tmp_path: Path) -> None:
    """No exception, no clean-up: the process kills itself without warning, between two checkpoints."""
    file = tmp_path / "replay.json"
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_replay import Rules, mixed_trace, plant, replay
def die(done, total, now_s):
    if done == 30:
        os.kill(os.getpid(), signal.SIGKILL)
where = plant({sixty_four.name!r}, gpus_per_server={sixty_four.gpus_per_server})
replay(where, mixed_trace(40, seed=3), allocate="vclos", rules=Rules("source"), checkpoint={str(file)!r},
       checkpoint_every=7, progress=die)
"""
    died = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert 0 < len(json.loads(file.read_text())["records"]) <= 30
    jobs = mixed_trace(40, seed=3)
    whole = replay(sixty_four, jobs, allocate="vclos", rules=Rules("source"))
    resumed = replay(sixty_four, jobs, allocate="vclos", rules=Rules("source"), checkpoint=file, resume=True)
    assert resumed.as_json() == whole.as_json()


def test_a_checkpoint_of_another_question_or_a_broken_one_is_refused(sixty_four: Plant, tmp_path: Path) -> None:
    jobs, file = mixed_trace(5), tmp_path / "replay.json"
    with pytest.raises(ClusterError, match="does not exist"):
        replay(sixty_four, jobs, allocate="none", checkpoint=file, resume=True)
    with pytest.raises(ClusterError, match="name its file"):
        replay(sixty_four, jobs, allocate="none", resume=True)
    replay(sixty_four, jobs, allocate="none", checkpoint=file)
    with pytest.raises(ClusterError, match="other jobs, another cluster or other rules"):
        replay(sixty_four, jobs, allocate="none", rules=Rules(seed=1), checkpoint=file, resume=True)
    document = json.loads(file.read_text())
    del document["curve"]
    file.write_text(json.dumps(document))
    with pytest.raises(ClusterError, match="its checksum does not match"):
        replay(sixty_four, jobs, allocate="none", checkpoint=file, resume=True)
    file.write_text(json.dumps(sealed(document)))
    with pytest.raises(ClusterError, match="curve is missing"):
        replay(sixty_four, jobs, allocate="none", checkpoint=file, resume=True)
    file.write_text("{")
    with pytest.raises(ClusterError, match="fix the JSON"):
        replay(sixty_four, jobs, allocate="none", checkpoint=file, resume=True)


@pytest.mark.parametrize(
    ("field", "entry"),
    [("links", [3, 99]), ("links", [99, 0]), ("spines", 99), ("spine_of_gpu", 99), ("leafs", 99), ("cables", 7)],
)
def test_places_of_ended_jobs_are_of_this_cluster(sixty_four: Plant, tmp_path: Path, field: str, entry: object) -> None:
    jobs, file = mixed_trace(40, seed=3), tmp_path / "replay.json"
    replay(sixty_four, jobs, allocate="vclos", rules=Rules("source"), checkpoint=file)
    document = json.loads(file.read_text())
    held = next(
        stretch["allocation"]
        for _, record in document["records"]
        for stretch in record["stretches"]
        if stretch["allocation"]["links"]
    )
    held[field][-1] = entry
    file.write_text(json.dumps(sealed(document)))
    with pytest.raises(ClusterError, match="held links or switches that"):
        replay(sixty_four, jobs, allocate="vclos", rules=Rules("source"), checkpoint=file, resume=True)


def test_the_document_says_everything_a_table_needs(sixty_four: Plant) -> None:
    found = replay(sixty_four, mixed_trace(20), allocate="vclos", rules=Rules("source"))
    document = json.loads(found.as_json())
    for key in (
        "jobs", "mean_jct_s", "p99_jct_s", "mean_jrt_s", "mean_jwt_s", "contention_ratio", "gpu_utilisation",
        "network_fragmentation_events", "records", "curves", "waiting_reasons_s",
    ):  # fmt: skip
        assert key in document
    assert document["jobs"] == 20 == len(document["records"])
    assert document["mean_jct_s"] == pytest.approx(document["mean_jrt_s"] + document["mean_jwt_s"])


def test_rules_of_a_job_with_links_of_its_own_take_the_time_they_take():
    where = plant("leaf-spine:2x4x4", gpus_per_server=4)
    jobs = [Job("wide", 8, 0.0, 10, Iteration(1.0)), Job("near", 4, 100.0, 10, Iteration(1.0))]
    runs = {
        delay: replay(where, jobs, allocate="vclos", rules=Rules("source", rule_delay_s=delay)).jobs
        for delay in (0.0, 3.0)
    }
    assert [job.jrt_s for job in runs[0.0]] == [10.0, 10.0]
    assert [job.jrt_s for job in runs[3.0]] == [13.0, 10.0]
