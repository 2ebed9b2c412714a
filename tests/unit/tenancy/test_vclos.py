from __future__ import annotations

import numpy as np
import pytest

from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.contention import Proof, contention_free
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import allocator_named
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.vclos.compact import decide_leafs
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.search import Found, Nothing, Undecided, common_spines, search_leafs
from ropewalk.tenancy.vclos.shapes import all_divisors, doubling


def placed(state: Occupancy, allocate: Allocate, job: str, gpus: int) -> Allocation:
    found = allocate(state, job, gpus)
    assert isinstance(found, Allocation), found
    state.place(found)
    state.check()
    return found


def waiting(state: Occupancy, allocate: Allocate, gpus: int) -> Waiting:
    wait = allocate(state, "late", gpus)
    assert isinstance(wait, Waiting), wait
    return wait


def test_the_published_order_doubles_from_the_odd_part():
    big = plant("leaf-spine:64x32x32", gpus_per_server=4)
    assert list(doubling(big, 64)) == [(2, 32), (4, 16), (8, 8), (16, 4)]
    assert list(doubling(big, 36)) == [(9, 4)]
    assert list(all_divisors(big, 36)) == [(3, 12), (9, 4)]
    assert list(doubling(big, 37)) == []


def test_stages_go_from_server_to_leaf_to_leafs_times_spines():
    state = Occupancy(plant("leaf-spine:4x8x8", gpus_per_server=4))
    allocate = vclos()
    assert placed(state, allocate, "a", 2).stage == "server"
    assert placed(state, allocate, "b", 8).stage == "leaf"
    crossing = placed(state, allocate, "c", 16)
    assert crossing.stage == "clos"
    assert crossing.leafs == (2, 3)
    assert len(crossing.links) == 16
    assert crossing.spine_of_gpu == crossing.spines * 2


def test_leafs_with_few_free_cables_are_preferred():
    state = Occupancy(plant("leaf-spine:6x8x8", gpus_per_server=4))
    state.drain(Drained(servers=[0, 1, 2]))  # leaf 0 is full, leaf 1 has one idle server
    allocate = vclos(all_divisors)
    first = placed(state, allocate, "a", 40 // 5 * 3)  # 24: three leafs of 8
    assert first.leafs == (2, 3, 4)
    state.release("a")
    state.drain(Drained(links=[(4, 0), (5, 0), (3, 0), (1, 5), (1, 6)]))
    assert set(placed(state, allocate, "b", 12).leafs) <= {1, 3, 4, 5}


def test_the_spine_of_a_gpu_is_its_place_in_the_job_not_its_number():
    state = Occupancy(plant("leaf-spine:3x8x8", gpus_per_server=4))
    state.drain(Drained(servers=[0, 2, 4], links=[(leaf, 1) for leaf in range(3)]))
    found = placed(state, vclos(), "a", 12)
    assert found.gpus == (4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23)
    assert found.spines == (0, 2, 3, 4)
    assert found.spine_of_gpu == (0, 2, 3, 4) * 3


def test_no_common_spines_is_network_fragmentation_and_names_them():
    state = Occupancy(plant("leaf-spine:2x4x8", gpus_per_server=4))
    state.drain(Drained(servers=[0, 2], links=[(0, 0), (1, 3)]))
    wait = waiting(state, vclos(), 8)
    assert wait.reason is Reason.NETWORK_FRAGMENTATION
    assert wait.blocking_spines == (0, 3)
    assert "share 2 of 4 spines" in wait.explanation
    assert "spine0, spine3" in wait.explanation
    assert not wait.never


def test_a_prime_number_of_gpus_needs_one_leaf_and_a_larger_one_never_starts():
    state = Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4))
    assert placed(state, vclos(), "a", 7).stage == "leaf"
    wait = waiting(state, vclos(), 11)
    assert (wait.reason, wait.never) == (Reason.NETWORK_FRAGMENTATION, True)
    assert "even when it is empty" in wait.explanation


def test_trying_all_divisors_places_what_the_published_order_cannot():
    state = Occupancy(plant("leaf-spine:8x32x32", gpus_per_server=4))
    assert waiting(state, allocator_named("vclos"), 36).never
    found = placed(state, allocator_named("vclos-all-divisors"), "a", 36)
    assert (len(found.leafs), len(found.spines)) == (3, 12)


def test_one_leaf_jobs_leave_all_uplinks_to_others():
    state = Occupancy(plant("leaf-spine:2x8x16", gpus_per_server=4))
    for leaf in range(2):
        placed(state, vclos(), f"one{leaf}", 8)
    assert state.ports_of_leaf.tolist() == [8, 8]


