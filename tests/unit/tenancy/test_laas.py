from __future__ import annotations

from contention_theory import uncontended

from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.contention import Counterexample, Proof, RankSwitches, contention_free
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.vclos.laas import laas


def placed(state: Occupancy, gpus: int) -> Allocation:
    found = laas()(state, f"j{len(state.jobs)}", gpus)
    assert isinstance(found, Allocation), found
    state.place(found)
    state.check()
    return found


def test_the_remainder_goes_to_a_leaf_whose_links_lie_within_those_of_the_others():
    found = placed(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), 20)
    assert found.gpus_on_leaf() == (8, 8, 4)
    last = {spine for leaf, spine in found.links if leaf == found.leafs[-1]}
    assert last < set(found.spines)
    assert len(found.links) == 20


def test_unequal_leafs_have_the_weaker_guarantee_and_can_collide():
    found = placed(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), 20)
    assert found.guarantee == "rearrangeable"
    assert isinstance(contention_free(found, "ring"), Proof)
    assert isinstance(contention_free(found, "all-to-all"), Counterexample)


def test_no_remainder_is_what_vclos_gives():
    found = placed(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), 24)
    assert found.guarantee == "contention-free"
    assert isinstance(contention_free(found, "all-to-all"), Proof)


def test_one_full_leaf_reserves_links_only_for_the_remainder():
    found = placed(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), 12)
    assert found.gpus_on_leaf() == (8, 4)
    assert len(found.links) == 8
    assert found.spine_of_gpu == (*found.spines, *found.spines, *found.spines)
    # Ranks 0 and 4 share an uplink: enough for four flows at a time, if only somebody chose which.
    assert not uncontended(RankSwitches.of(found), [0, 4], [8, 9])
    assert uncontended(RankSwitches.of(found), [0, 1], [8, 9])


def test_a_prime_number_of_gpus_is_placed_with_a_last_server_not_full():
    found = placed(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), 19)
    assert found.gpus_on_leaf() == (8, 8, 3)


def test_the_remainder_leaf_is_looked_for_beyond_the_first_choice():
    state = Occupancy(plant("leaf-spine:4x4x4", gpus_per_server=2))
    # Leafs 0 and 1 share spines 0 and 1, which no third leaf reaches; leafs 2 and 3 share all.
    state.drain(Drained(links=[(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)], servers=[0, 2, 4, 6]))
    answer = laas()(state, "a", 6)
    assert isinstance(answer, Waiting)
    assert answer.reason is Reason.NETWORK_FRAGMENTATION
    state.restore(Drained(links=[(2, 0), (2, 1)]))
    found = placed(state, 6)
    assert found.guarantee == "contention-free"
    assert set(found.leafs) == {0, 1, 2}
