"""Laws of OCS-vClos: quick ways and integer programs agree, and no event breaks a fibre's or a job's promise."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import optical_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from optical_plants import optical_plant

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos
from ropewalk.tenancy.optical.circuits import circuits_of
from ropewalk.tenancy.optical.clos import VirtualClos, exact_network, quick_network
from ropewalk.tenancy.optical.cover import cheapest_cover
from ropewalk.tenancy.optical.fibres import FreeFibres, free_fibres
from ropewalk.tenancy.optical.invariants import check_circuits
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.programs import network_program, star_program
from ropewalk.tenancy.optical.star import around_one_spine
from ropewalk.tenancy.optical.straight import joined_straight

seeds = st.integers(0, 2**32 - 1)


def assert_laid(fibres: FreeFibres, leafs: np.ndarray, width: int, network: VirtualClos) -> None:
    """Every fibre once, m * y circuits between every leaf and spine."""
    assert network.spines.sum() == width
    leaf_use, spine_use = np.zeros_like(fibres.leaf, int), np.zeros_like(fibres.spine)
    for (leaf, spine), switches in network.switches.items():
        for switch in switches:
            leaf_use[leaf, switch] += 1
            spine_use[spine, switch] += 1
    assert (leaf_use <= fibres.leaf).all()
    assert (spine_use <= fibres.spine).all()
    for leaf in range(len(leafs)):
        for spine in range(len(network.spines)):
            assert len(network.switches.get((leaf, spine), [])) == leafs[leaf] * network.spines[spine]


@given(seeds, st.lists(st.integers(0, 2), min_size=2, max_size=3).filter(any), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_circuits_are_found_exactly_where_the_program_word_for_word_has_a_solution(
    seed: int, virtual: list[int], width: int
) -> None:
    fibres = reference.random_fibres(seed, len(virtual), 3, 4)
    leafs = np.array(virtual, np.int64)
    possible = reference.network_program(fibres, leafs, width) is not None
    quick = quick_network(fibres, leafs, width)
    exact = exact_network(fibres, leafs, width)
    for network in (quick, exact):
        if network is not None:
            assert isinstance(network, VirtualClos)
            assert_laid(fibres, leafs, width, network)
    assert possible or quick is None
    assert isinstance(exact, VirtualClos) == possible


@given(seeds, st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_the_counted_program_costs_what_the_one_written_out_costs(seed: int, width: int) -> None:
    fibres = reference.random_fibres(seed, 2, 3, 4)
    leafs = np.array([2, 1])
    laid = network_program(fibres, leafs, width, gap=0.0)
    cost = reference.network_program(fibres, leafs, width)
    assert (laid is None) == (cost is None)
    if laid is not None and cost is not None:
        assert fibres.of_spine[laid.spines > 0].sum() == cost  # type: ignore[union-attr]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 8), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_virtual_leafs_cost_what_the_leaf_program_says(idle: list[int], leafs: int, servers: int) -> None:
    free = np.array(idle, np.int64)
    held = cheapest_cover(free // servers, free, leafs)
    cost = reference.leaf_program(idle, leafs, servers)
    assert (held is None) == (cost is None)
    if held is not None:
        assert held.sum() == leafs
        assert (held <= free // servers).all()
        assert free[held > 0].sum() == cost


@given(seeds, st.integers(2, 5), st.integers(1, 2))
@settings(max_examples=60, deadline=None)
def test_one_spine_takes_a_job_exactly_where_its_program_has_a_solution(seed: int, servers: int, size: int) -> None:
    plant = optical_plant(leafs=4, spines=2, gpus_per_leaf=4, gpus_per_server=size)
    state = Occupancy(plant)
    fibres = reference.random_fibres(seed, 4, 2, 4)
    idle = state.idle_servers
    possible = [star_program(fibres, spine, idle, servers, size) is not None for spine in range(2)]
    star = around_one_spine(state, fibres, "a", servers * size)
    assert (star is not None) == any(possible)


@given(seeds, st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_two_leafs_are_joined_exactly_where_some_pair_has_enough_switches_in_common(seed: int, servers: int) -> None:
    plant = optical_plant(leafs=4, spines=2, gpus_per_leaf=6, gpus_per_server=2)
    state = Occupancy(plant)
    fibres = reference.random_fibres(seed, 4, 2, 6)
    larger = -(-servers // 2)
    possible = larger <= 3 and any(
        np.count_nonzero(fibres.leaf[a] & fibres.leaf[b]) >= larger * 2 for a, b in combinations(range(4), 2)
    )
    assert (joined_straight(state, fibres, "a", servers * 2) is not None) == possible


@given(
    st.sampled_from([(6, 3, 4, 2), (4, 2, 4, 1), (8, 4, 8, 4)]),
    st.lists(st.tuples(st.booleans(), st.integers(1, 8)), min_size=1, max_size=25),
)
@settings(max_examples=40, deadline=None)
def test_whatever_comes_and_goes_fibres_are_used_once_and_running_circuits_stay(
    shape: tuple[int, int, int, int], events: list[tuple[bool, int]]
) -> None:
    leafs, spines, gpus_per_leaf, gpus_per_server = shape
    plant: OpticalPlant = optical_plant(
        leafs=leafs, spines=spines, gpus_per_leaf=gpus_per_leaf, gpus_per_server=gpus_per_server
    )
    state = Occupancy(plant)
    before: dict[str, object] = {}
    for number, (comes, amount) in enumerate(events):
        if comes or not state.jobs:
            got = ocs_vclos(state, f"job{number}", amount * gpus_per_server)
            if isinstance(got, Allocation):
                state.place(got)
                before[got.job] = circuits_of(plant, got)
        else:
            gone = sorted(state.jobs)[amount % len(state.jobs)]
            state.release(gone)
            del before[gone]
        state.check()
        check_circuits(state)
        assert {name: circuits_of(plant, held) for name, held in state.jobs.items()} == before
    for name in list(state.jobs):
        state.release(name)
    assert free_fibres(state).leaf.all()
    assert np.array_equal(free_fibres(state).spine, plant.spine_fibres)
