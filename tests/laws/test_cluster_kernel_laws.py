"""The loops of the shared network against plain Python of the same contract."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.tenancy._paths_kernel import hashed, least_loaded
from ropewalk.tenancy.pacing._sharing_kernel import sample
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, nothing_seen

Phase = tuple[float, float, int, list[tuple[int, int, float]]]
"""(floor, seconds of a flow, load of a NIC, (up, down, weight) of its flows)."""
LINKS = 6

phases = st.tuples(
    st.floats(0.1, 1.0),
    st.floats(0.1, 1.0),
    st.integers(1, 2),
    st.lists(
        st.tuples(st.integers(0, LINKS - 1), st.integers(0, LINKS - 1), st.sampled_from([0.25, 0.5, 1.0])), max_size=4
    ),
)
worlds = st.lists(st.lists(phases, min_size=1, max_size=3), min_size=1, max_size=4)


def _fullest(flows: list[tuple[int, int, float]], others: Counter[int]) -> tuple[float, list[float]]:
    load = Counter(others)
    for up, down, weight in flows:
        load[up] += weight
        load[down] += weight
    company = [max(load[up], load[down]) for up, down, _ in flows]
    return max(company, default=0.0), company


def _at(weights: list[float], where: float) -> tuple[int, float] | None:
    """The phase, and which part of it is over."""
    ends = np.cumsum(weights)
    later = np.flatnonzero(where < ends)
    if not len(later):
        return None
    phase = int(later[0])
    return phase, 1 - (ends[phase] - where) / weights[phase]


@settings(max_examples=60)
@given(worlds, st.integers(0, 2**32 - 1))
def test_snapshots_are_what_plain_counting_says(jobs: list[list[Phase]], seed: int) -> None:
    random = np.random.default_rng(seed)
    flat = [phase for job in jobs for phase in job]
    start = np.concatenate([[0], np.cumsum([len(job) for job in jobs])]).astype(np.int64)
    flows = [phase[3] for phase in flat]
    alone = [max(floor, each * _fullest(ways, Counter())[0]) for floor, each, _, ways in flat]
    window = (np.array(alone) * random.uniform(1.0, 2.0, len(flat))).astype(np.float64)
    iteration = np.array([window[a:b].sum() for a, b in pairwise(start)]) * 1.7
    rounds = random.integers(1, 4, len(flat)).astype(np.float64)
    lasts = [random.choice([0.4, 0.7, 1.0], len(ways)) for ways in flows]
    shape = (len(jobs), 5)
    moment, probe = random.random(shape), random.random(shape)
    seen, load = nothing_seen(*shape), np.zeros(LINKS)
    laid = LaidJobs(
        start,
        np.array([phase[0] for phase in flat]),
        np.array([phase[1] for phase in flat]),
        np.array(alone),
        np.array([phase[2] for phase in flat], np.float64),
        rounds,
        np.concatenate([[0], np.cumsum([len(ways) for ways in flows])]).astype(np.int64),
        np.array([(up, down) for ways in flows for up, down, _ in ways], np.int32).reshape(-1, 2),
        np.array([(weight, weight) for ways in flows for _, _, weight in ways]).reshape(-1, 2),
        np.concatenate(lasts),
    )
    sample(laid, DrawnMoments(window, iteration, moment, probe), load, seen)
    stretch, met, probed = seen
    assert not load.any()
    for shot in range(shape[1]):
        active = {}
        for job in range(len(jobs)):
            found = _at(window[start[job] : start[job + 1]].tolist(), moment[job, shot] * iteration[job])
            active[job] = None if found is None else (int(start[job]) + found[0], found[1])
        for job in range(len(jobs)):
            mine = range(start[job], start[job + 1])
            linked = [alone[phase] if flows[phase] else 0.0 for phase in mine]
            if not any(linked):
                assert (probed[job, shot], stretch[job, shot], met[job, shot]) == (-1, 1.0, 0.0)
                continue
            trial = int(start[job]) + (_at(linked, probe[job, shot] * sum(linked)) or (0, 0.0))[0]
            others: Counter[int] = Counter()
            for other, found in active.items():
                if other != job and found is not None:
                    phase, over = found
                    into = over * rounds[phase] % 1.0  # of the round that runs now
                    running = [flow for flow, part in zip(flows[phase], lasts[phase], strict=True) if part > into]
                    for up, down, weight in running:
                        others[up] += weight
                        others[down] += weight
            floor, each, nic, ways = flat[trial]
            fullest, company = _fullest(ways, others)
            assert probed[job, shot] == trial
            assert stretch[job, shot] == pytest.approx(max(floor, each * fullest) / alone[trial])
            assert met[job, shot] == sum(count > nic for count in company)


plants = st.integers(1, 3).flatmap(
    lambda spines: st.lists(st.lists(st.integers(0, 2), min_size=spines, max_size=spines), min_size=2, max_size=4)
)


def _numbered(cables: list[list[int]]) -> tuple[np.ndarray, np.ndarray, dict[int, tuple[int, int]]]:
    """The matrix, the first cable of every pair, and whose each cable is."""
    matrix = np.array(cables, np.int32)
    count = matrix.ravel().astype(np.int64)
    first = (np.cumsum(count) - count).reshape(matrix.shape)
    owner = {
        int(first[leaf, spine]) + strand: (leaf, spine)
        for leaf in range(matrix.shape[0])
        for spine in range(matrix.shape[1])
        for strand in range(matrix[leaf, spine])
    }
    return matrix, first, owner


@given(plants, st.integers(0, 2**40), st.booleans())
def test_hashed_flows_go_up_at_their_leaf_and_down_at_the_other(
    cables: list[list[int]], seed: int, polarised: bool
) -> None:
    matrix, first, owner = _numbered(cables)
    leafs = len(cables)
    leaf = np.repeat(np.arange(leafs, dtype=np.int32), 2)
    pairs = [(a, b) for a in range(2 * leafs) for b in range(2 * leafs) if leaf[a] != leaf[b]]
    src, dst = (np.array(ends, np.int64) for ends in zip(*pairs, strict=True))
    up, down = hashed(src, dst, leaf, matrix, first, seed, polarised)
    for flow, (a, b) in enumerate(pairs):
        joined = [spine for spine in range(matrix.shape[1]) if matrix[leaf[a], spine] and matrix[leaf[b], spine]]
        if not joined:
            assert (up[flow], down[flow]) == (-1, -1)
            continue
        assert up[flow] % 2 == 0
        assert down[flow] % 2 == 1
        at, above = owner[int(up[flow]) // 2]
        to, through = owner[int(down[flow]) // 2]
        assert (at, to) == (leaf[a], leaf[b])
        assert above == through


@given(plants, st.integers(0, 2**32 - 1))
def test_balanced_flows_take_a_way_whose_fuller_link_is_emptiest(cables: list[list[int]], seed: int) -> None:
    matrix, first, _ = _numbered(cables)
    leafs = len(cables)
    leaf = np.repeat(np.arange(leafs, dtype=np.int32), 2)
    random = np.random.default_rng(seed)
    load = random.integers(0, 3, max(2 * int(matrix.sum()), 1)).astype(np.float64)
    before = load.copy()
    pairs = [(a, b) for a in range(2 * leafs) for b in range(2 * leafs) if leaf[a] != leaf[b]]
    src, dst = (np.array(ends, np.int64) for ends in zip(*pairs, strict=True))
    up, down = least_loaded(src, dst, leaf, matrix, first, load)
    for flow, (a, b) in enumerate(pairs):
        ways = [
            max(before[2 * (first[leaf[a], spine] + rise)], before[2 * (first[leaf[b], spine] + fall) + 1])
            for spine in range(matrix.shape[1])
            for rise in range(matrix[leaf[a], spine])
            for fall in range(matrix[leaf[b], spine])
        ]
        if not ways:
            assert (up[flow], down[flow]) == (-1, -1)
            continue
        assert max(before[up[flow]], before[down[flow]]) == min(ways)
        before[[up[flow], down[flow]]] += 1
    assert (before == load).all()
