"""Laws of optical switches inside pods: programs agree, fibres are used once, circuits never move, flows never meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pod_circuits import could_start, pod_lanes_program, random_parts
from shifted_jobs import shifted_time
from tree_states import odd_tiers, three_tiers

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.circuits import circuits_of
from ropewalk.tenancy.optical.inside import ocs_vclos_pods
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres
from ropewalk.tenancy.optical.pod_invariants import check_pod_circuits
from ropewalk.tenancy.optical.pod_lanes import LeafPart, PodLanes, exact_pod_lanes, quick_pod_lanes
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.wired_inside import InsideWires
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.vclos.policy import vclos

seeds = st.integers(0, 2**32 - 1)
WORLDS = {
    "fat-tree": plant("fat-tree:6", gpus_per_server=1),
    "oversubscribed": plant("fat-tree:8,4,2", gpus_per_server=2),
    "shared cores": three_tiers(pods=3, leafs=3, lanes=5, cores=3, servers=2, size=2, planes=False),
}


def assert_laid(parts: Sequence[LeafPart], count: int, laid: PodLanes) -> None:
    """In every pod each fibre once, and m circuits between every leaf with m virtual ones and every lane."""
    assert len(set(laid.lanes.tolist())) == count
    for part, switches in zip(parts, laid.switches, strict=True):
        leaf_use, spine_use = np.zeros_like(part.fibres.leaf, int), np.zeros_like(part.fibres.spine)
        for (leaf, lane), some in switches.items():
            np.add.at(leaf_use[leaf], some, 1)
            np.add.at(spine_use[lane], some, 1)
        assert (leaf_use <= part.fibres.leaf).all()
        assert (spine_use <= part.fibres.spine).all()
        wanted = {(i, j): int(m) for i, m in enumerate(part.leafs) if m for j in laid.lanes.tolist()}
        assert {ends: len(some) for ends, some in switches.items()} == wanted


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 3), st.sampled_from([(1,), (2,), (1, 1), (2, 1), (1, 0, 1)]), st.integers(1, 2))
def test_lanes_of_pods_are_laid_exactly_where_the_program_word_for_word_has_a_solution(seed, pods, virtual, count):
    parts = random_parts(seed, pods, virtual, lanes=3, switches=4)
    candidates = np.random.default_rng(seed).permutation(3)
    possible = pod_lanes_program(parts, candidates.tolist(), count)
    quick, exact = quick_pod_lanes(parts, candidates, count), exact_pod_lanes(parts, candidates, count)
    for laid in (quick, exact):
        if laid is not None:
            assert isinstance(laid, PodLanes)
            assert_laid(parts, count, laid)
    assert possible or quick is None
    assert isinstance(exact, PodLanes) == possible


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_every_cable_of_any_plant_leads_through_one_switch_of_its_pod_and_a_fibre_each(seed):
    where = PodOpticalPlant.of_plant(odd_tiers(np.random.default_rng(seed)))
    leaf, spine, cable = np.nonzero(where.home_switch >= 0)
    switch = where.home_switch[leaf, spine, cable]
    assert Counter(zip(leaf.tolist(), spine.tolist(), strict=True)) == Counter(
        {(int(a), int(b)): int(where.cables[a, b]) for a, b in np.argwhere(where.cables)}
    )
    assert max(Counter(zip(leaf.tolist(), switch.tolist(), strict=True)).values()) == 1
    assert (switch < where.switches_of_pod[where.tiers.pod_of_leaf[leaf]]).all()
    assert where.leaf_fibres.sum() == where.spine_fibres.sum() == where.cables.sum()


@pytest.mark.parametrize("world", list(WORLDS))
@settings(max_examples=6, deadline=None)
@given(seed=seeds, events=st.integers(1, 14))
def test_whatever_comes_and_goes_fibres_are_used_once_and_running_circuits_stay(world, seed, events):
    where, rng = PodOpticalPlant.of_plant(WORLDS[world]), np.random.default_rng(seed)
    state, before = Occupancy(where), dict[str, object]()
    for number in range(events):
        if rng.random() < 0.3 and state.jobs:
            gone = str(rng.choice(sorted(state.jobs)))
            state.release(gone)
            before.pop(gone)
        else:
            got = ocs_vclos_pods(state, f"job{number}", int(rng.choice([1, 2, 4, 6, 8, 12, 16, 18, 24, 36])))
            if isinstance(got, Allocation):
                state.place(got)
                before[got.job] = circuits_of(where, got)
        state.check()
        check_pod_circuits(state)
        assert {name: circuits_of(where, held) for name, held in state.jobs.items()} == before
    for name in list(state.jobs):
        state.release(name)
    assert np.array_equal(free_pod_fibres(state).leaf, where.leaf_fibres)
    assert np.array_equal(free_pod_fibres(state).spine, where.spine_fibres)


@pytest.mark.parametrize("world", ["fat-tree", "shared cores"])
@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_flows_of_all_jobs_at_once_take_what_their_nics_take(world, seed):
    """The proof, simulated: all jobs run rounds of a shifted all-to-all at the same time, and no link holds one up."""
    where, rng = PodOpticalPlant.of_plant(WORLDS[world]), np.random.default_rng(seed)
    state = Occupancy(where)
    for number in range(6):
        got = ocs_vclos_pods(state, f"job{number}", int(rng.choice([6, 8, 9, 12, 16, 18, 24])))
        if isinstance(got, Allocation):
            state.place(got)
        if number == 2 and state.jobs:
            state.release(sorted(state.jobs)[0])
    jobs = [job for job in state.jobs.values() if job.has_circuits]
    if not jobs:
        return
    wires, shift = InsideWires.of(where, jobs), int(rng.integers(1, 30))
    assert shifted_time(wires, jobs, shift) == pytest.approx(1e9 / where.nic_bandwidth, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from([4, 6, 8, 9, 12, 16, 18]))
def test_on_any_plant_circuits_start_whatever_cables_start_where_no_job_has_links(seed, gpus):
    """Uneven leafs, parallel cables, missing ones: the circuits that stand for the cables are all there."""
    rng = np.random.default_rng(seed)
    where = odd_tiers(rng)
    cables, circuits = Occupancy(where), Occupancy(PodOpticalPlant.of_plant(where))
    for number in range(int(rng.integers(0, 6))):
        got = gpus_only(cables, f"job{number}", int(rng.choice([1, 2, 3])))
        if isinstance(got, Allocation) and len(got.leafs) == 1:
            cables.place(got)
            circuits.place(got)
    if isinstance(vclos()(cables, "new", gpus), Allocation):
        assert isinstance(ocs_vclos_pods(circuits, "new", gpus), Allocation)


TINY = PodOpticalPlant.of_plant(three_tiers(pods=3, leafs=2, lanes=2, cores=2, servers=2, size=1, planes=True))


@settings(max_examples=40, deadline=None)
@given(seed=seeds, gpus=st.sampled_from([4, 6, 8]))
def test_a_job_starts_over_pods_only_where_some_choice_has_circuits(seed, gpus):
    """Against all pods, virtual leafs and lanes on a tiny plant with circuits of others and dead fibres and cables."""
    rng = np.random.default_rng(seed)
    state = Occupancy(TINY)
    for number in range(int(rng.integers(0, 6))):
        got = ocs_vclos_pods(state, f"job{number}", int(rng.choice([1, 2, 3, 4])))
        if isinstance(got, Allocation):
            state.place(got)
        if rng.random() < 0.5 and state.jobs:
            state.release(str(rng.choice(sorted(state.jobs))))
    if rng.random() < 0.5:
        below, above = np.argwhere(TINY.cables), np.argwhere(TINY.core_cables)
        dead = [tuple(some[at]) for some in (below, above) for at in rng.choice(len(some), 2, replace=False)]
        state.drain(Drained(links=dead[:2], core_links=dead[2:]))
    got = ocs_vclos_pods(state, "new", gpus)
    if isinstance(got, Allocation) and got.stage == "ocs-pods":
        assert could_start(state, gpus)
    elif not isinstance(got, Allocation) and got.reason.value == "network-fragmentation":
        assert not could_start(state, gpus)
