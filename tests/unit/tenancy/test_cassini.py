"""CASSINI: rotations against all shifts, one shift for every job, and jobs that take turns against events."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.pacing import circle
from ropewalk.tenancy.pacing.affinity import SharedLink, affinity
from ropewalk.tenancy.pacing.circle import best_turns, mean_score, perimeter
from ropewalk.tenancy.pacing.in_turns import _shared_links, shifts_of
from ropewalk.tenancy.pacing.pace import Company
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.work import Iteration, JobExchange

levels = st.sampled_from([0.0, 0.25, 0.5, 1.0])
circles = st.lists(st.sampled_from([2, 3, 4, 6]).flatmap(lambda n: st.lists(levels, min_size=n, max_size=n)),
                   min_size=2, max_size=3).map(lambda rows: [np.array(row) for row in rows])  # fmt: skip


def by_hand(demands: list[np.ndarray], turns: tuple[int, ...]) -> float:
    """Step by step: what is on the link beyond its capacity, mean over the unified circle."""
    steps = int(np.lcm.reduce([len(demand) for demand in demands]))
    over = 0.0
    for at in range(steps):
        total = sum(demand[(at - turn) % len(demand)] for demand, turn in zip(demands, turns, strict=True))
        over += max(total - 1.0, 0.0)
    return 1.0 - over / steps


@settings(max_examples=60, deadline=None)
@given(circles)
def test_the_best_rotation_is_the_best_of_all_shifts(demands: list[np.ndarray]) -> None:
    turns, found = best_turns(demands)
    best = max(by_hand(demands, shifts) for shifts in product(*(range(len(demand)) for demand in demands)))
    assert found == pytest.approx(best)
    assert by_hand(demands, turns) == pytest.approx(best)


@settings(max_examples=40, deadline=None)
@given(circles)
def test_jobs_out_of_step_have_the_mean_of_all_shifts(demands: list[np.ndarray]) -> None:
    # Over the whole unified circle, so that every moment of one meets every moment of the other.
    steps = perimeter(demands)
    assert steps is not None
    rolled = [np.tile(demand, steps // len(demand)) for demand in demands]
    every = [by_hand(rolled, shifts) for shifts in product(range(steps), repeat=len(demands))][: 12**3]
    if len(every) == steps ** len(demands):
        assert mean_score(demands) == pytest.approx(np.mean(every))


@settings(max_examples=30, deadline=None)
@given(circles)
def test_turning_one_job_after_the_other_comes_close_to_all_shifts(demands: list[np.ndarray]) -> None:
    exact = best_turns(demands)[1]
    before, circle.EXHAUSTIVE = circle.EXHAUSTIVE, 0
    try:
        turns, found = best_turns(demands)
    finally:
        circle.EXHAUSTIVE = before
    assert by_hand(demands, turns) == pytest.approx(found)
    assert found >= exact - 0.15
    if len(demands) == 2:
        assert found == pytest.approx(exact)


def test_two_jobs_interleave_where_both_fit_into_an_iteration() -> None:
    """The paper's first example in shape: half an iteration each fits, 60 % each overlaps by a fifth."""
    half, more = np.repeat([1.0, 0.0], [30, 30]), np.repeat([1.0, 0.0], [36, 24])
    assert best_turns([half, half])[1] == 1.0
    assert best_turns([more, more])[1] == pytest.approx(0.8)


def test_jobs_of_different_iterations_meet_on_one_circle() -> None:
    """40 and 60 steps: a circle of 120, three turns of one and two of the other; both must fit into 20 steps."""
    short, long = np.zeros(40), np.zeros(60)
    short[:10], long[:10] = 1.0, 1.0
    assert perimeter([short, long]) == 120
    assert best_turns([short, long])[1] == 1.0
    long[:15] = 1.0
    assert best_turns([short, long])[1] < 1.0


trees = st.integers(2, 6).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.integers(0, 10**6), min_size=count - 1, max_size=count - 1),
        st.lists(st.integers(0, 11), min_size=2 * count, max_size=2 * count),
    )
)


@given(trees)
def test_one_shift_for_every_job_suits_all_its_links(tree: tuple[int, list[int], list[int]]) -> None:
    """On every link of a graph without loops, jobs stand to each other as the link wants it."""
    count, parents, turns = tree
    links = [
        SharedLink({parents[job - 1] % job: turns[2 * job], job: turns[2 * job + 1]}, 1.0) for job in range(1, count)
    ]
    period = 12
    found = affinity(links, dict.fromkeys(range(count), period))
    assert found.left_out == 0
    assert set(found.group.values()) == {0}
    for link in links:
        (a, at_a), (b, at_b) = link.turns.items()
        assert (found.shift[a] - found.shift[b]) % period == (at_a - at_b) % period


def test_a_link_that_closes_a_loop_is_left_out_and_it_is_the_one_that_gains_least() -> None:
    links = [SharedLink({0: 0, 1: 1}, 0.5), SharedLink({1: 0, 2: 1}, 0.1), SharedLink({0: 0, 2: 5}, 0.4)]
    found = affinity(links, {0: 12, 1: 12, 2: 12})
    assert found.left_out == 1
    assert dict(found.shift) == {0: 0, 1: 1, 2: 5}


WHERE = plant("leaf-spine:2x1x4", gpus_per_server=1)
"""Everybody crosses on the same cable."""


def sending(compute_s: float, link_s: float) -> Iteration:
    return Iteration(compute_s, (JobExchange("pipeline", link_s * WHERE.link_bandwidth),))


