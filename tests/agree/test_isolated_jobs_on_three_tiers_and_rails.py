"""Over pods and on rails: what is proved free of contention takes as long as its NICs need, to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest
from source_routes_of_jobs import source_routes_of_jobs
from tree_states import rails_below_cores, some_drained, three_tiers

from ropewalk.collectives.exchange import shift_all_to_all
from ropewalk.collectives.program import Program
from ropewalk.collectives.ring import ring_all_reduce
from ropewalk.sim import simulate_rounds
from ropewalk.task import lockstep
from ropewalk.task.routed import route_rounds
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.contention import Counterexample, Proof, contention_free
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import allocator_named
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.shapes import all_divisors

SIZE = 1e9


def seconds(where: Plant, jobs: list[Allocation], job: Allocation, program: Program) -> float:
    rounds = lockstep(program, SIZE, hosts=np.array(job.gpus))
    router = source_routes_of_jobs(where, jobs)
    return simulate_rounds(rounds, route_rounds(rounds, where.fabric(), router, symmetry=False)).makespan


def proved(where: Plant, job: Allocation, program: Program) -> bool:
    return isinstance(contention_free(job, program, plant=where), Proof)


@pytest.mark.parametrize("seed", range(6))
def test_a_job_over_pods_runs_at_the_speed_of_its_nics_whoever_else_is_there(seed):
    rng = np.random.default_rng(seed)
    where = three_tiers(pods=4, leafs=3, lanes=4, cores=3, servers=4, size=1, planes=seed % 2 == 0)
    state, allocate = Occupancy(where), vclos(all_divisors)
    state.drain(some_drained(rng, where, 0.03))
    found = []
    for number, gpus in enumerate([6, 4, 16, *rng.permutation([4, 8, 8, 12, 16]).tolist()]):
        answer = allocate(state, f"job{number}", gpus)
        if isinstance(answer, Allocation):
            state.place(answer)
            state.check()
            found.append(answer)
    over_pods = [job for job in found if job.core_links]
    assert over_pods
    for job in over_pods:
        for program, ideal in (
            (shift_all_to_all(job.size), (job.size - 1) / job.size),
            (ring_all_reduce([np.arange(job.size)]), 2 * (job.size - 1) / job.size),
        ):
            assert proved(where, job, program)
            took = seconds(where, found, job, program)
            assert took == pytest.approx(ideal * SIZE / where.nic_bandwidth, rel=1e-9)


def test_a_job_over_pods_whose_lanes_are_shuffled_collides_in_theory_and_simulator():
    where = three_tiers(pods=2, leafs=2, lanes=2, cores=2, servers=2, size=1)
    job = vclos()(Occupancy(where), "a", 8)
    assert isinstance(job, Allocation)
    # The second leaf of each pod sends over the cores of the first.
    shuffled = Allocation.from_document({**job.as_document(), "core_of_gpu": [0, 2, 0, 2, 0, 2, 0, 2]})
    program = shift_all_to_all(8)
    found = contention_free(shuffled, program, plant=where)
    assert isinstance(found, Counterexample)
    assert found.tier == "core"
    assert "between spine 1 and core 2" in str(found)
    assert seconds(where, [shuffled], shuffled, program) > 1.1 * seconds(where, [job], job, program)


@pytest.mark.parametrize("gpus", [8, 12, 16])
def test_a_job_on_rails_below_cores_runs_at_the_speed_of_its_nics(gpus):
    where = rails_below_cores(server_bandwidth=12.5e9)
    state = Occupancy(where)
    job = vclos(all_divisors)(state, "job", gpus)
    assert isinstance(job, Allocation)
    state.place(job)
    state.check()
    assert bool(job.core_links) == (gpus > 12)
    program = shift_all_to_all(gpus)
    assert proved(where, job, program)
    ideal = (gpus - 1) / gpus * SIZE / where.nic_bandwidth
    assert seconds(where, [job], job, program) == pytest.approx(ideal, rel=1e-9)


@pytest.mark.parametrize("gpus", [8, 12, 16, 24])
def test_a_job_over_units_of_rails_runs_at_the_speed_of_its_nics(gpus):
    # Inside a server as fast as outside, so that ranks stay in step without a barrier.
    where = plant("rails:12x4x3", gpus_per_server=4, server_bandwidth=12.5e9)
    state = Occupancy(where)
    first = allocator_named("vclos")(state, "first", 4)
    assert isinstance(first, Allocation)
    state.place(first)
    job = vclos(all_divisors)(state, "job", gpus)
    assert isinstance(job, Allocation)
    state.place(job)
    state.check()
    assert job.stage == ("leaf" if gpus <= 12 else "clos")
    program = shift_all_to_all(gpus)
    assert proved(where, job, program)
    ideal = (gpus - 1) / gpus * SIZE / where.nic_bandwidth
    assert seconds(where, [job], job, program) == pytest.approx(ideal, rel=1e-9)
