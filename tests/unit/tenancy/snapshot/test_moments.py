"""Who runs at a moment, and how far into its iteration."""

import pytest
from snapshot_worlds import SIX_LEAFS, moment

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.question import Conditions
from ropewalk.tenancy.snapshot import SnapshotQuestion, answer, moment_of_replay, moment_of_state
from ropewalk.tenancy.work import Iteration, JobExchange

HOUR = Iteration(1.0)
RING = Iteration(0.5, (JobExchange("ring", 1e9),))


def test_jobs_that_have_ended_or_wait_or_have_not_come_are_not_in_it():
    where = plant("leaf-spine:2x4x4", gpus_per_server=4)
    jobs = [
        Job("done", 4, 0.0, 5, HOUR), Job("runs", 4, 0.0, 100, HOUR), Job("waits", 8, 1.0, 5, HOUR),
        Job("later", 1, 60.0, 5, HOUR),
    ]  # fmt: skip
    assert [one.name for one in moment(jobs, "ecmp", 10.0, where).tenants] == ["runs"]


def test_a_job_begins_its_next_iteration_when_the_one_it_is_in_has_ended():
    where = plant("leaf-spine:2x4x4", gpus_per_server=4)
    found = moment([Job("a", 4, 0.25, 100, HOUR), Job("b", 4, 3.0, 100, HOUR)], "ecmp", 10.0, where)
    assert [one.start_s for one in found.tenants] == pytest.approx([0.25, 0.0])


def test_circuits_that_are_being_set_up_delay_the_first_iteration():
    where = plant("leaf-spine:4x4x4", gpus_per_server=2)
    found = moment_of_replay(
        POLICIES["ocs-vclos"], where, [Job("a", 8, 1.0, 9, HOUR)], Conditions(circuit_delay_s=2), 1.5
    )
    assert [one.start_s for one in found.tenants] == pytest.approx([1.5])


def test_flows_keep_off_links_that_are_dead_at_the_moment():
    dead = Failure(50.0, Drained(spines=[0, 1, 2]))
    jobs = [Job(name, 12, 0.0, 1e6, Iteration(0.5, (JobExchange("all-to-all", 1e9),))) for name in "ab"]
    broken = moment_of_replay(POLICIES["ecmp"], SIX_LEAFS, jobs, Conditions(failures=(dead,)), 100.0)
    assert (
        answer(SnapshotQuestion(broken)).jobs[0].alone_s
        > answer(SnapshotQuestion(moment(jobs, "ecmp"))).jobs[0].alone_s
    )
    cables = {int(link) // 2 % 4 for one in broken.tenants for link in one.footprint.links}
    assert cables == {3}


@pytest.mark.parametrize(
    ("at_s", "remedy"), [(0.5, "the first one starts at 3.0 s, give --at 3.0s"),
                         (500.0, "GPU usage peaks at 5 s, give --at 5s")]
)  # fmt: skip
def test_a_moment_at_which_nobody_runs_is_refused_with_one_at_which_somebody_does(at_s, remedy):
    jobs = [Job("a", 8, 3.0, 10, HOUR), Job("b", 8, 4.4, 10, HOUR)]
    with pytest.raises(ClusterError, match=remedy):
        moment(jobs, "ecmp", at_s)
    assert moment(jobs, "ecmp", 5.0).tenants


def test_a_state_takes_what_its_jobs_do_from_elsewhere():
    state = Occupancy(SIX_LEAFS)
    for name in ("a", "b"):
        placed = POLICIES["ecmp"].make(state, name, 12)
        assert isinstance(placed, Allocation)
        state.place(placed)
    found = moment_of_state(POLICIES["ecmp"], state, {"a": RING, "b": RING, "c": RING}, seed=4)
    assert [one.name for one in found.tenants] == ["a", "b"]
    assert all(0 <= one.start_s < one.footprint.alone_iteration_s * 2 for one in found.tenants)
    with pytest.raises(ClusterError, match="the workload of b is unknown: add a line for it"):
        moment_of_state(POLICIES["ecmp"], state, {"a": RING})
    with pytest.raises(ClusterError, match="no job runs"):
        moment_of_state(POLICIES["ecmp"], Occupancy(SIX_LEAFS), {})