def test_jobs_on_parallel_cables_take_one_each():
    state = Occupancy(Plant("wide", 2, np.repeat([0, 1], 2), np.full((2, 2), 2)))
    state.drain(Drained(servers=[0, 2]))
    first = placed(state, vclos(), "a", 4)
    state.restore(Drained(servers=[0, 2]))
    second = placed(state, vclos(), "b", 4)
    assert first.links == second.links == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert (first.cables, second.cables) == ((0,) * 4, (1,) * 4)


def test_when_the_search_gives_up_the_integer_program_decides():
    state = Occupancy(plant("leaf-spine:6x8x8", gpus_per_server=4))
    state.drain(Drained(links=[(leaf, leaf) for leaf in range(6)], servers=[0, 2, 4]))
    assert isinstance(search_leafs(state, 4, 4, node_budget=0), Undecided)
    slow = decide_leafs(state, 4, 4)
    quick = search_leafs(state, 4, 4)
    assert isinstance(slow, Found)
    assert isinstance(quick, Found)
    assert slow.cheapest
    assert quick.cheapest
    without_search = vclos(node_budget=0)
    found = without_search(state, "a", 16)
    assert isinstance(found, Allocation)
    assert found.stage == "clos"


def test_the_freest_leafs_are_tried_when_the_cheapest_lead_nowhere():
    state = Occupancy(plant("leaf-spine:40x32x32", gpus_per_server=8))
    taken = np.random.default_rng(1).random((40, 32)) < 0.2
    state.drain(Drained(links=[(int(leaf), int(spine)) for leaf, spine in zip(*np.nonzero(taken), strict=True)]))
    found = search_leafs(state, 8, 16, node_budget=100)
    assert isinstance(found, Found)
    assert found.nodes > 100  # the first search had ended
    assert not found.cheapest
    assert len(common_spines(state, found.leafs, 16)) == 16
    best = search_leafs(state, 8, 16)
    assert isinstance(best, Found)
    assert state.ports_of_leaf[list(best.leafs)].sum() < state.ports_of_leaf[list(found.leafs)].sum()


def test_what_nobody_decides_is_said_to_be_undecided():
    state = Occupancy(plant("leaf-spine:40x32x32", gpus_per_server=8))
    taken = np.random.default_rng(1).random((40, 32)) < 0.35
    taken[0] = taken[1:, 1] = True
    links = [(int(leaf), int(spine)) for leaf, spine in zip(*np.nonzero(taken), strict=True)]
    state.drain(Drained(servers=list(range(0, 160, 2)), links=links))
    wait = waiting(state, vclos(node_budget=5, branch_budget=0), 64)
    assert wait.reason is Reason.NETWORK_FRAGMENTATION
    assert "the search reached its limits undecided" in wait.explanation


def test_too_few_leafs_need_no_search():
    state = Occupancy(plant("leaf-spine:3x4x8", gpus_per_server=4))
    state.drain(Drained(leafs=[0]))
    assert search_leafs(state, 3, 4) == Nothing(0)


def test_drained_spines_and_links_are_never_reserved():
    state = Occupancy(plant("leaf-spine:4x8x4", gpus_per_server=4))
    state.drain(Drained(spines=[0, 1], links=[(0, 2)]))
    found = placed(state, vclos(), "a", 16)
    assert not {0, 1} & set(found.spines)
    assert (0, 2) not in found.links


def test_the_same_state_gives_the_same_answer():
    answers = []
    for _ in range(2):
        state = Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4))
        answers.append([placed(state, vclos(), f"j{n}", size) for n, size in enumerate((4, 16, 2, 16, 8, 4))])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("gpus", [16, 20, 24, 32])
@pytest.mark.parametrize("name", ["ring", "hierarchical-ring", "all-to-all", "direct"])
def test_what_vclos_gives_is_free_of_contention(gpus, name):
    state = Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4))
    state.drain(Drained(spines=[2], servers=[0, 3]))
    found = placed(state, allocator_named("vclos-all-divisors"), "a", gpus)
    assert found.stage == "clos"
    assert isinstance(contention_free(found, name, ranks_per_server=4), Proof)


def test_without_isolation_only_gpus_and_servers_count():
    state = Occupancy(plant("leaf-spine:4x8x8", gpus_per_server=4))
    state.drain(Drained(links=[(leaf, spine) for leaf in range(4) for spine in range(8)]))
    found = placed(state, allocator_named("none"), "a", 20)
    assert (found.stage, found.guarantee, found.links) == ("shared", "none", ())
    assert sorted(found.gpus_on_leaf(), reverse=True) == [8, 8, 4]
    # The rule is fixed for the plant: the place of a GPU on its leaf.
    assert all(spine == gpu % 8 for gpu, spine in zip(found.gpus, found.spine_of_gpu, strict=True))
