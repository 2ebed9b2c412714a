"""Laws of optical switches between spines and cores: programs agree, fibres are used once, circuits never move."""

from __future__ import annotations

import numpy as np
import optical_reference as reference
import pytest
from core_circuits import could_start, lanes_program
from hypothesis import given, settings
from hypothesis import strategies as st
from shifted_jobs import shifted_time
from tree_states import three_tiers

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.contention import Proof, contention_free
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos, ocs_vclos_all_divisors
from ropewalk.tenancy.optical.circuits import as_virtual_tree, circuits_of
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.lanes import STRAIGHT, CoreLanes, exact_lanes, quick_lanes
from ropewalk.tenancy.optical.pods import check_core_circuits, free_core_fibres
from ropewalk.tenancy.optical.wired_pods import PodWires
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.shapes import all_divisors, doubling

seeds = st.integers(0, 2**32 - 1)
WORLDS = {
    "fat-tree": plant("fat-tree:6", gpus_per_server=1),
    "oversubscribed": plant("fat-tree:8,4,2", gpus_per_server=2),
    "shared cores": three_tiers(pods=3, leafs=3, lanes=4, cores=3, servers=2, size=2, planes=False),
}


def assert_laid(fibres: FreeFibres, spines: np.ndarray, laid: CoreLanes) -> None:
    """Every fibre once, every virtual core joined with the spines of its lane."""
    leaf_use, core_use = np.zeros_like(fibres.leaf, int), np.zeros_like(fibres.spine)
    lanes, cores, pods = laid.switch.shape
    for lane in range(lanes):
        for place in range(cores):
            for pod in range(pods):
                switch = laid.switch[lane, place, pod]
                leaf_use[spines[lane, pod], switch] += 1
                if laid.core[lane, place] != STRAIGHT:
                    core_use[laid.core[lane, place], switch] += 1
            if laid.core[lane, place] == STRAIGHT:
                assert pods == 2
                assert laid.switch[lane, place, 0] == laid.switch[lane, place, 1]
    assert (leaf_use <= fibres.leaf).all()
    assert (core_use <= fibres.spine).all()


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(2, 3), st.integers(1, 2), st.integers(1, 2))
def test_lanes_are_laid_exactly_where_the_program_word_for_word_has_a_solution(
    seed: int, pods: int, lanes: int, cores: int
) -> None:
    fibres = reference.random_fibres(seed, pods * lanes, 2, 3)
    spines = np.arange(pods * lanes).reshape(pods, lanes).T
    possible = lanes_program(fibres, spines, cores)
    quick, exact = quick_lanes(fibres, spines, cores), exact_lanes(fibres, spines, cores)
    for laid in (quick, exact):
        if laid is not None:
            assert isinstance(laid, CoreLanes)
            assert_laid(fibres, spines, laid)
    assert possible or quick is None
    assert isinstance(exact, CoreLanes) == possible


@pytest.mark.parametrize("allocate", [ocs_vclos, ocs_vclos_all_divisors])
@pytest.mark.parametrize("world", list(WORLDS))
@settings(max_examples=15, deadline=None)
@given(seed=seeds, events=st.integers(1, 25))
def test_whatever_comes_and_goes_fibres_are_used_once_and_running_circuits_stay(allocate, world, seed, events):
    where, rng = CoreOpticalPlant.of_plant(WORLDS[world]), np.random.default_rng(seed)
    state, before = Occupancy(where), dict[str, object]()
    for number in range(events):
        if rng.random() < 0.3 and state.jobs:
            gone = str(rng.choice(sorted(state.jobs)))
            state.release(gone)
            before.pop(gone)
        else:
            gpus = int(rng.choice([1, 2, 4, 6, 8, 12, 16, 18, 24, 36, 48]))
            got = allocate(state, f"job{number}", gpus)
            if isinstance(got, Allocation):
                state.place(got)
                before[got.job] = circuits_of(where, got)
                if got.stage == "ocs-core":
                    assert isinstance(contention_free(as_virtual_tree(where, got), "all-to-all"), Proof)
            else:
                assert got.explanation
                assert not got.never or not isinstance(allocate(Occupancy(where), "x", gpus), Allocation)
        state.check()
        check_core_circuits(state)
        assert {name: circuits_of(where, held) for name, held in state.jobs.items()} == before
    for name in list(state.jobs):
        state.release(name)
    assert free_core_fibres(state).leaf.sum() == where.core_cables.sum()
    assert np.array_equal(free_core_fibres(state).spine, where.core_fibres)


