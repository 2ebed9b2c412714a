"""Jobs of a moment simulated together: who slows whom at which level, and what is too much to ask."""

import pytest
from snapshot_worlds import moment, random_jobs

from ropewalk.errors import ClusterError
from ropewalk.sim.level import LevelUse, PacketOptions
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.snapshot import SnapshotQuestion, answer, limits
from ropewalk.tenancy.work import Iteration, JobExchange

SHIFTED = plant("leaf-spine:3x4x4", gpus_per_server=2)
"""Jobs of 6 GPUs take one leaf and half of the next, so that they meet on that one."""


def two_jobs(size: float = 2e6) -> list[Job]:
    return [Job(name, 6, 0.0, 1e9, Iteration(1e-6, (JobExchange("all-to-all", size),))) for name in ("a", "b")]


def packets(transport: str = "rdma-pfc") -> LevelUse:
    return LevelUse("packet", transport, PacketOptions(buffer_bytes=1_000_000))


def test_under_ecmp_jobs_pause_each_other_packet_by_packet():
    found = answer(SnapshotQuestion(moment(two_jobs(), "ecmp", 1.0, SHIFTED), packets(), iterations=1))
    names, seen = [job.name for job in found.jobs], found.meetings.packets
    assert seen is not None
    assert found.run.packet.pauses > 0
    assert seen.nic_pauses.sum() > 0
    assert "b" in seen.paused_by(0, names)
    assert "a" in seen.paused_by(1, names)
    assert min(job.slowdown for job in found.jobs) > 1.05
    assert found.as_json()["jobs"][0]["packets"]["drops_on_its_links"] == 0


def test_under_vclos_nobody_is_paused():
    found = answer(SnapshotQuestion(moment(two_jobs(), "vclos", 1.0, SHIFTED), packets(), iterations=1))
    assert found.run.packet.pauses == 0
    assert [job.slowdown for job in found.jobs] == pytest.approx([1.0, 1.0], rel=1e-9)


@pytest.mark.parametrize("level", ["flow", "wire", "packet", "auto"])
@pytest.mark.parametrize("policy", ["ecmp", "balanced", "source", "ideal", "laas", "vclos", "ocs-vclos"])
def test_every_policy_runs_at_every_level(policy, level):
    found = answer(SnapshotQuestion(moment(two_jobs(2e5), policy, 1.0, SHIFTED), LevelUse(level), iterations=1))
    found.together.routes.check()
    found.together.graph.check()
    assert all(0.9 < job.slowdown < 4 for job in found.jobs)
    assert (found.run.packet is None) == (found.run.level != "packet")


def test_auto_says_what_it_took_and_why():
    found = answer(SnapshotQuestion(moment(two_jobs(), "ecmp", 1.0, SHIFTED), LevelUse("auto"), iterations=1))
    assert found.run.level == "packet"
    assert "so queues grow" in found.run.sentences()[0]


def test_a_job_that_sends_nothing_is_simulated_too():
    jobs = [Job("one", 1, 0.0, 1000, Iteration(1e-3)), *two_jobs(2e5)]
    found = answer(SnapshotQuestion(moment(jobs, "ecmp", 0.1, SHIFTED), LevelUse("packet"), iterations=1))
    assert found.jobs[0].iteration_s == pytest.approx(1e-3)


def test_all_rounds_of_a_long_all_to_all_send_its_bytes():
    where = plant("leaf-spine:8x8x8", gpus_per_server=2)
    jobs = [Job("wide", 64, 0.0, 100, Iteration(0.1, (JobExchange("all-to-all", 64e6),)))]
    found = answer(SnapshotQuestion(moment(jobs, "vclos", 1.0, where), iterations=1))
    assert found.run.trace.asked_bytes == pytest.approx(64 * 63e6)
    assert found.jobs[0].iteration_s == pytest.approx(found.jobs[0].assumed.iteration_s, rel=1e-9)


def test_shorter_iterations_go_on_while_the_longest_is_looked_at():
    works = (Iteration(0.01, (JobExchange("ring", 1e6),)), Iteration(0.1, (JobExchange("ring", 1e6),)))
    jobs = [Job(f"j{number}", 6, 0.0, 10_000, work) for number, work in enumerate(works)]
    short, long = answer(SnapshotQuestion(moment(jobs, "ecmp", 1.0, SHIFTED), iterations=2)).jobs
    assert len(long.beside_s) >= 2
    assert len(short.beside_s) >= 20


def test_only_some_jobs_can_be_looked_at():
    here = moment(random_jobs(0), "ecmp")
    found = answer(SnapshotQuestion(here, iterations=1, jobs=("j1", "j3")))
    assert [job.name for job in found.jobs] == ["j1", "j3"]
    with pytest.raises(ClusterError, match=r"j9 does not run at 123\.4 s of the trace under ecmp: choose of j0, j1"):
        answer(SnapshotQuestion(here, jobs=("j1", "j9")))


def test_too_many_transfers_are_refused_with_a_remedy_that_works(monkeypatch):
    here = moment(random_jobs(0), "ecmp")
    monkeypatch.setattr(limits, "MOST_TRANSFERS", 9_000)
    with pytest.raises(ClusterError, match=r"send [\d,]+ transfers .* give --iterations 1$"):
        answer(SnapshotQuestion(here, iterations=20))
    answer(SnapshotQuestion(here, iterations=1))
    monkeypatch.setattr(limits, "MOST_TRANSFERS", 2_000)
    with pytest.raises(ClusterError, match=r"give --iterations 1 and fewer jobs, such as --jobs ([\w,]+)$") as refused:
        answer(SnapshotQuestion(here))
    names = str(refused.value).rpartition(" ")[2].split(",")
    answer(SnapshotQuestion(here, iterations=1, jobs=tuple(names)))


def test_too_many_packets_are_refused_with_a_scale_that_works():
    here, use = moment(two_jobs(2e9), "ecmp", 1.0, SHIFTED), LevelUse("packet", most_events=3e5)
    with pytest.raises(ClusterError, match=r"give --scale [\d.e-]+") as refused:
        answer(SnapshotQuestion(here, use, iterations=1))
    scale = float(str(refused.value).partition("--scale ")[2].split(",")[0])
    assert answer(SnapshotQuestion(here, use, iterations=1, scale=scale)).run.packet is not None


def test_every_round_waits_for_the_latency_of_its_longest_path():
    jobs = [Job("a", 6, 0.0, 1e9, Iteration(1e-3, (JobExchange("ring", 6e6),)))]
    here = moment(jobs, "vclos", 1.0, SHIFTED)
    near, far = (answer(SnapshotQuestion(here, iterations=1, hop_latency_s=hop)).jobs[0] for hop in (0.0, 1e-6))
    assert far.iteration_s - near.iteration_s == pytest.approx(10 * 4e-6)


@pytest.mark.parametrize(
    ("wrong", "fact"),
    [
        ({"scale": 0.0}, "a scale of 0"),
        ({"iterations": 0}, "0 iterations"),
        ({"hop_latency_s": -1.0}, "a hop takes -1.0 s"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, fact):
    with pytest.raises(ClusterError, match=fact):
        answer(SnapshotQuestion(moment(two_jobs(), "ecmp", 1.0, SHIFTED), **wrong))
