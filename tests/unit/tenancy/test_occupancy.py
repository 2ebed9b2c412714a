from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import ClusterError, PhysicsError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant, plant


def small() -> Occupancy:
    """Four leafs with two servers of two GPUs, four spines."""
    return Occupancy(plant("leaf-spine:4x4x4", gpus_per_server=2))


def two_by_two(job: str = "a", leafs: tuple[int, int] = (0, 1), spines: tuple[int, int] = (0, 1)) -> Allocation:
    """The first server of two leafs, and two spines."""
    return Allocation(
        job=job,
        gpus=tuple(4 * leaf + place for leaf in leafs for place in (0, 1)),
        stage="clos",
        leafs=leafs,
        spines=spines,
        links=tuple((leaf, spine) for leaf in leafs for spine in spines),
        spine_of_gpu=spines * 2,
        leaf_of_gpu=(leafs[0], leafs[0], leafs[1], leafs[1]),
    )


def test_a_job_takes_gpus_and_both_directions_of_its_links_and_gives_them_back():
    state = small()
    before = state.as_document()
    state.place(two_by_two())
    state.check()
    assert (state.used, state.free) == (4, 12)
    assert state.idle_servers.tolist() == [1, 1, 2, 2]
    assert state.ports_of_leaf.tolist() == [2, 2, 4, 4]
    assert state.ports_of_spine.tolist() == [2, 2, 4, 4]
    assert state.spine_words[:, 0].tolist() == [0b1100, 0b1100, 0b1111, 0b1111]
    assert state.release("a") == two_by_two()
    state.check()
    assert state.as_document() == before


def test_nothing_is_given_away_twice():
    state = small()
    state.place(two_by_two())
    with pytest.raises(ClusterError, match="already running"):
        state.place(two_by_two())
    with pytest.raises(ClusterError, match=r"server0 is taken \(GPUs 0, 1\)"):
        state.place(two_by_two("b", (0, 2), (2, 3)))
    links_taken = replace(two_by_two("b"), gpus=(2, 3, 6, 7))
    with pytest.raises(ClusterError, match="cable 0 of leaf0 - spine0 is not free"):
        state.place(links_taken)
    state.check()
    assert list(state.jobs) == ["a"]


def test_strangers_are_refused():
    state = small()
    with pytest.raises(ClusterError, match="holds nothing"):
        state.release("a")
    with pytest.raises(ClusterError, match="not one of 0 to 15"):
        state.place(replace(two_by_two(), gpus=(0, 1, 4, 99)))
    with pytest.raises(ClusterError, match="listed twice"):
        state.place(replace(two_by_two(), gpus=(0, 1, 4, 4)))
    with pytest.raises(ClusterError, match="no leaf 0 with a spine 9"):
        state.place(replace(two_by_two(), links=((0, 9),)))


def test_parallel_cables_are_held_one_by_one():
    state = Occupancy(Plant("double", 1, np.array([0, 0, 1, 1]), np.array([[2], [2]])))
    first = Allocation("a", (0, 2), "clos", (0, 1), (0,), ((0, 0), (1, 0)), (0, 0), (0, 1), cables=(0, 0))
    state.place(first)
    assert state.first_free_cable(0, 0) == 1
    state.place(replace(first, job="b", gpus=(1, 3), cables=(1, 1)))
    state.check()
    assert state.ports_of_leaf.tolist() == [0, 0]
    with pytest.raises(ClusterError, match="no free cable"):
        state.first_free_cable(0, 0)
    state.release("a")
    assert state.first_free_cable(0, 0) == 0


