from __future__ import annotations

import pytest

from ropewalk.errors import ClusterError
from ropewalk.tenancy._seats_kernel import buddy_group
from ropewalk.tenancy.allocation import Allocation, Reason
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import refused, under_one_leaf
from ropewalk.tenancy.plant import plant


def state_with(*taken: int) -> Occupancy:
    """Three leafs with two servers of eight GPUs, some of them taken one by one."""
    state = Occupancy(plant("leaf-spine:3x4x16", gpus_per_server=8))
    for gpu in taken:
        leaf = gpu // 16
        state.place(Allocation(f"t{gpu}", (gpu,), "server", (leaf,), (), (), (-1,), (leaf,)))
    return state


def test_too_few_gpus_is_a_shortage_and_more_than_all_never_fit():
    wait = refused(state_with(), "a", 49)
    assert wait is not None
    assert (wait.reason, wait.never) == (Reason.GPU_SHORTAGE, True)
    wait = refused(state_with(0), "a", 48)
    assert wait is not None
    assert (wait.reason, wait.never) == (Reason.GPU_SHORTAGE, False)
    assert "47 are free" in wait.explanation


def test_free_gpus_on_broken_servers_are_server_fragmentation():
    state = state_with(0, 8, 16, 24, 32, 40)
    wait = refused(state, "a", 8)
    assert wait is not None
    assert wait.reason is Reason.SERVER_FRAGMENTATION
    assert "42 GPUs are free, but only 0 servers with 8 of them" in wait.explanation
    assert refused(state, "a", 7) is None


def test_no_gpus_are_no_request():
    with pytest.raises(ClusterError, match="ask for 1 or more"):
        refused(state_with(), "a", 0)


def test_the_leaf_with_fewest_free_gpus_that_fits_is_taken():
    found = under_one_leaf(state_with(0, 16, 17), "a", 8)
    assert found is not None
    assert (found.stage, found.leafs, found.gpus) == ("server", (1,), tuple(range(24, 32)))


def test_one_leaf_jobs_reserve_no_links():
    found = under_one_leaf(state_with(), "a", 12)
    assert found is not None
    assert (found.stage, found.links, found.spines) == ("leaf", (), ())
    assert found.gpus == (0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13)  # evenly over two servers
    assert set(found.spine_of_gpu) == {-1}


def test_an_odd_number_leaves_the_last_server_not_full():
    found = under_one_leaf(state_with(), "a", 11)
    assert found is not None
    assert found.gpus == (*range(8), 8, 9, 10)


def test_small_jobs_take_the_smallest_group_so_that_large_ones_stay_whole():
    # Server 0 has a free pair and a free four, server 1 is idle.
    found = under_one_leaf(state_with(0, 1), "a", 2)
    assert found is not None
    assert found.gpus == (2, 3)
    found = under_one_leaf(state_with(0, 1), "a", 4)
    assert found is not None
    assert found.gpus == (4, 5, 6, 7)


def test_scattered_gpus_of_one_server_still_hold_a_job():
    busy = [gpu for gpu in range(48) if gpu not in (0, 3, 5)]
    found = under_one_leaf(state_with(*busy), "a", 3)
    assert found is not None
    assert found.gpus == (0, 3, 5)


@pytest.mark.parametrize(
    ("free", "gpus", "group"),
    [(0b11111111, 8, (8, 0)), (0b1111, 1, (4, 0)), (0b11110001, 1, (1, 0)), (0b1100, 2, (2, 2)), (0b0110, 2, (9, 0))],
)
def test_groups_are_aligned_powers_of_two(free, gpus, group):
    assert buddy_group(free, 8, gpus) == group


def test_drained_leafs_are_not_offered():
    state = state_with()
    state.drain(Drained(leafs=[0]))
    found = under_one_leaf(state, "a", 16)
    assert found is not None
    assert found.leafs == (1,)
