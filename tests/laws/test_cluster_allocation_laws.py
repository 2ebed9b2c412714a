"""Laws of clusters: whatever comes and goes, nothing is given away twice, and isolated jobs stay apart."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.contention import Proof, contention_free
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.invariants import check_circuits
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import POLICIES, allocator_named, isolations

SIZES = [1, 2, 3, 4, 5, 6, 8, 12, 16, 20, 24, 28, 32, 48]

WORLDS = {
    "even": plant("leaf-spine:6x8x8", gpus_per_server=4),
    "many spines": plant("leaf-spine:4x70x8", gpus_per_server=2),
    "odd": Plant(
        "odd",
        2,
        np.array([0, 0, 0, 1, 2, 2, 3, 3, 3, 3]),
        np.array([[1, 2, 1, 0, 1, 1], [1, 1, 1, 1, 1, 1], [2, 2, 0, 1, 1, 3], [1, 1, 1, 1, 1, 0]]),
    ),
}

event = st.tuples(st.sampled_from(["ask", "ask", "end"]), st.sampled_from(SIZES), st.integers(0, 1000))


@cache
def proved(sizes: tuple[int, ...], spines: tuple[int, ...], size: int, collective: str) -> bool:
    """Contention depends on how many ranks each leaf holds and on their spines alone."""
    leafs = tuple(leaf for leaf, count in enumerate(sizes) for _ in range(count))
    seats = Allocation("x", tuple(range(len(leafs))), "clos", tuple(range(len(sizes))), (), (), spines, leafs)
    return isinstance(contention_free(seats, collective, ranks_per_server=size), Proof)


def safe_collectives(found: Allocation) -> list[str]:
    """What must never collide on equal leafs; two of them need powers of two on every leaf."""
    always = ["ring", "double-ring", "hierarchical-ring", "all-to-all", "direct"]
    share = len(found.gpus) // len(found.leafs)
    both = share & (share - 1) == 0 and len(found.leafs) & (len(found.leafs) - 1) == 0
    return always + ["halving-doubling", "xor"] * both


def applied() -> list[tuple[str, str]]:
    """(world, policy): every policy where it can be used."""
    return [
        (world, policy)
        for world, where in WORLDS.items()
        for policy in (*isolations(), "none")
        if policy == "none" or POLICIES[policy].applies((), where) is None
    ]


@pytest.mark.parametrize(("world", "policy"), applied())
@settings(max_examples=25, deadline=None)
@given(events=st.lists(event, max_size=25), drained=st.sets(st.integers(0, 3), max_size=1))
def test_nothing_is_given_away_twice_whatever_comes_and_goes(policy, world, events, drained):
    where = WORLDS[world]
    state = Occupancy(where) if policy == "none" else POLICIES[policy].occupancy(where)
    state.drain(Drained(leafs=drained))
    for number, (kind, size, pick) in enumerate(events):
        if kind == "end" and state.jobs:
            state.release(list(state.jobs)[pick % len(state.jobs)])
        else:
            before = state.as_document()
            answer = allocator_named(policy)(state, f"job{number}", size)
            assert state.as_document() == before
            if isinstance(answer, Waiting):
                assert answer.explanation
            else:
                assert len(answer.gpus) == size
                assert not drained & set(answer.leafs)
                state.place(answer)  # refuses whatever is occupied
                if answer.stage == "clos" and answer.guarantee == "contention-free":
                    spread = (answer.gpus_on_leaf(), answer.spine_of_gpu, state.plant.gpus_per_server)
                    assert all(proved(*spread, name) for name in safe_collectives(answer))
        state.check()
        if policy != "none" and POLICIES[policy].optical:
            check_circuits(state)
    for job in list(state.jobs):
        state.release(job)
    state.check()
    assert state.used == 0


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=12), late=st.sampled_from(SIZES))
def test_every_divisor_places_whatever_the_published_order_places(sizes, late):
    state = Occupancy(WORLDS["even"])
    for number, size in enumerate(sizes):
        found = allocator_named("vclos")(state, f"job{number}", size)
        if isinstance(found, Allocation):
            state.place(found)
    if isinstance(allocator_named("vclos")(state, "late", late), Allocation):
        assert isinstance(allocator_named("vclos-all-divisors")(state, "late", late), Allocation)


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.sampled_from(SIZES), max_size=12), late=st.sampled_from(SIZES))
def test_a_job_that_can_never_start_does_not_start_on_an_empty_plant_and_others_do(sizes, late):
    state = Occupancy(WORLDS["even"])
    for number, size in enumerate(sizes):
        found = allocator_named("vclos")(state, f"job{number}", size)
        if isinstance(found, Allocation):
            state.place(found)
    answer = allocator_named("vclos")(state, "late", late)
    if isinstance(answer, Waiting) and answer.reason.value == "network-fragmentation":
        empty = allocator_named("vclos")(Occupancy(state.plant), "late", late)
        assert answer.never == isinstance(empty, Waiting)
