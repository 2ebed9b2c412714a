"""Networks that spread flows: packets sprayed over all paths, and flows that choose a path in every round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.pacing._adaptive_kernel import CableFlows, SwitchCables, look_for_paths
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, nothing_seen
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.work import Iteration, JobExchange


def on(where: Plant, name: str, gpus: list[int]) -> Allocation:
    leafs = tuple(where.leaf_of_gpu[gpus].tolist())
    return Allocation(
        name, tuple(gpus), "shared", tuple(dict.fromkeys(leafs)), (), (), (-1,) * len(gpus), leafs, "none"
    )


def paces(
    where: Plant, routing: str, works: list[Iteration], places: list[list[int]], *, dead_cores: Sequence[int] = ()
) -> list[float]:
    """Iterations of jobs beside each other over those on a quiet network."""
    network = SharedNetwork(where, routing, 0)
    network.core_cables[:, list(dead_cores)] = 0
    for number, (work, gpus) in enumerate(zip(works, places, strict=True)):
        network.start(f"j{number}", number, network.footprint(work, on(where, f"j{number}", gpus)))
    network.settle()
    return [
        network.pace(f"j{number}").iteration_s / network.running(f"j{number}").quiet_iteration_s
        for number in range(len(works))
    ]


BUSY = Iteration(0.0, (JobExchange("pipeline", 1e9, group=2, stride=8),))
"""Every GPU of the first leaf sends to its partner on the second, and back, all the time."""


@pytest.mark.parametrize("routing", ["spray", "adaptive"])
def test_enough_cables_hold_nobody_up(routing: str) -> None:
    where = plant("leaf-spine:2x8x8", gpus_per_server=1)
    assert paces(where, routing, [BUSY], [list(range(16))]) == pytest.approx([1.0])


@pytest.mark.parametrize("routing", ["spray", "adaptive"])
def test_enough_cables_to_cores_hold_nobody_up_and_half_of_them_take_twice_as_long(routing: str) -> None:
    """Every GPU of the first pod sends to its partner in the second: 16 flows over 16 or 8 cables of the pod."""
    across = Iteration(0.0, (JobExchange("pipeline", 1e9, group=2, stride=16),))
    full = plant("fat-tree:8,2", gpus_per_server=1)
    assert paces(full, routing, [across], [list(range(32))]) == pytest.approx([1.0])
    odd = range(1, full.cores, 2)
    assert paces(full, routing, [across], [list(range(32))], dead_cores=odd) == pytest.approx([2.0])


def test_inside_a_pod_adaptive_flows_stay_below_cores() -> None:
    """Without any flow between pods a tree with cores is as fast as the leafs and spines of one of its pods."""
    pod, tree = plant("leaf-spine:4x4x4", gpus_per_server=1), plant("fat-tree:8,2", gpus_per_server=1)
    busy = Iteration(0.1, (JobExchange("all-to-all", 5e9),))
    places = [[0, 1, 4, 5], [2, 3, 6, 7, 8, 9]]
    assert paces(tree, "adaptive", [busy, busy], places) == pytest.approx(paces(pod, "adaptive", [busy, busy], places))


@pytest.mark.parametrize("routing", ["spray", "adaptive"])
def test_half_of_the_cables_take_twice_as_long(routing: str) -> None:
    where = plant("leaf-spine:2x4x8", gpus_per_server=1)
    assert paces(where, routing, [BUSY], [list(range(16))]) == pytest.approx([2.0])


def test_spraying_shares_odd_numbers_of_cables_and_whole_flows_cannot() -> None:
    """Eight flows over six cables: 8/6 sprayed, and two on some cable otherwise."""
    where = plant("leaf-spine:2x6x8", gpus_per_server=1)
    assert paces(where, "spray", [BUSY], [list(range(16))]) == pytest.approx([8 / 6])
    assert paces(where, "adaptive", [BUSY], [list(range(16))]) == pytest.approx([2.0])


def test_two_jobs_share_what_their_leaf_has() -> None:
    """Four flows each over four cables: nobody waits; over two, both take four times as long as one flow a cable."""
    half = Iteration(0.0, (JobExchange("pipeline", 1e9, group=2, stride=4),))
    places = [[*range(4), *range(8, 12)], [*range(4, 8), *range(12, 16)]]
    assert paces(plant("leaf-spine:2x8x8", 1), "spray", [half, half], places) == pytest.approx([1.0, 1.0])
    assert paces(plant("leaf-spine:2x2x8", 1), "spray", [half, half], places) == pytest.approx([4.0, 4.0], rel=0.05)


def test_leafs_that_nothing_joins_are_refused() -> None:
    split = Plant("split", 1, np.array([0, 1]), np.array([[1, 0], [0, 1]]))
    for routing in ("spray", "adaptive"):
        with pytest.raises(ClusterError, match="no spine connects leaf0 and leaf1"):
            SharedNetwork(split, routing, 0).footprint(
                Iteration(0.0, (JobExchange("ring", 1.0),)), on(split, "a", [0, 1])
            )


LEAFS, SPINES = 3, 2
flows = st.lists(
    st.tuples(st.integers(0, LEAFS - 1), st.integers(0, LEAFS - 1)).filter(lambda f: f[0] != f[1]), max_size=4
)


def _greedy(ways: list[tuple[int, int]], first: int, up: np.ndarray, down: np.ndarray) -> list[int]:
    """Plain Python: each flow on the spine whose fuller cable carries least, ties by both, then from its own number."""
    chosen = []
    for number, (a, b) in enumerate(ways):
        order = [(first + number + turn) % SPINES for turn in range(SPINES)]
        spine = min(order, key=lambda s: (max(up[a, s], down[b, s]), up[a, s] + down[b, s], order.index(s)))
        up[a, spine] += 1
        down[b, spine] += 1
        chosen.append(spine)
    return chosen


def _looked_at(
    switches: SwitchCables, start: np.ndarray, path: np.ndarray, share: np.ndarray, moments: np.ndarray
) -> np.ndarray:
    """How much longer phases take; every job has one phase, of 1 s."""
    count, ones = len(start) - 1, np.ones(len(start) - 1)
    cables, above = switches.cables, switches.core_cables
    carried = CableFlows(*(np.zeros(one.shape) for one in (cables, cables, above, above)))
    jobs = LaidJobs(
        np.arange(count + 1), np.zeros(count), ones, ones, ones, ones, start, path, share, np.ones(len(path))
    )  # fmt: skip
    seen = nothing_seen(*moments.shape[1:])
    look_for_paths(switches, carried, jobs, DrawnMoments(ones, ones, *moments), np.zeros(1), seen)
    assert not any(one.any() for one in carried)
    return seen.stretch


@settings(max_examples=80)
@given(st.lists(flows, min_size=2, max_size=4), st.integers(0, 2**32 - 1))
def test_adaptive_rounds_are_what_plain_counting_says(jobs: list[list[tuple[int, int]]], seed: int) -> None:
    """All jobs communicate all the time; each in turn is looked at among the others."""
    random = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum([len(ways) for ways in jobs])]).astype(np.int64)
    count, shots = len(jobs), 2
    path = np.array([(2 * a, 2 * b + 1) for ways in jobs for a, b in ways], np.int32).reshape(-1, 2)
    cables = np.ones((LEAFS, SPINES))
    one_pod = np.zeros(LEAFS, np.int64), np.array([0, SPINES]), np.zeros(SPINES, np.int64), np.zeros(SPINES, np.int64)
    switches = SwitchCables(cables, np.zeros((SPINES, 0)), *one_pod)
    seen = _looked_at(switches, start, path, np.full(path.shape, 1 / SPINES), random.random((2, count, shots)) * 0.9)
    up, down = np.zeros((LEAFS, SPINES)), np.zeros((LEAFS, SPINES))
    taken = [_greedy(ways, int(start[job]), up, down) for job, ways in enumerate(jobs)]
    for job, ways in enumerate(jobs):
        if not ways:
            assert (seen[job] == 1).all()
            continue
        others = up.copy(), down.copy()
        for (a, b), spine in zip(ways, taken[job], strict=True):
            others[0][a, spine] -= 1
            others[1][b, spine] -= 1
        again = _greedy(ways, int(start[job]), *others)
        fullest = max(max(others[0][a, s], others[1][b, s]) for (a, b), s in zip(ways, again, strict=True))
        assert (seen[job] == fullest).all()


TREE = plant("fat-tree:4", gpus_per_server=1)
between = st.lists(
    st.tuples(st.integers(0, TREE.leafs - 1), st.integers(0, TREE.leafs - 1)).filter(lambda f: f[0] != f[1]), max_size=5
)
Links = dict[tuple[str, int, int], float]


def _paths(a: int, b: int, first: int) -> list[list[tuple[str, int, int]]]:
    """Plain Python: every path between two leafs of the tree, in the order in which ties are broken."""
    tiers = TREE.tiers
    here, there = int(tiers.pod_of_leaf[a]), int(tiers.pod_of_leaf[b])
    found = []
    for turn in range(2):
        lane = (first + turn) % 2
        spine, far = int(tiers.first_spine[here]) + lane, int(tiers.first_spine[there]) + lane
        if here == there:
            found.append([("up", a, spine), ("down", b, spine)])
            continue
        for step in range(2):
            core = int(tiers.first_core[spine]) + (first // 2 + step) % 2
            found.append([("up", a, spine), ("down", b, far), ("rise", spine, core), ("fall", far, core)])
    return found


def _least_loaded(ways: list[tuple[int, int]], first: int, load: Links) -> list[list[tuple[str, int, int]]]:
    chosen = []
    for number, (a, b) in enumerate(ways):
        least = min(_paths(a, b, first + number), key=lambda path: _weight(path, load))
        for link in least:
            load[link] = load.get(link, 0.0) + 1
        chosen.append(least)
    return chosen


def _weight(path: list[tuple[str, int, int]], load: Links) -> tuple[float, float]:
    return max(load.get(link, 0.0) for link in path), sum(load.get(link, 0.0) for link in path)


@settings(max_examples=80)
@given(st.lists(between, min_size=2, max_size=4), st.integers(0, 2**32 - 1))
def test_adaptive_rounds_over_cores_are_what_plain_counting_says(jobs: list[list[tuple[int, int]]], seed: int) -> None:
    """All jobs communicate all the time; each in turn is looked at among the others."""
    random, tiers = np.random.default_rng(seed), TREE.tiers
    start = np.concatenate([[0], np.cumsum([len(ways) for ways in jobs])]).astype(np.int64)
    count, shots = len(jobs), 2
    path = np.full((int(start[-1]), 4), -1, np.int32)
    for flow, (a, b) in enumerate(way for ways in jobs for way in ways):
        path[flow, [0, 1 if tiers.pod_of_leaf[a] == tiers.pod_of_leaf[b] else 3]] = 2 * a, 2 * b + 1
    switches = SwitchCables(
        TREE.cables.astype(float), TREE.core_cables.astype(float),
        tiers.pod_of_leaf, tiers.first_spine, tiers.first_core, tiers.end_core,
    )  # fmt: skip
    seen = _looked_at(switches, start, path, np.full(path.shape, 1 / 2), random.random((2, count, shots)) * 0.9)
    load: Links = {}
    taken = [_least_loaded(ways, int(start[job]), load) for job, ways in enumerate(jobs)]
    for job, ways in enumerate(jobs):
        if not ways:
            assert (seen[job] == 1).all()
            continue
        others = dict(load)
        for link in (link for chosen in taken[job] for link in chosen):
            others[link] -= 1
        again = _least_loaded(ways, int(start[job]), others)
        assert (seen[job] == max(others[link] for chosen in again for link in chosen)).all()
