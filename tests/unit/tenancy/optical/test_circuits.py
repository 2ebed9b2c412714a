"""Circuits of jobs, the fabric they make, and flows that never meet on it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from optical_plants import optical_plant

from ropewalk.errors import RouteError
from ropewalk.sim import simulate
from ropewalk.task import Sketch
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.contention import Proof, contention_free
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos
from ropewalk.tenancy.optical.circuits import as_virtual_clos, circuits_of, way
from ropewalk.tenancy.optical.clos import ClosShape, over_clos
from ropewalk.tenancy.optical.fibres import free_fibres
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.star import around_one_spine
from ropewalk.tenancy.optical.straight import joined_straight
from ropewalk.tenancy.optical.wired import circuit_router, wired_fabric

PLANT = optical_plant(leafs=6, spines=3, gpus_per_leaf=4, gpus_per_server=2)
SHAPES = (ClosShape(2, 4), ClosShape(4, 2), ClosShape(3, 4), ClosShape(6, 2), ClosShape(8, 2))


def clos(shape: ClosShape, plant: OpticalPlant = PLANT) -> Allocation:
    state = Occupancy(plant)
    job = over_clos(state, free_fibres(state), "a", shape)
    assert isinstance(job, Allocation)
    return job


def busiest(job: Allocation, src: np.ndarray, dst: np.ndarray) -> int:
    """Most flows on one direction of a circuit."""
    load: Counter[tuple[int, str]] = Counter()
    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        load.update(zip(way(job, a, b), ("up", "down"), strict=False))
    return max(load.values(), default=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shift_has_each_circuit_to_itself(shape: ClosShape) -> None:
    job = clos(shape)
    ranks = np.arange(job.size)
    assert all(busiest(job, ranks, (ranks + shift) % job.size) <= 1 for shift in range(1, job.size))


@pytest.mark.parametrize("collective", ["ring", "all-to-all", "halving-doubling"])
@pytest.mark.parametrize("shape", [ClosShape(4, 2), ClosShape(2, 4), ClosShape(8, 2)], ids=str)
def test_virtual_leafs_and_spines_are_a_clos_that_the_theory_proves(shape: ClosShape, collective: str) -> None:
    assert isinstance(contention_free(as_virtual_clos(clos(shape)), collective), Proof)


def test_any_permutation_is_free_of_contention_where_all_circuits_meet_in_one_spine_or_go_straight() -> None:
    state = Occupancy(optical_plant(leafs=5, spines=2, gpus_per_leaf=2, gpus_per_server=1))
    star = ocs_vclos(state, "star", 5)
    straight = ocs_vclos(state, "straight", 4)
    assert isinstance(star, Allocation)
    assert isinstance(straight, Allocation)
    rng = np.random.default_rng(0)
    for job in (star, straight):
        assert len(job.leafs) > 1
        for _ in range(50):
            assert busiest(job, np.arange(job.size), rng.permutation(job.size)) <= 1


def test_a_flow_comes_down_from_the_virtual_spine_that_it_went_up_to() -> None:
    for shape in SHAPES:
        job = clos(shape)
        pairs = [(a, b) for a in range(job.size) for b in range(job.size) if job.leaf_of_gpu[a] != job.leaf_of_gpu[b]]
        for src, dst in pairs:
            up, down = way(job, src, dst)
            assert up % shape.width == down % shape.width == src % shape.width
            assert (job.links[up][0], job.links[down][0]) == (job.leaf_of_gpu[src], job.leaf_of_gpu[dst])


def test_jobs_side_by_side_run_at_the_speed_of_their_nics_in_the_simulator() -> None:
    plant = optical_plant(leafs=8, spines=4, gpus_per_leaf=4, gpus_per_server=2)
    state = Occupancy(plant)
    for number in range(3):
        fibres = free_fibres(state)
        job = (
            over_clos(state, fibres, "clos", ClosShape(6, 2)),
            around_one_spine(state, fibres, "star", 6),
            joined_straight(state, fibres, "straight", 8),
        )[number]
        assert isinstance(job, Allocation), job
        state.place(job)
    jobs = list(state.jobs.values())
    assert len(set(jobs[0].spines)) + len(jobs[0].leafs) > 3
    circuits = [circuit for job in jobs for circuit in circuits_of(plant, job)]
    fabric = wired_fabric(plant, circuits)
    router = circuit_router(plant, circuits, jobs)
    for shift in (1, 3):
        sketch, src, dst = Sketch(), [], []
        for job in jobs:
            for rank, gpu in enumerate(job.gpus):
                peer = job.gpus[(rank + shift) % job.size]
                sketch.transfer(gpu, peer, 12.5e6)
                src.append(gpu)
                dst.append(peer)
        routes = router(fabric, np.array(src, np.int32), np.array(dst, np.int32))
        routes.check()
        trace = simulate(sketch.graph(), routes)
        assert trace.makespan == pytest.approx(1e-3, rel=1e-9)


def test_the_fabric_has_a_link_each_way_for_every_circuit_and_none_for_a_switch() -> None:
    job = clos(ClosShape(3, 4))
    circuits = circuits_of(PLANT, job)
    fabric = wired_fabric(PLANT, circuits)
    assert fabric.links == 2 * (PLANT.gpus + len(circuits) + PLANT.gpus)
    assert not any(name.startswith("ocs") for name in fabric.node_names)


def test_gpus_of_two_jobs_have_no_route_between_leafs() -> None:
    state = Occupancy(PLANT)
    job = ocs_vclos(state, "a", 8)
    assert isinstance(job, Allocation)
    circuits = circuits_of(PLANT, job)
    router = circuit_router(PLANT, circuits, [job])
    with pytest.raises(RouteError, match="are not of one running job"):
        router(wired_fabric(PLANT, circuits), np.array([0], np.int32), np.array([23], np.int32))