def network_of(works: list[Iteration], routing: str = "cassini") -> SharedNetwork:
    network = SharedNetwork(WHERE, routing, 0)
    for number, work in enumerate(works):
        job = Allocation(f"j{number}", (number, 4 + number), "shared", (0, 1), (), (), (0, 0), (0, 1), "none")
        network.start(f"j{number}", number, network.footprint(work, job))
    network.settle()
    return network


def slowdowns(works: list[Iteration], routing: str = "cassini") -> list[float]:
    network = network_of(works, routing)
    names = [f"j{number}" for number in range(len(works))]
    return [network.pace(name).iteration_s / network.running(name).alone_iteration_s for name in names]


@pytest.mark.parametrize("jobs", [[(0.5, 0.5)] * 2, [(0.6, 0.3)] * 3, [(0.7, 0.3), (1.7, 0.3)]])
def test_compatible_jobs_run_as_if_alone(jobs: list[tuple[float, float]]) -> None:
    works = [sending(*job) for job in jobs]
    assert slowdowns(works) == pytest.approx([1.0] * len(jobs))
    assert min(slowdowns(works, "ecmp")) > 1.02


def test_what_jobs_want_of_links_is_what_their_flows_add_up_to() -> None:
    where = plant("leaf-spine:4x4x4", gpus_per_server=2)
    network = SharedNetwork(where, "ecmp", 3)
    jobs = []
    for number in range(2):
        gpus = tuple(4 * leaf + 2 * number + at for leaf in range(4) for at in range(2))
        held = Allocation(
            job=f"j{number}", gpus=gpus, stage="shared", leafs=(0, 1, 2, 3), spines=(), links=(),
            spine_of_gpu=(-1,) * 8, leaf_of_gpu=tuple(leaf for leaf in range(4) for _ in range(2)), guarantee="none",
        )  # fmt: skip
        work = Iteration(0.1, (JobExchange("all-to-all", 1e9), JobExchange("ring", 5e8)))
        jobs.append(network.footprint(work, held))
    one = jobs[0]
    for place, link in enumerate(one.links.tolist()):
        load, seconds = np.zeros(len(one.exchange)), 0.0
        for flow, phase in enumerate(one.phase_of_flow.tolist()):
            for hop in np.flatnonzero(one.path[flow] == link).tolist():
                load[phase] += one.share[flow, hop]
                seconds += one.flow_s[phase] * one.share[flow, hop]
        assert one.load_in_phases(link) == pytest.approx(load)
        assert one.wanted[place] == pytest.approx(seconds / one.alone_iteration_s)

    def wanted(link: int) -> float:
        return sum(float(job.wanted[np.searchsorted(job.links, link)]) for job in jobs)

    ((together, busiest),) = _shared_links(jobs)
    assert together == (0, 1)
    assert wanted(busiest) == pytest.approx(max(map(wanted, set(one.links.tolist()) & set(jobs[1].links.tolist()))))


def test_jobs_that_are_nearly_in_step_wait_for_each_other() -> None:
    one, other = slowdowns([sending(0.6, 0.4), sending(0.62, 0.4)])
    assert 1.0 < one < 1.05
    assert 1.0 <= other < 1.02


def test_jobs_that_cannot_be_in_step_are_as_they_were() -> None:
    works = [sending(0.137, 0.2), sending(0.511, 0.3)]
    assert slowdowns(works) == pytest.approx(slowdowns(works, "ecmp"))


def events(works: list[tuple[float, float]], starts: list[float], iterations: int = 60) -> list[float]:
    """Fair sharing of one link, event by event: mean iterations of jobs that start after each other."""
    left = [None if start else works[job][1] for job, start in enumerate(starts)]
    until = [start if start else np.inf for start in starts]
    now, done, ends = 0.0, [0] * len(works), [0.0] * len(works)
    while min(done) < iterations:
        on_link = [job for job, value in enumerate(left) if value is not None]
        next_end = min((left[job] * len(on_link) for job in on_link), default=np.inf)
        step = min(next_end, min(until) - now)
        for job in on_link:
            left[job] -= step / len(on_link)
        now += step
        for job in range(len(works)):
            if left[job] is not None and left[job] <= 1e-12:
                left[job], until[job] = None, now + works[job][0]
                done[job] += 1
                ends[job] = now
            elif left[job] is None and until[job] <= now + 1e-12:
                left[job], until[job] = works[job][1], np.inf
    return [(ends[job] - starts[job] - works[job][1]) / (done[job] - 1) for job in range(len(works))]


@pytest.mark.parametrize("jobs", [[(0.5, 0.5)] * 2, [(0.6, 0.3)] * 3, [(0.4, 0.6)] * 2])
def test_shifted_jobs_run_event_by_event_at_the_pace_that_is_promised(jobs: list[tuple[float, float]]) -> None:
    network = network_of([sending(*job) for job in jobs])
    footprints = [network.running(f"j{number}") for number in range(len(jobs))]
    company = Company(
        footprints,
        np.ones(len(jobs), np.int64),
        np.zeros((len(jobs), 2, 1)),
        np.zeros(4),
        WHERE.cables,
        WHERE.core_cables,
        WHERE.tiers,
    )
    step_s, _, found = shifts_of(company)
    starts = [found.shift[number] * step_s for number in range(len(jobs))]
    promised = [network.pace(f"j{number}").iteration_s for number in range(len(jobs))]
    assert promised == pytest.approx(events(jobs, starts), rel=0.03)
