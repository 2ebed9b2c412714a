"""A study: the same jobs under several policies, and the state of any moment of them."""

import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES, Policy, isolations, policies_named
from ropewalk.tenancy.question import ClusterQuestion, Conditions
from ropewalk.tenancy.routings import ROUTINGS
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.study import answer, state_at
from ropewalk.tenancy.work import Iteration, JobExchange

SMALL = plant("leaf-spine:4x4x4", gpus_per_server=2)
CHATTY = Iteration(0.5, (JobExchange("all-to-all", 5e9),))


def jobs():
    return [
        Job(name, gpus, arrival, 20, CHATTY) for name, gpus, arrival in (("a", 8, 0.0), ("b", 8, 1.0), ("c", 16, 2.0))
    ]


def test_every_policy_that_isolates_routes_by_source():
    assert all(POLICIES[name].routing == "source" for name in isolations())
    assert all(POLICIES[name].routing == name for name in ROUTINGS)


def test_policies_follow_what_was_asked_and_nothing_else():
    names = lambda *asked, **more: [policy.name for policy in policies_named(*asked, **more)]  # noqa: E731
    assert names(["vclos"], None, compare=False) == ["vclos"]
    assert names(["none"], None, compare=False) == ["ecmp"]
    assert names(["laas"], ["balanced"], compare=True) == ["balanced", "laas", "ocs-vclos"]
    with pytest.raises(ClusterError, match="use one of laas, vclos"):
        policies_named(["walls"], None, compare=True)
    with pytest.raises(ClusterError, match="there is no routing 'vclos': use one of ecmp-polarised, ecmp"):
        policies_named(["none"], ["vclos"], compare=True)
    with pytest.raises(ClusterError, match="nothing to replay"):
        policies_named(["none"], [], compare=False)


def test_a_new_policy_is_replayed_like_any_other():
    new = Policy("first-leafs", gpus_only, "a policy nobody has heard of")
    with POLICIES.including(new):
        chosen = policies_named(["first-leafs", "vclos"], None, compare=False)
        assert [policy.name for policy in chosen] == ["vclos", "first-leafs"]
        found = answer(ClusterQuestion(SMALL, jobs(), chosen, Conditions()))
    assert found.timeline("first-leafs").policy == "first-leafs"


def test_optical_policies_run_on_the_same_servers_with_switches_between():
    policies = [POLICIES["ocs-vclos"], POLICIES["ideal"]]
    found = answer(ClusterQuestion(SMALL, jobs(), policies, Conditions(circuit_delay_s=7.0)))
    optical, ideal = found.timelines
    assert isinstance(POLICIES["ocs-vclos"].plant(SMALL), OpticalPlant)
    # Every job crosses leafs, so each is charged its circuits once.
    for one, other in zip(optical.jobs, ideal.jobs, strict=True):
        assert one.jrt_s == pytest.approx(other.jrt_s + 7.0)


def test_isolated_jobs_run_as_on_an_ideal_network_and_hashed_ones_slower():
    found = answer(ClusterQuestion(SMALL, jobs(), policies_named(["vclos"], None, compare=True), Conditions()))
    assert found.timeline("vclos").mean_jrt_s == pytest.approx(found.timeline("ideal").mean_jrt_s)
    assert found.timeline("ecmp").mean_jrt_s > 1.05 * found.timeline("ideal").mean_jrt_s
    document = found.as_json()
    assert document["kinds"]["ecmp"]["contention_ratio"] > 0 == document["kinds"]["vclos"]["contention_ratio"]


def test_the_state_of_a_moment_holds_exactly_who_runs_then():
    found = answer(ClusterQuestion(SMALL, jobs(), [POLICIES["vclos"]], Conditions()))
    (run,) = found.timelines
    by_name = {job.name: job for job in run.jobs}
    state = state_at(POLICIES["vclos"], SMALL, run, 1.5)
    state.check()
    assert set(state.jobs) == {"a", "b"}
    assert state.free == 0
    assert set(state_at(POLICIES["vclos"], SMALL, run, 1.5, without="b").jobs) == {"a"}
    assert set(state_at(POLICIES["vclos"], SMALL, run, by_name["c"].start_s).jobs) == {"c"}
    assert not state_at(POLICIES["vclos"], SMALL, run, by_name["c"].finish_s).jobs


def test_the_state_before_a_failure_has_jobs_where_they_were_then():
    policy, dead = POLICIES["vclos"], Drained(leafs=[0])
    failures = (Failure(3.0, dead, until_s=500.0),)
    run = answer(ClusterQuestion(SMALL, jobs()[:1], [policy], Conditions(failures=failures))).timelines[0]
    (job,) = run.jobs
    before, after = (state_at(policy, SMALL, run, when, failures=failures).jobs["a"].leafs for when in (2.0, 4.0))
    assert job.restarts == 1
    assert 0 in before
    assert 0 not in after
    assert state_at(policy, SMALL, run, 4.0, failures=failures).drained == dead
    assert state_at(policy, SMALL, run, 2.0, failures=failures).drained == Drained()


def test_a_study_kept_in_files_goes_on_to_the_same_numbers(tmp_path):
    policies = [POLICIES["ecmp"], POLICIES["vclos"]]
    kept = answer(ClusterQuestion(SMALL, jobs(), policies, Conditions()), checkpoint=tmp_path / "kept.json")
    again = answer(ClusterQuestion(SMALL, jobs(), policies, Conditions()), checkpoint=tmp_path / "kept.json")
    plain = answer(ClusterQuestion(SMALL, jobs(), policies, Conditions()))
    assert kept.as_json(jobs=True) == again.as_json(jobs=True) == plain.as_json(jobs=True)