@pytest.mark.parametrize("world", ["fat-tree", "shared cores"])
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_flows_of_all_jobs_at_once_take_what_their_nics_take(world, seed):
    """The proof, simulated: all jobs run rounds of a shifted all-to-all at the same time, and no link holds one up."""
    where, rng = CoreOpticalPlant.of_plant(WORLDS[world]), np.random.default_rng(seed)
    state = Occupancy(where)
    for number in range(6):
        got = ocs_vclos(state, f"job{number}", int(rng.choice([6, 8, 9, 12, 16, 18, 24])))
        if isinstance(got, Allocation):
            state.place(got)
        if number == 2 and state.jobs:
            state.release(sorted(state.jobs)[0])
    jobs = [job for job in state.jobs.values() if job.stage in ("ocs-core", "clos")]
    if not jobs:
        return
    wires, shift = PodWires.of(where, jobs), int(rng.integers(1, 30))
    assert shifted_time(wires, jobs, shift) == pytest.approx(1e9 / where.nic_bandwidth, rel=1e-9)


@pytest.mark.parametrize("world", list(WORLDS))
@settings(max_examples=25, deadline=None)
@given(seed=seeds, gpus=st.sampled_from([8, 12, 16, 18, 24, 32, 36, 48]))
def test_circuits_start_whatever_cables_do_where_no_pods_are_joined_yet(world, seed, gpus):
    """Jobs inside pods are where they are on both plants; links above spines are all free."""
    where, rng = WORLDS[world], np.random.default_rng(seed)
    cables, circuits = Occupancy(where), Occupancy(CoreOpticalPlant.of_plant(where))
    for number in range(int(rng.integers(0, 10))):
        got = vclos()(cables, f"job{number}", int(rng.choice([1, 2, 3, 4, 6, 8, 9])))
        if isinstance(got, Allocation) and not got.core_links:
            cables.place(got)
            circuits.place(got)
    for policy, optical in ((vclos(), ocs_vclos), (vclos(all_divisors), ocs_vclos_all_divisors)):
        if isinstance(policy(cables, "new", gpus), Allocation):
            assert isinstance(optical(circuits, "new", gpus), Allocation)


TINY = CoreOpticalPlant.of_plant(three_tiers(pods=3, leafs=2, lanes=2, cores=2, servers=2, size=1, planes=True))


@settings(max_examples=60, deadline=None)
@given(seed=seeds, gpus=st.sampled_from([4, 6, 8, 12]))
def test_a_job_starts_over_pods_only_where_some_choice_has_circuits(seed, gpus):
    """Against all pods, leafs, spines and orders of them on a tiny plant with circuits of others and dead switches."""
    rng = np.random.default_rng(seed)
    state = Occupancy(TINY)
    for number in range(int(rng.integers(0, 6))):
        got = ocs_vclos_all_divisors(state, f"job{number}", int(rng.choice([1, 2, 3, 4, 6])))
        if isinstance(got, Allocation):
            state.place(got)
        if rng.random() < 0.4 and state.jobs:
            state.release(str(rng.choice(sorted(state.jobs))))
    if rng.random() < 0.5:
        state.drain(Drained(cores=rng.choice(TINY.cores, size=int(rng.integers(1, 3)), replace=False).tolist()))
    got = ocs_vclos(state, "new", gpus)
    if isinstance(got, Allocation) and got.stage == "ocs-core":
        assert could_start(state, gpus, doubling)
    elif not isinstance(got, Allocation) and got.reason.value == "network-fragmentation":
        assert not could_start(state, gpus, doubling)
