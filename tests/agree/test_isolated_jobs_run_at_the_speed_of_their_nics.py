"""What the theory of contention proves, the flow simulator shows: isolated jobs take as long as their NICs need."""

from __future__ import annotations

import numpy as np
import pytest
from source_routes_of_jobs import source_routes_of_jobs

from ropewalk.collectives.exchange import shift_all_to_all
from ropewalk.collectives.program import Program
from ropewalk.collectives.ring import ring_all_reduce
from ropewalk.sim import simulate_rounds
from ropewalk.task import lockstep
from ropewalk.task.routed import route_rounds
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.contention import Counterexample, Proof, contention_free
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import allocator_named

SIZE = 1e9


def world(server_bandwidth: float = 12.5e9) -> Occupancy:
    """Six leafs of two servers; inside a server as fast as outside, so that ranks stay in step without a barrier."""
    return Occupancy(plant("leaf-spine:6x8x8", gpus_per_server=4, server_bandwidth=server_bandwidth))


def placed(state: Occupancy, policy: str, job: str, gpus: int) -> Allocation:
    found = allocator_named(policy)(state, job, gpus)
    assert isinstance(found, Allocation), found
    state.place(found)
    return found


def seconds(state: Occupancy, job: Allocation, program: Program) -> float:
    rounds = lockstep(program, SIZE, hosts=np.array(job.gpus))
    router = source_routes_of_jobs(state.plant, list(state.jobs.values()))
    return simulate_rounds(rounds, route_rounds(rounds, state.plant.fabric(), router, symmetry=False)).makespan


@pytest.mark.parametrize("gpus", [12, 16, 24])
def test_an_all_to_all_of_an_isolated_job_takes_n_minus_one_chunks_of_its_nic(gpus):
    state = world()
    placed(state, "vclos", "first", 4)
    job = placed(state, "vclos", "job", gpus)
    program = shift_all_to_all(gpus)
    assert isinstance(contention_free(job, program), Proof)
    chunks = (gpus - 1) / gpus
    assert seconds(state, job, program) == pytest.approx(chunks * SIZE / state.plant.nic_bandwidth, rel=1e-9)


def test_a_ring_of_an_isolated_job_takes_what_a_ring_takes():
    state = world()
    job = placed(state, "vclos", "job", 24)
    program = ring_all_reduce([np.arange(24)])
    assert isinstance(contention_free(job, program), Proof)
    ideal = 2 * 23 / 24 * SIZE / state.plant.nic_bandwidth
    assert seconds(state, job, program) == pytest.approx(ideal, rel=1e-9)


def test_unequal_leafs_collide_in_the_simulator_as_in_the_theory():
    state = world()
    job = placed(state, "laas", "job", 20)
    assert job.gpus_on_leaf() == (8, 8, 4)
    program = shift_all_to_all(20)
    assert isinstance(contention_free(job, program), Counterexample)
    ideal = 19 / 20 * SIZE / state.plant.nic_bandwidth
    assert seconds(state, job, program) > 1.1 * ideal


def test_ranks_that_run_ahead_of_their_round_can_meet_others_of_their_job():
    state = world(server_bandwidth=125e9)
    job = placed(state, "vclos", "job", 24)
    program = shift_all_to_all(24)
    # Free of contention round by round, but ranks whose peer sits in the same server do not wait for the others.
    assert isinstance(contention_free(job, program), Proof)
    in_step = 23 / 24 * SIZE / state.plant.nic_bandwidth
    assert in_step < seconds(state, job, program) < 1.15 * in_step