def test_drained_parts_take_no_new_job_and_name_those_that_run_there():
    state = small()
    state.place(two_by_two())
    assert state.drain(Drained(leafs=[1])) == ("a",)
    assert state.drain(Drained(spines=[3])) == ()
    assert state.drain(Drained(links=[(0, 2)])) == ()
    assert state.drain(Drained(servers=[1])) == ()
    assert state.free_on_leaf.tolist() == [0, 0, 4, 4]
    assert state.ports_of_leaf.tolist() == [0, 0, 3, 3]
    state.check()
    with pytest.raises(ClusterError, match="server3 is drained"):
        state.place(Allocation("b", (6,), "server", (1,), (), (), (-1,), (1,)))
    state.release("a")
    state.check()
    assert state.free_on_leaf.tolist() == [2, 0, 4, 4]
    state.restore(Drained(leafs=[1], spines=[3], links=[(0, 2)], servers=[1]))
    assert state.free == 16
    assert state.ports_of_leaf.tolist() == [4] * 4
    with pytest.raises(ClusterError, match="leaf 1 is not drained"):
        state.restore(Drained(leafs=[1]))
    with pytest.raises(ClusterError, match="no spine 4"):
        state.drain(Drained(spines=[4]))


def test_a_job_on_shared_links_may_use_every_link_of_its_leafs():
    state = small()
    shared = replace(two_by_two(), stage="shared", links=(), spines=(), guarantee="none")
    state.place(shared)
    assert state.drain(Drained(links=[(0, 3)])) == ("a",)
    assert state.drain(Drained(links=[(2, 3)])) == ()
    assert state.drain(Drained(spines=[2])) == ("a",)


def test_a_copy_changes_on_its_own():
    state = small()
    other = state.copy()
    other.place(two_by_two())
    other.drain(Drained(leafs=[3]))
    state.check()
    other.check()
    assert (state.free, other.free) == (16, 8)


def test_a_snapshot_is_read_back_as_it_was():
    state = small()
    state.place(two_by_two())
    state.drain(Drained(leafs=[1], links=[(2, 3)]))
    text = json.dumps(state.as_document())
    again = Occupancy.from_document(state.plant, json.loads(text))
    again.check()
    assert json.dumps(again.as_document()) == text
    assert np.array_equal(again.cables_free, state.cables_free)


def test_snapshots_of_other_plants_or_with_holes_are_refused():
    document = small().as_document()
    with pytest.raises(ClusterError, match="snapshot is of 16 GPUs"):
        Occupancy.from_document(plant("leaf-spine:2x4x4", gpus_per_server=2), document)
    del document["drained"]
    with pytest.raises(ClusterError, match="drained is missing"):
        Occupancy.from_document(small().plant, document)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda held: replace(held, links=held.links[:3], spine_of_gpu=(0, 1, 0, 0)), "not all 4 of its leafs"),
        (lambda held: replace(held, spine_of_gpu=(0, 0, 0, 1)), "its i-th GPU must send to its i-th spine"),
        (lambda held: replace(held, spine_of_gpu=(0, 3, 0, 1)), "no reserved link"),
        (lambda held: replace(held, gpus=(0, 4, 1, 5), leaf_of_gpu=(0, 1, 0, 1)), "returns to a leaf"),
        (lambda held: replace(held, leaf_of_gpu=(0, 0, 2, 2)), "lists wrong leafs"),
        (lambda held: replace(held, stage="leaf"), "is on one leaf but reserves links"),
    ],
)
def test_an_allocation_that_is_not_what_it_promises_fails_the_check(damage, message):
    state = small()
    state.place(damage(two_by_two()))
    with pytest.raises(PhysicsError, match=message):
        state.check()


@pytest.mark.parametrize(
    ("key", "value"), [("leafs", [0, 9]), ("leafs", []), ("spine_of_gpu", [0, 9, 0, 1]), ("leaf_of_gpu", [0, 0, 9, 9])]
)
def test_a_snapshot_with_switches_that_do_not_exist_is_refused(key, value):
    state = small()
    state.place(two_by_two())
    document = state.as_document()
    document["jobs"][0][key] = value
    with pytest.raises(ClusterError, match="job "):
        Occupancy.from_document(small().plant, document)


def test_a_count_that_has_drifted_fails_the_check():
    state = small()
    state.place(two_by_two())
    state.idle_servers[0] += 1
    with pytest.raises(PhysicsError, match="idle_servers"):
        state.check()
    state = small()
    state.free_gpus[0] = 0
    with pytest.raises(PhysicsError, match="free GPUs are not those"):
        state.check()
