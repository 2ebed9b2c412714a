"""Replays over pods and on rails."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.question import Conditions
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.simulation import Rules
from ropewalk.tenancy.snapshot.answer import answer
from ropewalk.tenancy.snapshot.moment import moment_of_replay
from ropewalk.tenancy.snapshot.question import SnapshotQuestion
from ropewalk.tenancy.work import Iteration, JobExchange

SHAPES = ["fat-tree:8", "fat-tree:8,4,2", "rails:16x4x4", "rail-only:4x8"]


def jobs(count: int, seed: int, sizes: tuple[int, ...] = (2, 4, 8, 16, 24, 32)) -> list[Job]:
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(3.0, count))
    return [
        Job(
            f"job{n}",
            int(rng.choice(sizes)),
            float(at),
            int(rng.integers(5, 40)),
            Iteration(0.2, (JobExchange("all-to-all", 2e9),)),
        )
        for n, at in enumerate(arrival)
    ]


def per_server(shape: str) -> int:
    return 2 if "tree" in shape else 4


@pytest.mark.parametrize("policy", ["ecmp", "ecmp-polarised", "balanced", "spray", "source", "vclos", "ideal"])
@pytest.mark.parametrize("shape", SHAPES)
def test_invariants_hold_after_every_event(shape, policy):
    where, one = plant(shape, gpus_per_server=per_server(shape)), POLICIES[policy]
    found = replay(where, jobs(25, 1), allocate=one.make, rules=Rules(one.routing), check_every_event=True)
    assert len(found.jobs) + len(found.refused) == 25
    assert all(job.slowdown >= 1 - 1e-9 for job in found.jobs)
    if policy in ("vclos", "ideal"):
        assert all(job.slowdown == pytest.approx(1.0) for job in found.jobs)


def test_hashing_over_pods_costs_and_isolation_does_not():
    where = plant("fat-tree:8", gpus_per_server=2)
    trace = jobs(40, 2, (24, 32))
    means = {}
    for name in ("ecmp-polarised", "ecmp", "source", "vclos"):
        one = POLICIES[name]
        found = replay(where, trace, allocate=one.make, rules=Rules(one.routing))
        means[name] = np.mean([job.slowdown for job in found.jobs])
    assert means["ecmp-polarised"] > means["ecmp"] > 1.2
    assert means["vclos"] == pytest.approx(1.0)
    assert means["source"] < means["ecmp"]


@pytest.mark.parametrize("when", ["ecmp", "re-place"])
def test_a_job_that_loses_a_core_goes_on_another_way(when):
    where = plant("fat-tree:8", gpus_per_server=2)
    work = Iteration(0.2, (JobExchange("all-to-all", 2e9),))
    failures = [Failure(1.0, Drained(cores=[0]), 50.0), Failure(2.0, Drained(core_links=[(5, 5)]), 40.0)]
    (job,) = replay(
        where, [Job("a", 32, 0.0, 10, work)], allocate="vclos", rules=Rules("source", when_a_link_dies=when),
        failures=failures, check_every_event=True,
    ).jobs  # fmt: skip
    assert job.restarts == (0 if when == "ecmp" else len(job.stretches) - 1)
    assert (when == "re-place") == bool(job.restarts)
    if when == "ecmp":
        assert job.slowdown > 1.0


@pytest.mark.parametrize("policy", ["ecmp", "source", "vclos", "ideal"])
@pytest.mark.parametrize("shape", ["fat-tree:8", "rails:16x4x4"])
def test_a_moment_is_simulated_flow_by_flow(shape, policy):
    where = plant(shape, gpus_per_server=per_server(shape))
    trace = jobs(6, 3, (8, 16, 24))
    moment = moment_of_replay(POLICIES[policy], where, trace, Conditions(), at_s=trace[-1].arrival_s)
    found = answer(SnapshotQuestion(moment))
    assert found.jobs
    for job in found.jobs:
        assert job.iteration_s >= job.alone_s * (1 - 1e-6)
        if policy == "vclos":
            assert job.iteration_s == pytest.approx(job.alone_s, rel=1e-6)
