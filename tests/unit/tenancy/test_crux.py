"""Crux: priorities by GPU intensity against brute force, compression against all cuts, and paces against events."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.pacing.compression import compressed
from ropewalk.tenancy.pacing.intensity import Rival, delay_behind, loss_behind, priorities
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.work import Iteration, JobExchange

rivals = st.builds(
    lambda work, link, rest: Rival(work, link, link + rest), st.floats(1, 50), st.floats(0.05, 2), st.floats(0.05, 4)
)


def second_iteration_s(first: Rival, second: Rival, offsets: int = 200) -> float:
    """Stretch by stretch: the first is on the link for a part of every period; the second takes what is left.

    The second computes, then communicates; nothing overlaps. Mean over where in a period it begins to.
    """
    free, took = first.iteration_s - first.link_s, 0.0
    for number in range(offsets):
        into, left = first.iteration_s * (number + 0.5) / offsets, second.link_s
        if into < first.link_s:
            took += first.link_s - into
            room = free
        else:
            room = first.iteration_s - into
        while left > room:
            took += room + first.link_s
            left -= room
            room = free
        took += left
    return second.iteration_s - second.link_s + took / offsets


def fits_just(first: Rival, second: Rival) -> bool:
    """Does what the second sends just fit into gaps of the first? A rounding more or less is then a period."""
    gaps = second.link_s / (first.iteration_s - first.link_s)
    return round(gaps) >= 1 and abs(gaps - round(gaps)) < 0.02


@settings(max_examples=40, deadline=None)
@given(rivals, rivals)
def test_the_mean_delay_behind_another_job_is_that_of_events(first: Rival, second: Rival) -> None:
    assume(not fits_just(first, second))
    simulated = second_iteration_s(first, second) - second.iteration_s
    assert delay_behind(first, second) == pytest.approx(simulated, rel=0.02, abs=0.01 * first.iteration_s)


@settings(max_examples=40, deadline=None)
@given(rivals, rivals)
def test_who_goes_first_is_who_loses_more_behind_the_other(one: Rival, other: Rival) -> None:
    """Brute force: both orders, simulated; the priority picks the one with more computing per second."""

    def computed(first: Rival, second: Rival) -> float:
        return first.work / first.iteration_s + second.work / second_iteration_s(first, second)

    assume(not fits_just(one, other))
    assume(not fits_just(other, one))
    ours, theirs = computed(one, other), computed(other, one)
    a, b = priorities([one, other])
    if abs(ours - theirs) > 0.02 * max(ours, theirs):
        assert (a > b) == (ours > theirs)


def test_of_jobs_that_keep_a_link_busy_the_more_intense_one_goes_first() -> None:
    """The theorem: on a link that is never idle, a second is worth what its job computes with it."""
    dense, light = Rival(100.0, 1.0, 1.1), Rival(10.0, 1.0, 1.1)
    a, b = priorities([dense, light])
    assert a > b


def test_of_jobs_alike_the_one_with_shorter_iterations_goes_first() -> None:
    """Equal intensity: it waits for the network more often."""
    short, long = Rival(1.0, 0.1, 0.4), Rival(10.0, 1.0, 4.0)
    assert short.intensity == long.intensity
    a, b = priorities([short, long])
    assert a > b


def test_a_job_whose_communication_hides_lets_others_go_first() -> None:
    shown, hidden = Rival(1.0, 0.3, 1.0), Rival(1.0, 0.3, 1.0, hidden_s=0.8)
    assert loss_behind(shown, hidden) == 0
    a, b = priorities([shown, hidden])
    assert a > b


graphs = st.integers(3, 6).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.dictionaries(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda edge: edge[0] < edge[1]),
            st.integers(1, 9).map(float), max_size=12,
        ),
    )
)  # fmt: skip


def _between(level: tuple[int, ...] | np.ndarray, edges: dict[tuple[int, int], float]) -> float:
    return sum(weight for (a, b), weight in edges.items() if level[a] != level[b])


@settings(max_examples=60, deadline=None)
@given(graphs, st.integers(2, 3))
def test_compression_keeps_the_order_and_nearly_all_that_any_cut_could(
    graph: tuple[int, dict[tuple[int, int], float]], levels: int
) -> None:
    count, edges = graph
    found = compressed(np.arange(count, 0, -1).astype(float), edges, levels)
    if count <= levels:
        assert len(set(found.tolist())) == count
        return
    assert found.max() < levels
    assert all(found[a] <= found[b] for a, b in edges)
    best = max(
        _between(level, edges)
        for level in product(range(levels), repeat=count)
        if all(level[a] <= level[b] for a, b in edges)
    )
    assert _between(found, edges) >= 0.9 * best


def test_where_all_meet_the_cut_of_their_one_order_is_the_best() -> None:
    edges = {(a, b): float(6 - a) for a in range(6) for b in range(a + 1, 6)}
    found = compressed(np.arange(6, 0, -1).astype(float), edges, levels=3)
    best = max(
        _between(level, edges) for level in product(range(3), repeat=6) if all(level[a] <= level[b] for a, b in edges)
    )
    assert _between(found, edges) == best


WHERE = plant("leaf-spine:2x1x4", gpus_per_server=1)
"""Everybody crosses on the same cable."""


def paces(works: list[Iteration], where: Plant = WHERE) -> list[tuple[float, float]]:
    """(iteration, alone) of jobs with one GPU on each leaf, under Crux."""
    network = SharedNetwork(where, "crux", 0)
    for number, work in enumerate(works):
        job = Allocation(f"j{number}", (number, 4 + number), "shared", (0, 1), (), (), (0, 0), (0, 1), "none")
        network.start(f"j{number}", number, network.footprint(work, job))
    network.settle()
    return [
        (network.pace(f"j{number}").iteration_s, network.running(f"j{number}").alone_iteration_s)
        for number in range(len(works))
    ]


def sending(compute_s: float, link_s: float, busy: float = 1.0) -> Iteration:
    return Iteration(compute_s, (JobExchange("pipeline", link_s * WHERE.link_bandwidth),), busy_s=compute_s * busy)


@pytest.mark.parametrize(
    ("first", "second"), [((1.0, 0.4), (0.5, 0.5)), ((2.0, 0.5), (3.0, 0.3)), ((0.6, 0.2), (0.1, 0.1))]
)
def test_the_first_is_not_slowed_down_and_the_second_as_events_say(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    (ahead, ahead_alone), (behind, behind_alone) = paces([sending(*first, busy=50.0), sending(*second, busy=1e-3)])
    assert ahead == pytest.approx(ahead_alone)
    assert behind_alone == pytest.approx(sum(second))
    simulated = second_iteration_s(Rival(1, first[1], sum(first)), Rival(1, second[1], sum(second)))
    assert behind == pytest.approx(simulated, rel=0.12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.05, 1.0)), min_size=2, max_size=4))
def test_nobody_starves(jobs: list[tuple[float, float]]) -> None:
    for took, alone in paces([sending(*job) for job in jobs]):
        assert alone * (1 - 1e-9) <= took < 60 * len(jobs) * alone
