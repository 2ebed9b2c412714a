"""The stages of OCS-vClos, one tiny world each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from optical_plants import optical_plant

from ropewalk.errors import PhysicsError
from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos, ocs_vclos_all_divisors
from ropewalk.tenancy.optical.circuits import circuits_of, is_straight, start_delay_s
from ropewalk.tenancy.optical.clos import ClosShape, VirtualClos, exact_network, over_clos, over_whole_leafs
from ropewalk.tenancy.optical.fibres import FreeFibres, free_fibres
from ropewalk.tenancy.optical.invariants import check_circuits
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.programs import ProgramUndecided
from ropewalk.tenancy.optical.star import around_one_spine


def world(leafs: int = 6, spines: int = 3, gpus_per_leaf: int = 4, gpus_per_server: int = 2) -> Occupancy:
    return Occupancy(
        optical_plant(leafs=leafs, spines=spines, gpus_per_leaf=gpus_per_leaf, gpus_per_server=gpus_per_server)
    )


def plant_of(state: Occupancy) -> OpticalPlant:
    assert isinstance(state.plant, OpticalPlant)
    return state.plant


def placed(state: Occupancy, job: str, gpus: int) -> Allocation:
    got = ocs_vclos(state, job, gpus)
    assert isinstance(got, Allocation), got
    state.place(got)
    state.check()
    check_circuits(state)
    return got


def test_a_job_on_one_leaf_takes_no_fibre_and_waits_for_no_mirror() -> None:
    state = world()
    job = placed(state, "a", 4)
    assert (job.stage, job.links) == ("leaf", ())
    assert free_fibres(state).leaf.all()
    assert start_delay_s(plant_of(state), job) == 0


def test_two_leafs_are_joined_straight_and_take_no_spine_port() -> None:
    state = world()
    job = placed(state, "a", 8)
    free = free_fibres(state)
    assert is_straight(plant_of(state), job)
    assert free.spine.sum() == plant_of(state).spine_fibres.sum()
    assert free.of_leaf.tolist() == [0, 0, 4, 4, 4, 4]
    assert len(circuits_of(plant_of(state), job)) == 4
    assert start_delay_s(plant_of(state), job) == 0.05


def test_an_odd_number_of_servers_goes_straight_with_a_circuit_for_each_gpu_of_the_larger_part() -> None:
    job = placed(world(), "a", 6)
    assert job.gpus_on_leaf() == (4, 2)
    assert len(job.spines) == 4


def test_straight_circuits_are_sought_among_free_fibres_of_both_leafs() -> None:
    state = world(leafs=2)
    # Four fibres each, three in common: too few for four circuits.
    state.drain(Drained(links=[(0, 3)]))
    assert isinstance(ocs_vclos(state, "a", 8), Waiting)
    state.restore(Drained(links=[(0, 3)]))
    assert is_straight(plant_of(state), placed(state, "a", 8))


def test_servers_scattered_over_many_leafs_meet_in_one_spine() -> None:
    state = world()
    for leaf in range(6):
        placed(state, f"small{leaf}", 2)
    for leaf in range(6):
        placed(state, f"other{leaf}", 2)
    for leaf in (0, 2, 4):
        state.release(f"small{leaf}")
    job = placed(state, "a", 6)
    assert len(job.spines) == 1
    assert len(set(zip(job.links, job.cables, strict=True))) == 6
    assert Counter(job.leaf_of_gpu) == Counter(dict.fromkeys(job.leafs, 2))


def test_a_star_holds_a_number_that_has_no_equal_split() -> None:
    state = world(leafs=5, gpus_per_server=1, gpus_per_leaf=2, spines=2)
    job = around_one_spine(state, free_fibres(state), "a", 5)
    assert job is not None
    state.place(job)
    check_circuits(state)
    assert job.size == 5


def test_a_server_that_cannot_be_joined_whole_gives_back_the_fibre_it_had() -> None:
    # Leaf 1 gets one of its two fibres, then finds the other taken; leaf 2 needs both of its own.
    state = world(leafs=3, spines=1)
    reach = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], bool)
    job = around_one_spine(state, FreeFibres(reach, np.ones((1, 4), np.int64)), "a", 4)
    assert job is not None
    assert (job.leafs, job.cables) == ((0, 2), (0, 1, 2, 3))


def test_whole_leafs_take_whole_spines() -> None:
    state = world(leafs=8, spines=4)
    job = over_whole_leafs(state, free_fibres(state), "a", 16)
    assert job is not None
    state.place(job)
    check_circuits(state)
    assert job.leafs == (0, 1, 2, 3)
    assert free_fibres(state).of_spine.tolist().count(0) == 2


def test_virtual_leafs_share_a_leaf_and_virtual_spines_a_spine() -> None:
    state = world(leafs=2, spines=2)
    job = over_clos(state, free_fibres(state), "a", ClosShape(4, 2))
    assert isinstance(job, Allocation)
    state.place(job)
    check_circuits(state)
    assert job.leafs == (0, 1)
    assert Counter(job.links) in (
        {(0, 0): 4, (1, 0): 4},
        {(0, 0): 2, (1, 0): 2, (0, 1): 2, (1, 1): 2},
        {(0, 1): 4, (1, 1): 4},
    )


def test_leafs_whose_free_fibres_lead_to_different_switches_still_meet_in_a_spine() -> None:
    state = world(leafs=2, spines=1)
    state.drain(Drained(servers=[0, 2], links=[(0, 1), (0, 2), (1, 3), (1, 4)]))
    job = placed(state, "a", 4)
    assert set(job.spines) == {0}
    assert {switch for (leaf, _), switch in zip(job.links, job.cables, strict=True) if leaf == 0} == {2, 3}


def test_too_many_gpus_and_broken_servers_are_told_apart_from_the_network() -> None:
    state = world(leafs=2)
    waits = ocs_vclos(state, "a", 9)
    assert isinstance(waits, Waiting)
    assert (waits.reason, waits.never) == (Reason.GPU_SHORTAGE, True)
    placed(state, "b", 1)
    placed(state, "c", 4)
    waits = ocs_vclos(state, "d", 3)
    assert isinstance(waits, Waiting)
    assert waits.reason is Reason.SERVER_FRAGMENTATION


def test_a_job_that_no_spine_can_take_waits_for_the_network_and_names_the_spines() -> None:
    state = world(leafs=3, spines=2)
    state.drain(Drained(spines=[1]))
    state.drain(Drained(spines=[0]))
    waits = ocs_vclos(state, "a", 12)
    assert isinstance(waits, Waiting)
    assert waits.reason is Reason.NETWORK_FRAGMENTATION
    assert waits.blocking_spines == (0, 1)
    assert not waits.never


def test_a_job_with_more_virtual_leafs_than_spine_ports_never_starts() -> None:
    state = Occupancy(optical_plant(leafs=8, spines=8, gpus_per_leaf=2, gpus_per_server=2, spine_ports=2))
    waits = ocs_vclos(state, "a", 8)
    assert isinstance(waits, Waiting)
    assert waits.never


def test_every_divisor_finds_a_shape_that_doubling_skips() -> None:
    # 18 GPUs: doubling begins with 9 virtual leafs, and a spine of 6 ports holds none of their spines; 3 x 6 fits.
    plant = optical_plant(leafs=4, spines=6, gpus_per_leaf=8, gpus_per_server=2, spine_ports=6)
    assert isinstance(ocs_vclos(Occupancy(plant), "a", 18), Waiting)
    job = ocs_vclos_all_divisors(Occupancy(plant), "a", 18)
    assert isinstance(job, Allocation)
    assert (len(job.leafs), len(job.spines)) == (3, 6)


def test_circuits_of_running_jobs_do_not_change_when_others_come_and_go() -> None:
    state = world()
    first = placed(state, "a", 8)
    before = circuits_of(plant_of(state), first)
    placed(state, "b", 12)
    state.release("b")
    placed(state, "c", 6)
    assert circuits_of(plant_of(state), state.jobs["a"]) == before


def test_a_fibre_in_two_circuits_is_found() -> None:
    state = world()
    job = placed(state, "a", 12)
    for doubled in (replace(job, cables=(job.cables[0],) * len(job.cables)), replace(job, spines=job.spines[::-1])):
        wrong = world()
        wrong.place(doubled)
        with pytest.raises(PhysicsError):
            check_circuits(wrong)


def test_the_same_state_gives_the_same_allocation() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.choice([2, 4, 6, 8, 12], 12).tolist()
    runs = []
    for _ in range(2):
        state = world(leafs=10, spines=5)
        for number, size in enumerate(sizes):
            got = ocs_vclos(state, str(number), size)
            if isinstance(got, Allocation):
                state.place(got)
        runs.append(state.as_document())
    assert runs[0] == runs[1]


def test_a_program_too_large_to_ask_is_left_undecided() -> None:
    state = Occupancy(optical_plant(leafs=8, spines=8, gpus_per_leaf=16, gpus_per_server=2))
    leafs = np.ones(8, np.int64)
    assert isinstance(exact_network(free_fibres(state), leafs, 4), ProgramUndecided)
    few = np.array([1, 1, 0, 0, 0, 0, 0, 0])
    assert isinstance(exact_network(free_fibres(state), few, 4), VirtualClos)
