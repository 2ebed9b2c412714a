"""What holds for every trace: work is conserved, nobody is faster than alone, order among networks, the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from job_exchanges import EXCHANGES, applies

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.collectives import job_group
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.failure import Failure
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import allocator_named
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.rounds import patterns
from ropewalk.tenancy.simulation import Rules
from ropewalk.tenancy.timeline import Timeline
from ropewalk.tenancy.work import Iteration, JobExchange

WHERE = plant("leaf-spine:4x4x4", gpus_per_server=2)
NIC = WHERE.nic_bandwidth

works = st.builds(
    lambda compute, collective, seconds, hidden: Iteration(
        compute, (JobExchange(collective, seconds * NIC, overlap_s=hidden * compute),)
    ),
    st.floats(0.1, 2.0),
    st.sampled_from(["ring", "hierarchical-ring", "halving-doubling", "all-to-all"]),
    st.floats(0.01, 2.0),
    st.sampled_from([0.0, 0.5]),
)


@st.composite
def traces(draw: st.DrawFn, sizes: tuple[int, ...] = (1, 2, 4, 8, 16)) -> list[Job]:
    count = draw(st.integers(1, 12))
    return [
        Job(
            f"j{number}",
            draw(st.sampled_from(sizes)),
            draw(st.floats(0.0, 30.0)),
            draw(st.integers(1, 20)),
            draw(works),
        )
        for number in range(count)
    ]


def run(
    jobs: list[Job], policy: str = "none", routing: str = "ecmp", failures: Sequence[Failure] = (), **more: object
) -> Timeline:
    rules = Rules(routing, **more)  # type: ignore[arg-type]
    return replay(WHERE, jobs, allocate=policy, rules=rules, failures=failures, check_every_event=True)


@settings(max_examples=25)
@given(
    traces(),
    st.sampled_from([("none", "ecmp"), ("none", "balanced"), ("none", "source"), ("vclos", "source")]),
    st.sampled_from(["fifo", "smallest", "shortest"]),
    st.sampled_from(["none", "easy", "conservative"]),
)
def test_work_is_conserved_and_nobody_is_faster_than_alone(
    jobs: list[Job], way: tuple[str, str], queue: str, backfill: str
) -> None:
    found = run(jobs, *way, queue=queue, backfill=backfill)
    assert len(found.jobs) + len(found.refused) == len(jobs)
    by_name = {job.name: job for job in jobs}
    for record in found.jobs:
        job = by_name[record.name]
        alone = SharedNetwork(WHERE, "ideal", 0).footprint(job.work, record.allocation)
        assert record.quiet_s == pytest.approx(job.iterations * alone.quiet_iteration_s)
        assert record.jrt_s >= record.quiet_s * (1 - 1e-9)
        assert record.flows == pytest.approx(job.iterations * alone.sent)
        assert -1e-9 <= record.met_flows <= record.flows * (1 + 1e-9)
        assert record.start_s >= record.arrival_s
    span = found.curves.time_s[-1] - found.curves.time_s[0]
    used = sum(record.gpus * record.jrt_s for record in found.jobs)
    assert found.gpu_utilisation * WHERE.gpus * span == pytest.approx(used, abs=1e-6)


@settings(max_examples=25)
@given(
    traces(),
    st.sampled_from([("none", "ecmp"), ("vclos", "source")]),
    st.lists(st.tuples(st.floats(0.5, 60.0), st.floats(0.5, 30.0)), max_size=3),
    st.sampled_from(["ecmp", "re-place"]),
)
def test_every_second_of_waiting_has_a_reason_whatever_breaks(
    jobs: list[Job], way: tuple[str, str], broken: list[tuple[float, float]], when_a_link_dies: str
) -> None:
    """One leaf and two spines die and come back, each on its own."""
    parts = (Drained(leafs=[1]), Drained(spines=[0]), Drained(spines=[2]))
    failures = [
        Failure(at, part, at + length) for part, (at, length) in zip(parts, broken, strict=False)
    ]  # fmt: skip
    found = run(jobs, *way, failures=failures, when_a_link_dies=when_a_link_dies)
    assert len(found.jobs) + len(found.refused) == len(jobs)
    if not found.refused:
        waited = sum(record.jwt_s for record in found.jobs)
        assert sum(found.waiting_causes().values()) == pytest.approx(waited, abs=1e-6)
    for record in found.jobs:
        assert sum(record.waited_s.values()) == pytest.approx(record.jwt_s, abs=1e-6)
        assert sum(found.causes_of(record).values()) == pytest.approx(record.jwt_s, abs=1e-6)
        ends = [record.arrival_s, *(edge for one in record.stretches for edge in (one.start_s, one.end_s))]
        assert ends == sorted(ends)


@settings(max_examples=15)
@given(traces((2, 4, 8, 16)), st.integers(0, 3))
def test_ideal_is_no_slower_than_isolated_and_isolated_no_slower_than_ecmp(jobs: list[Job], seed: int) -> None:
    """For the same placement at the same times: jobs come one after the other and start at once, or not at all."""
    spread = [Job(job.name, job.gpus, 1e6 * number, job.iterations, job.work) for number, job in enumerate(jobs)]
    running = {
        routing: [job.jrt_s for job in run(spread, "vclos", routing, seed=seed).jobs]
        for routing in ("ideal", "source", "ecmp")
    }
    for ideal, isolated, hashed in zip(running["ideal"], running["source"], running["ecmp"], strict=True):
        assert ideal == pytest.approx(isolated, rel=1e-9)
        assert isolated <= hashed * (1 + 1e-9)


@settings(max_examples=10)
@given(traces(), st.sampled_from(["ecmp", "ecmp-polarised", "balanced", "source", "ideal"]), st.integers(0, 2**40))
def test_the_same_seed_gives_the_same_bytes(jobs: list[Job], routing: str, seed: int) -> None:
    assert run(jobs, "none", routing, seed=seed).as_json() == run(jobs, "none", routing, seed=seed).as_json()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from((4, 8)), works), min_size=1, max_size=4), st.integers(0, 5))
def test_pace_depends_on_who_is_there_and_not_on_who_was(asked: list[tuple[int, Iteration]], seed: int) -> None:
    """Jobs that came and went leave nothing behind."""
    state, jobs = Occupancy(WHERE), []
    for number, (gpus, work) in enumerate(asked):
        found = allocator_named("none")(state, f"j{number}", gpus)
        if isinstance(found, Waiting):
            continue
        assert isinstance(found, Allocation)
        state.place(found)
        jobs.append((f"j{number}", number, work, found))
    direct, detour = SharedNetwork(WHERE, "ecmp", seed), SharedNetwork(WHERE, "ecmp", seed)
    for name, number, work, place in jobs:
        direct.start(name, number, direct.footprint(work, place))
    for name, number, work, place in reversed(jobs):
        detour.start(name, number, detour.footprint(work, place))
        detour.settle()
        detour.stop(name)
        detour.settle()
        detour.start(name, number, detour.footprint(work, place))
    direct.settle()
    detour.settle()
    for name, *_ in jobs:
        assert direct.pace(name) == detour.pace(name)
        assert direct.pace(name).iteration_s >= direct.running(name).alone_iteration_s * (1 - 1e-12)


@given(st.sampled_from(EXCHANGES), st.integers(2, 40))
def test_ranks_send_to_others_and_never_to_themselves(collective: str, size: int) -> None:
    group = job_group((size,))
    assume(applies(collective, group))
    for pattern in patterns(collective, group):
        assert (pattern.src != pattern.dst).all()
        assert min(pattern.src.min(), pattern.dst.min()) >= 0
        assert max(pattern.src.max(), pattern.dst.max()) < size
        assert pattern.share > 0
        assert pattern.repeat > 0
