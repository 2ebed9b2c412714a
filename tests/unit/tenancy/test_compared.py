"""Policies compared over seeds, with the network and the queue kept apart."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ropewalk.report.cluster_verdict import not_ranked
from ropewalk.tenancy.compared import Comparison, OneSeed, Verdict, compare, of_one
from ropewalk.tenancy.frozen import frozen_slowdowns
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.measures import MEASURES, by_model, by_size
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES, policies_named
from ropewalk.tenancy.question import ClusterQuestion, Conditions
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.simulation import Rules
from ropewalk.tenancy.spread import Spread, sooner
from ropewalk.tenancy.study import answer
from ropewalk.tenancy.traces import TraceJob, reordered
from ropewalk.tenancy.work import Iteration, JobExchange

WHERE = plant("leaf-spine:4x4x4", gpus_per_server=2)
CHATTY = Iteration(0.5, (JobExchange("all-to-all", 5e9),))


def jobs_of(seed: int) -> list[Job]:
    random = np.random.default_rng(seed)
    sizes = random.choice([1, 2, 4, 8, 12, 16], 30)
    gaps = np.cumsum(random.exponential(6.0, 30))
    return [
        Job(
            f"j{number}",
            int(size),
            float(at),
            10,
            CHATTY if size > 1 else Iteration(1.0),
            model="m" if size > 4 else "n",
        )
        for number, (size, at) in enumerate(zip(sizes, gaps, strict=True))
    ]


def asked(seed: int, *policies: str, placement: tuple[str, ...] = ("packed",)) -> ClusterQuestion:
    isolating = [name for name in policies if POLICIES[name].isolates]
    sharing = [name for name in policies if POLICIES[name].shares]
    chosen = policies_named(isolating, sharing, compare=False, placement=placement)
    return ClusterQuestion(WHERE, jobs_of(seed), chosen, Conditions(seed=seed))


@pytest.fixture(scope="module")
def found() -> Comparison:
    every = "ecmp", "source", "vclos", "ideal"
    return compare(lambda seed: asked(seed, *every, placement=("packed", "random")), range(3))


def test_parts_multiply_to_the_whole(found: Comparison) -> None:
    for policy in found.policies:
        parts = found.network_part(policy.name), found.scheduling_part(policy.name), found.both_parts(policy.name)
        for network, scheduling, both in zip(*(part.values for part in parts if part is not None), strict=True):
            assert (1 + network) * (1 + scheduling) == pytest.approx(1 + both)


def test_sharing_packed_servers_costs_the_network_alone_and_isolation_the_queue_alone(found: Comparison) -> None:
    scheduling, network = found.scheduling_part("ecmp"), found.network_part("vclos")
    assert scheduling is not None and scheduling.values == (0.0, 0.0, 0.0)  # noqa: PT018
    assert network is not None and max(map(abs, network.values)) < 1e-9  # noqa: PT018
    costs = found.network_part("ecmp")
    assert costs is not None
    assert min(costs.values) > 0


def test_circuits_cables_and_rules_that_jobs_wait_for_are_the_networks_part() -> None:
    """Eight servers for a job of all: nobody chooses, so nothing is scheduling."""
    jobs = [Job(f"j{number}", 16, 0.0, 50, CHATTY) for number in range(2)]
    chosen = [POLICIES[name] for name in ("vclos", "ocs-vclos", "topoopt-one-panel", "ideal")]
    slow = Conditions(circuit_delay_s=20.0, patch_delay_s=20.0, rule_delay_s=20.0)
    found = compare(lambda seed: ClusterQuestion(WHERE, jobs, chosen, slow), range(1))
    quiet_s = found.spread("ideal", "mean_jrt_s").mean
    for policy in ("vclos", "ocs-vclos", "topoopt-one-panel"):
        network, scheduling = found.network_part(policy), found.scheduling_part(policy)
        assert network is not None and network.mean > 19.9 / quiet_s, policy  # noqa: PT018
        assert scheduling is not None and scheduling.mean == pytest.approx(0.0, abs=1e-9), policy  # noqa: PT018


def test_the_ideal_network_is_never_the_verdict(found: Comparison) -> None:
    assert found.spread("ideal", "mean_jct_s").mean <= found.spread("ecmp", "mean_jct_s").mean
    assert not found.verdict.best.startswith("ideal")
    assert not (found.verdict.runner_up or "").startswith("ideal")
    means = {one.name: np.log(found.spread(one.name, "mean_jct_s").values).mean() for one in found.policies}
    assert means[found.verdict.best] == min(means[one.name] for one in found.policies if one.buildable)


def test_nobody_is_slowed_down_by_others_where_everybody_stands_alone(found: Comparison) -> None:
    ideal, hashed = found.same_schedule("ideal"), found.same_schedule("ecmp")
    assert ideal is not None
    assert hashed is not None
    assert ideal[0].values == (1.0, 1.0, 1.0)
    assert min(hashed[0].values) > 1.0
    assert min(hashed[1].values) >= min(hashed[0].values)


def test_a_frozen_schedule_under_its_own_network_has_the_slowdowns_of_the_replay() -> None:
    """Without a queue nothing else moves: the replay under ECMP, frozen and looked at under ECMP again."""
    jobs = [Job(f"j{number}", 8, 0.0, 10 + number, CHATTY) for number in range(2)]
    run = replay(WHERE, jobs, allocate="none", rules=Rules("ecmp", seed=3))
    frozen = frozen_slowdowns(WHERE, jobs, run, "ecmp", 3)
    # The replay counts iterations and the frozen schedule time, so means differ where the pace changes.
    assert frozen[0] == pytest.approx(run.jobs[0].slowdown, rel=1e-9)
    assert frozen == pytest.approx([job.slowdown for job in run.jobs], rel=0.05)


def test_measures_are_numbers_and_groups_cover_all_jobs(found: Comparison) -> None:
    (run,) = answer(asked(0, "ecmp")).timelines
    numbers = {measure.name: measure.of(run) for measure in MEASURES}
    assert all(np.isfinite(value) for value in numbers.values())
    assert 0 < numbers["fairness"] <= 1
    assert numbers["lost_to_the_network_gpu_h"] > 0
    assert 0 < numbers["scaling_factor"] < 1
    assert sum(group.jobs for group in by_size(run)) == len(run.jobs)
    assert sum(group.jobs for group in by_model(run)) == sum(job.gpus > 1 for job in run.jobs)
    assert {group.name for group in by_model(run)} == {"m", "n"}


def test_a_policy_that_never_starts_some_jobs_is_not_ranked_and_has_no_parts() -> None:
    """10 GPUs have no equal split over leafs of 4 in servers of 2: without that job, all others are sooner done."""
    jobs = [Job(f"j{number}", gpus, 0.0, 50, CHATTY) for number, gpus in enumerate((10, 10, 2))]
    chosen = [POLICIES[name] for name in ("ecmp", "source", "vclos")]
    found = compare(lambda seed: ClusterQuestion(WHERE, jobs, chosen, Conditions(seed=seed)), range(2))
    assert found.spread("vclos", "refused_jobs").mean == 2
    assert found.spread("vclos", "mean_jct_s").mean < found.spread("source", "mean_jct_s").mean
    assert found.verdict.unranked == ("vclos",)
    assert {found.verdict.best, found.verdict.runner_up} == {"ecmp", "source"}
    assert found.network_part("vclos") is None
    assert found.both_parts("vclos") is None
    assert found.both_parts("source") is not None
    assert not found.starts_as_many("vclos", "ecmp")
    assert not_ranked(found) == "Not ranked, because some jobs can never start under them: vclos (2 of 3 jobs)."
    alone = compare(lambda seed: replace(asked(seed, "vclos"), jobs=jobs), range(2))
    assert alone.verdict.unranked == ()
    assert alone.both_parts("vclos") is None


def test_seeds_count_alike_however_long_their_jobs_take(found: Comparison) -> None:
    """Sooner in one seed by a lot and later in a longer one by a little: the mean of times alone would say later."""

    def with_times(seed: int, **times: float) -> OneSeed:
        first = found.seeds[0]
        policies = {name: {**first.policies[name], "mean_jct_s": value} for name, value in times.items()}
        return replace(first, seed=seed, policies=policies)

    first = replace(found.first, policies=(POLICIES["source"], POLICIES["vclos"]))
    seeds = (with_times(0, source=10.0, vclos=8.0), with_times(1, source=100.0, vclos=103.0))
    verdict = replace(found, first=first, seeds=seeds).verdict
    assert (verdict.best, verdict.runner_up) == ("vclos", "source")
    assert verdict.gain is not None
    assert verdict.gain.values == pytest.approx((0.2, -0.03))


def test_policies_whose_means_agree_by_chance_are_tied_and_not_as_fast(found: Comparison) -> None:
    def verdict(*source: float) -> Verdict:
        first = replace(found.first, policies=(POLICIES["source"], POLICIES["vclos"]))
        seen = found.seeds[0].policies
        seeds = tuple(
            replace(
                found.seeds[0],
                policies={
                    name: {**seen[name], "mean_jct_s": value} for name, value in (("source", took), ("vclos", 10.0))
                },
            )
            for took in source
        )
        return replace(found, first=first, seeds=seeds).verdict

    assert verdict(10.0, 10.0, 10.0).as_fast == ("vclos",)
    chance = verdict(8.0, 10.0, 12.5)
    assert chance.as_fast == ()
    assert chance.is_level


def test_groups_and_waits_are_those_of_all_seeds(found: Comparison) -> None:
    every = [answer(asked(seed, "ecmp")).timelines[0] for seed in range(3)]
    jobs = [job for run in every for job in run.jobs]
    groups = found.by_size("ecmp")
    assert sum(group.jobs for group in groups) == pytest.approx(30, abs=len(groups))
    small = [job.slowdown for job in jobs if job.gpus == 8]
    assert next(group for group in groups if group.name == "5-8").slowdown == pytest.approx(np.mean(small))
    waited = sum(found.waits_s("ecmp").values())
    assert waited == pytest.approx(found.spread("ecmp", "mean_jwt_s").mean)


def test_one_study_has_no_spread(found: Comparison) -> None:
    one = of_one(found.first)
    assert one.spread("ecmp", "mean_jct_s").half_width == 0
    assert one.network_part("ecmp") is None
    assert not one.verdict.is_level


def test_intervals_are_students() -> None:
    """Five values with a standard deviation of 1: 2.776 / sqrt(5)."""
    values = tuple(np.array([-1.0, -1.0, 0.0, 1.0, 1.0]).tolist())
    assert Spread(values).half_width == pytest.approx(2.776 / 5**0.5)
    assert not Spread(values).excludes_zero
    assert Spread(tuple(value + 2 for value in values)).excludes_zero
    assert not Spread((5.0,)).excludes_zero
    assert sooner([1.0, 1.0], [2.0, 4.0]).values == (0.5, 0.75)


def test_a_trace_in_another_order_has_the_same_jobs_and_gaps() -> None:
    jobs = [TraceJob(f"j{at}", gpus=1, arrival_s=float(at**2), deadline_s=float(at**2) + 5) for at in range(30)]
    again = reordered(jobs, seed=5)
    assert sorted(job.name for job in again) == sorted(job.name for job in jobs)
    assert [job.name for job in again] != [job.name for job in jobs]
    gaps = [b.arrival_s - a.arrival_s for a, b in pairwise(again)]
    assert sorted([again[0].arrival_s, *gaps]) == pytest.approx(
        sorted([0.0, *(float((at + 1) ** 2 - at**2) for at in range(29))])
    )
    assert all(job.deadline_s == pytest.approx(job.arrival_s + 5) for job in again)
