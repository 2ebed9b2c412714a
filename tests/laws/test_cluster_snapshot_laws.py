"""Laws of snapshots: who shares no link slows nobody down, and who runs alone takes what the model of the replay says.

Against that model under ECMP: over ten random moments of four jobs, each looked at for four iterations, iterations
come out 0.5 % shorter than it says on average, between 4 % longer and 9 % shorter.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshot_worlds import SIX_LEAFS, moment, random_jobs

from ropewalk.tenancy.policies import POLICIES, isolations
from ropewalk.tenancy.snapshot import SnapshotQuestion, answer

SIMULATED = sorted(name for name, one in POLICIES.items() if one.simulated and one.applies((), SIX_LEAFS) is None)
"""Policies of this cluster under which a flow has a path of its own, which a snapshot needs."""

FEW = settings(max_examples=8, deadline=None, derandomize=True)


@FEW
@given(
    st.integers(0, 1000),
    st.sampled_from([name for name in isolations() if name in SIMULATED]),
    st.sampled_from([6, 8, 12, 16]),
)
def test_jobs_with_links_of_their_own_do_not_slow_each_other_down(seed: int, policy: str, gpus: int) -> None:
    found = answer(SnapshotQuestion(moment(random_jobs(seed, count=3, gpus=gpus), policy), iterations=1))
    assert [job.slowdown for job in found.jobs] == pytest.approx([1.0] * len(found.jobs), rel=1e-9)
    assert all(not found.meetings.neighbours(job, [one.name for one in found.jobs]) for job in range(len(found.jobs)))


@FEW
@given(st.integers(0, 1000), st.sampled_from(SIMULATED))
def test_a_job_alone_takes_what_the_model_of_the_replay_says(seed: int, policy: str) -> None:
    (job,) = answer(SnapshotQuestion(moment(random_jobs(seed, count=1), policy))).jobs
    assert job.iteration_s == pytest.approx(job.tenant.footprint.alone_iteration_s, rel=1e-9)
    assert job.iteration_s == pytest.approx(job.assumed.iteration_s, rel=1e-9)
    if policy in ("vclos", "ocs-vclos", "ideal"):
        assert job.iteration_s == pytest.approx(job.tenant.footprint.quiet_iteration_s, rel=1e-9)


def test_under_ecmp_slowdowns_agree_with_the_model_of_the_replay() -> None:
    ratios, slowdowns = [], []
    for seed in range(10):
        found = answer(SnapshotQuestion(moment(random_jobs(seed), "ecmp", seed=seed), iterations=4))
        ratios += [job.assumed_slowdown / job.slowdown for job in found.jobs]
        slowdowns += [job.slowdown for job in found.jobs]
    assert np.mean(slowdowns) > 1.04
    assert np.mean(ratios) == pytest.approx(1.005, abs=0.015)
    assert min(ratios) > 0.95
    assert max(ratios) < 1.1


@FEW
@given(st.integers(0, 1000), st.floats(0.001, 1.0))
def test_scaling_all_jobs_alike_changes_no_slowdown_of_flows(seed: int, scale: float) -> None:
    here = moment(random_jobs(seed, count=3), "ecmp")
    whole, small = (answer(SnapshotQuestion(here, iterations=1, scale=factor)) for factor in (1.0, scale))
    for one, other in zip(whole.jobs, small.jobs, strict=True):
        assert other.slowdown == pytest.approx(one.slowdown, rel=1e-6)
        assert other.alone_s == pytest.approx(scale * one.alone_s, rel=1e-9)


def test_the_model_says_of_a_moment_what_the_replay_went_by() -> None:
    from ropewalk.tenancy.occupancy import Occupancy
    from ropewalk.tenancy.simulation import Rules, Simulation

    jobs = random_jobs(3)
    simulation = Simulation(jobs, Occupancy(SIX_LEAFS), POLICIES["ecmp"].make, Rules(), ())
    while simulation.next_s() <= 50.0:
        simulation.advance()
    went_by = [simulation.network.pace(job.name) for job in jobs]
    assert moment(jobs, "ecmp", 50.0).assumed() == went_by
