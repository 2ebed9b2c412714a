"""Laws over all policies: more freedom never has fewer starts, and whoever shares links gets on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.routings import ROUTINGS
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.work import Iteration, JobExchange

WHERE = plant("leaf-spine:5x8x8", gpus_per_server=4)
SIZES = [4, 8, 12, 16, 20, 24, 32, 40]
small = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(0, 10**6)), max_size=12)


def filled(where: object, jobs: list[tuple[int, int]]) -> Occupancy:
    """Jobs of one leaf at most, some of which have left again: GPUs are scattered and every link is free."""
    state = Occupancy(where)  # type: ignore[arg-type]
    for number, (size, pick) in enumerate(jobs):
        found = gpus_only(state, f"job{number}", size)
        if isinstance(found, Allocation) and len(found.leafs) == 1:
            state.place(found)
        if pick % 3 == 0 and state.jobs:
            state.release(list(state.jobs)[pick % len(state.jobs)])
    return state


def starts(policy: str, state: Occupancy, gpus: int) -> bool:
    return isinstance(POLICIES[policy].make(state, "new", gpus), Allocation)


@settings(max_examples=60, deadline=None)
@given(small, st.lists(st.sampled_from(SIZES), max_size=3), st.sampled_from(SIZES))
def test_more_shapes_and_weaker_promises_never_have_fewer_starts(
    jobs: list[tuple[int, int]], isolated: list[int], gpus: int
) -> None:
    """vClos, every divisor, LaaS, links shared by all: each starts whatever the one before starts, in any state."""
    state = filled(WHERE, jobs)
    for number, size in enumerate(isolated):
        found = POLICIES["vclos"].make(state, f"own{number}", size)
        if isinstance(found, Allocation):
            state.place(found)
    orders = ("vclos", "vclos-all-divisors", "laas", "ecmp")
    can = [starts(policy, state, gpus) for policy in orders]
    assert can == sorted(can)


@settings(max_examples=40, deadline=None)
@given(small, st.sampled_from(SIZES))
def test_circuits_start_whatever_cables_do(jobs: list[tuple[int, int]], gpus: int) -> None:
    state, optical = filled(WHERE, jobs), filled(OpticalPlant.of_plant(WHERE), jobs)
    assert starts("ocs-vclos", optical, gpus) >= starts("vclos", state, gpus)
    assert starts("ecmp", state, gpus) >= starts("ocs-vclos", optical, gpus)


works = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.floats(1e7, 5e9), st.sampled_from(["ring", "all-to-all", "halving-doubling"])),
    min_size=1, max_size=4,
)  # fmt: skip


@pytest.mark.parametrize("routing", list(ROUTINGS))
@settings(max_examples=15, deadline=None)
@given(works, st.integers(0, 10**6))
def test_nobody_is_sooner_than_alone_and_nobody_starves(
    routing: str, jobs: list[tuple[float, float, str]], seed: int
) -> None:
    network = SharedNetwork(WHERE, routing, seed)
    random = np.random.default_rng(seed)
    servers = random.permutation(WHERE.servers)[: 2 * len(jobs)].reshape(-1, 2)
    for number, ((compute_s, size, collective), pair) in enumerate(zip(jobs, servers, strict=True)):
        gpus = tuple(4 * int(server) + place for server in sorted(pair) for place in range(4))
        leafs = tuple(WHERE.leaf_of_gpu[list(gpus)].tolist())
        job = Allocation(f"j{number}", gpus, "shared", tuple(sorted(set(leafs))), (), (), (-1,) * 8, leafs, "none")
        network.start(
            f"j{number}", number, network.footprint(Iteration(compute_s, (JobExchange(collective, size),)), job)
        )
    network.settle()
    for number in range(len(jobs)):
        pace, footprint = network.pace(f"j{number}"), network.running(f"j{number}")
        assert footprint.quiet_iteration_s * (1 - 1e-9) <= pace.iteration_s
        assert pace.iteration_s < 60 * len(jobs) * max(footprint.alone_iteration_s, footprint.quiet_iteration_s)
        assert pace.met_flows >= 0
