"""Laws of every policy of the table, in random states: whoever adds one is tested here without a line more.

Nothing is given away twice; what is said to be free of contention is so in the flow simulation; everybody who can start
does, and gets done; and a policy that claims to be freer than another starts whatever that one starts.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_states import some_drained, three_tiers

from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.contention import Proof, contention_free
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.circuits import as_virtual_clos, as_virtual_tree
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.invariants import check_circuits
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_invariants import check_pod_circuits
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.pods import check_core_circuits
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import POLICIES, Policy
from ropewalk.tenancy.queue import ORDERS
from ropewalk.tenancy.replay import replay
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.simulation import Rules
from ropewalk.tenancy.snapshot import SnapshotQuestion, answer
from ropewalk.tenancy.snapshot.moment import moment_of_state
from ropewalk.tenancy.work import Iteration, JobExchange

WORLDS = {
    "two tiers": plant("leaf-spine:5x6x6", gpus_per_server=2),
    "two tiers, 2 : 1": plant("leaf-spine:4x4x8", gpus_per_server=4),
    "three tiers": plant("fat-tree:6", gpus_per_server=1),
    "three tiers, shared cores": three_tiers(pods=3, leafs=3, lanes=4, cores=3, servers=2, size=2, planes=False),
    "rails": plant("rails:12x5x3", gpus_per_server=4),
}
PANELS = {
    "islands of panels": PanelPlant.of_plant(plant("leaf-spine:6x6x6", gpus_per_server=2), panel_ports=7),
    "islands of racks": PanelPlant.of_plant(plant("leaf-spine:6x6x6", gpus_per_server=2), panel_ports=3, panels=1),
}
"""Worlds of shards alone."""
SIZES = [1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24]
APPLIES = [
    (world, name) for world, where in WORLDS.items() for name, one in POLICIES.items() if not one.applies((), where)
] + [(world, "topoopt") for world in PANELS]
WORLDS |= PANELS
seeds = st.integers(0, 2**32 - 1)


def check(state: Occupancy) -> None:
    """All that must hold of a state, whatever its plant is."""
    state.check()
    if isinstance(state.plant, OpticalPlant):
        check_circuits(state)
    if isinstance(state.plant, CoreOpticalPlant):
        check_core_circuits(state)
    if isinstance(state.plant, PodOpticalPlant):
        check_pod_circuits(state)
    if isinstance(state.plant, PanelPlant):
        size = state.plant.gpus_per_server
        shards = [{gpu // size for gpu in job.gpus} for job in state.jobs.values() if job.stage == "shard"]
        assert len(set().union(*shards)) == sum(map(len, shards)), "a server is in two shards"
        for servers in shards:
            assert len(set(state.plant.island_of_server[sorted(servers)].tolist())) == 1, "a shard is on two islands"


def grown(policy: Policy, where: Plant, seed: int, events: int, *, drains: bool = True) -> Occupancy:
    """A state after jobs came and went and parts were out of service; everything is checked all the time."""
    rng, state, out = np.random.default_rng(seed), Occupancy(policy.plant(where)), Drained()
    for number in range(events):
        kind = rng.random()
        if kind < 0.25 and state.jobs:
            state.release(str(rng.choice(sorted(state.jobs))))
        elif kind < 0.33 and drains:
            out = some_drained(rng, state.plant, 0.1).besides(state.drained)
            state.drain(out)
        elif kind < 0.4 and drains:
            state.restore(out)
            out = Drained()
        else:
            gpus = int(rng.choice(SIZES))
            got = policy.make(state, f"job{number}", gpus)
            if isinstance(got, Waiting):
                assert got.explanation
                assert not got.never or isinstance(policy.make(Occupancy(state.plant), "x", gpus), Waiting)
            else:
                assert len(set(got.gpus)) == gpus
                assert policy.shares or not got.crosses or got.guarantee != "none"
                state.place(got)
        check(state)
    return state


@pytest.mark.parametrize(("world", "name"), APPLIES)
@settings(max_examples=10, deadline=None)
@given(seed=seeds, events=st.integers(1, 20))
def test_no_gpu_link_fibre_or_port_is_in_two_jobs_and_all_is_free_in_the_end(world, name, seed, events):
    state = grown(POLICIES[name], WORLDS[world], seed, events)
    for job in list(state.jobs):
        state.release(job)
    check(state)
    assert state.used == 0


SIMULATED = [(world, name) for world, name in APPLIES if POLICIES[name].isolates and POLICIES[name].simulated]


def proved(state: Occupancy, job: Allocation, collective: str) -> bool:
    """Does the theory say that the job never meets itself?"""
    if job.size < 2 or not job.crosses:
        return True
    size = state.plant.gpus_per_server
    if job.stage == "ocs":
        return isinstance(contention_free(as_virtual_clos(job), collective, ranks_per_server=size), Proof)
    if job.stage in ("ocs-core", "ocs-pods"):
        return isinstance(contention_free(as_virtual_tree(state.plant, job), collective, ranks_per_server=size), Proof)
    return isinstance(contention_free(job, collective, ranks_per_server=size, plant=state.plant), Proof)


@pytest.mark.parametrize(("world", "name"), SIMULATED)
@settings(max_examples=5, deadline=None)
@given(seed=seeds, collective=st.sampled_from(["all-to-all", "ring"]))
def test_proofs_of_contention_freedom_are_what_the_flow_simulation_sees(world, name, seed, collective):
    policy = POLICIES[name]
    state = grown(policy, WORLDS[world], seed, 9, drains=False)
    sending = [job for job in state.jobs.values() if job.size > 1]
    for job in list(state.jobs.values()):
        if job.size < 2:
            state.release(job.job)
    if not sending:
        return
    works = {job.job: Iteration(0.01, (JobExchange(collective, 1e8),)) for job in sending}
    seen = answer(SnapshotQuestion(moment_of_state(policy, state, works, seed % 1000), iterations=1))
    for job in seen.jobs:
        held = state.jobs[job.name]
        assert job.slowdown == pytest.approx(1.0, rel=1e-9), "nobody meets another job"
        if held.guarantee == "contention-free":
            assert proved(state, held, collective)
        if proved(state, held, collective):
            assert job.alone_s == pytest.approx(job.tenant.footprint.quiet_iteration_s, rel=1e-9)


SMALL = plant("leaf-spine:4x4x4", gpus_per_server=2)


@pytest.mark.parametrize("queue", list(ORDERS))
@pytest.mark.parametrize("name", [name for name, one in POLICIES.items() if not one.applies((), SMALL)])
@settings(max_examples=4, deadline=None)
@given(seed=seeds)
def test_nobody_starves_whatever_the_queue_and_the_network_prefer(name, queue, seed):
    """Every job gets done or can never start, and none runs longer than if all others stood in its way in turn."""
    rng, policy = np.random.default_rng(seed), POLICIES[name]
    jobs = [
        Job(
            f"job{number}", int(rng.choice([1, 2, 4, 6, 8, 12, 16])), float(rng.uniform(0, 60)),
            float(rng.integers(1, 40)),
            Iteration(
                rng.uniform(0.1, 1.0), (JobExchange(rng.choice(["ring", "all-to-all"]), 10 ** rng.uniform(7, 9.5)),)
            ),
            deadline_s=float(rng.uniform(0, 300)),
        )
        for number in range(12)
    ]  # fmt: skip
    found = replay(
        policy.plant(SMALL), jobs, allocate=policy.make, rules=Rules(policy.routing, queue=queue), policy=name
    )
    assert len(found.jobs) + len(found.refused) == len(jobs)
    for refused in found.refused:
        assert isinstance(policy.make(policy.occupancy(SMALL), "x", refused.gpus), Waiting)
    for job in found.jobs:
        assert job.jrt_s >= job.quiet_s * (1 - 1e-9)
        assert job.jrt_s < 60 * len(jobs) * job.quiet_s + 400
        assert job.start_s >= job.arrival_s


FREER = [(less, more) for more, one in POLICIES.items() for less in one.freer_than]


@pytest.mark.parametrize(("less", "more"), FREER)
@pytest.mark.parametrize("world", ["two tiers", "two tiers, 2 : 1", "three tiers", "three tiers, shared cores"])
@settings(max_examples=25, deadline=None)
@given(seed=seeds, gpus=st.sampled_from(SIZES))
def test_a_freer_policy_starts_whatever_the_other_starts(world, less, more, seed, gpus):
    """GPUs are taken by jobs inside leafs, which are alike on all plants; every link between switches is free."""
    where, policies = WORLDS[world], (POLICIES[less], POLICIES[more])
    if "laas" in (less, more) and where.cores:
        return  # it stays in one pod there
    if any(policy.applies((), where) for policy in policies):
        return
    rng = np.random.default_rng(seed)
    plain, states = Occupancy(where), [Occupancy(policy.plant(where)) for policy in policies]
    for number in range(int(rng.integers(0, 14))):
        got = gpus_only(plain, f"job{number}", int(rng.choice([1, 2, 3, 4, 6])))
        if isinstance(got, Allocation) and len(got.leafs) == 1:
            for state in (plain, *states):
                state.place(got)
    can = [policy.make(state, "new", gpus) for policy, state in zip(policies, states, strict=True)]
    if isinstance(can[0], Allocation):
        assert isinstance(can[1], Allocation), (less, more, can[1])


@pytest.mark.parametrize(("world", "name"), APPLIES)
@settings(max_examples=12, deadline=None)
@given(seed=seeds, gpus=st.sampled_from(SIZES))
def test_only_links_keep_anybody_waiting_whom_sharing_them_would_start(world, name, seed, gpus):
    """Too few GPUs or servers are too few for everybody: policies differ by links alone."""
    policy = POLICIES[name]
    state = grown(policy, WORLDS[world], seed, 8, drains=False)
    got = policy.make(state, "new", gpus)
    if isinstance(got, Waiting) and got.reason is not Reason.NETWORK_FRAGMENTATION:
        shared = Occupancy(plant("leaf-spine:6x6x6", gpus_per_server=2) if world in PANELS else WORLDS[world])
        size = shared.plant.gpus_per_server
        for server, free in enumerate(state.free_gpus.tolist()):
            taken = tuple(server * size + gpu for gpu in range(size) if not free >> gpu & 1)
            leafs = tuple(shared.plant.leaf_of_gpu[list(taken)].tolist())
            if taken:
                own = (-1,) * len(taken)
                shared.place(Allocation(f"s{server}", taken, "server", tuple(dict.fromkeys(leafs)), (), (), own, leafs))
        assert isinstance(POLICIES["ecmp"].make(shared, "new", gpus), Waiting)
