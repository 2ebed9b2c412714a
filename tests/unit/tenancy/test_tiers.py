"""Plants with pods and cores, and on rails."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tree_states import three_tiers

from ropewalk.errors import ClusterError, FabricError, InputError
from ropewalk.fabric import FatTree
from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.by_place import way_up
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.parts import drained_of, part_names
from ropewalk.tenancy.pinned import gpus_of_servers, pinned
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.plant_document import plant_document, plant_from_document
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.vclos.laas import laas
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.shapes import all_divisors, doubling, over_pods


@pytest.mark.parametrize("shape", [FatTree(4), FatTree(6, 4), FatTree(8, 4, 2)], ids=lambda shape: shape.expression)
def test_the_plant_of_a_fat_tree_has_its_links_in_their_order(shape):
    made, tree = plant(shape.expression, gpus_per_server=1).fabric(), shape.build()
    assert made.hosts == tree.hosts
    assert np.array_equal(made.link_src, tree.link_src)
    assert np.array_equal(made.link_dst, tree.link_dst)
    assert made.node_names[made.hosts :] == tree.node_names[tree.hosts :]


def test_links_of_a_plant_are_those_of_its_fabric():
    made = plant("fat-tree:4", gpus_per_server=2)
    fabric = made.fabric()
    assert fabric.link_name(int(made.leaf_up(3, 2))) == "edge1.1->agg1.0"
    assert fabric.link_name(int(made.core_up(5, 3)) + 1) == "core1.1->agg2.1"
    assert fabric.link_name(int(made.inside_up(15))) == "server7.1->inside server7"


def test_pods_are_what_cables_join_and_lanes_are_places_in_them():
    tiers = plant("fat-tree:8", gpus_per_server=2).tiers
    assert (tiers.pods, tiers.lanes, tiers.cores_per_lane) == (8, 4, 4)
    assert tiers.pod_of_leaf[[0, 3, 4, 31]].tolist() == [0, 0, 1, 7]
    assert tiers.lane_of_spine()[:6].tolist() == [0, 1, 2, 3, 0, 1]
    assert tiers.first_core[[0, 1, 4]].tolist() == [0, 4, 0]
    two = plant("leaf-spine:4x2x4", gpus_per_server=2)
    assert (two.tiers.pods, two.tiers.lanes, two.tiers.cores_per_lane, two.cores) == (1, 2, 0, 0)


def test_every_gpu_of_a_full_fat_tree_has_a_way_of_its_own_to_the_top():
    made = plant("fat-tree:8", gpus_per_server=4)
    way = way_up(made)
    assert len({*zip(way.spine.tolist(), way.core.tolist(), strict=True)}) == made.gpus
    assert len({*zip(made.leaf_of_gpu.tolist(), way.spine.tolist(), strict=True)}) == made.gpus


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cables": np.array([[1, 0], [0, 1], [1, 0], [0, 1]])}, "leafs are not sorted by pod"),
        ({"cables": np.array([[0, 1], [0, 1], [1, 0], [1, 0]])}, "spines are not sorted by pod"),
        ({"core_cables": np.array([[1, 0], [0, 1]])}, "spines at place 0 of pods have no core in common"),
        ({"core_cables": np.array([[1, 1]])}, "core cables have 1 rows for 2 spines"),
        ({"core_cables": np.array([[63, 1], [1, 1]])}, "core cables range from 1 to 63"),
        ({"core_names": ("a",)}, "1 core names for 2"),
        ({"rails": 3}, "3 rails for servers of 2 GPUs"),
    ],
)
def test_what_is_no_plant_of_three_tiers_is_refused(change, message):
    given = {
        "cables": np.array([[1, 0], [1, 0], [0, 1], [0, 1]]),
        "core_cables": np.array([[1, 1], [1, 1]]),
    }
    with pytest.raises(FabricError, match=message):
        Plant("bad", 2, np.arange(4), **(given | change))


def test_on_rails_gpus_of_a_server_are_on_different_leafs():
    made = plant("rails:8x4x3", gpus_per_server=4)
    assert (made.name, made.units, made.servers, made.gpus) == ("rails:8x4x3", 2, 6, 24)
    assert made.leaf_of_gpu[:8].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert made.place_on_leaf[:12].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert made.gpus_per_leaf.tolist() == [3] * 8
    assert made.leaf_names[5] == "unit1.rail1"
    assert made.unit_names == ("unit0", "unit1")
    only = plant("rail-only:2x4", gpus_per_server=8)
    assert (only.spines, only.units, only.gpus) == (0, 2, 64)
    for bad, message in (
        ("rail-only:4", "rail-only:UNITSxSERVERS"),
        ("rails:6x4x4", "^rails:6x4x4 has 6 leafs, which are not whole units of 4 rails"),
    ):
        with pytest.raises(FabricError, match=message):
            plant(bad, gpus_per_server=4)


@pytest.mark.parametrize("expression", ["fat-tree:4", "fat-tree:8,4,2", "rails:8x4x4", "rail-only:2x4"])
def test_plants_and_their_states_are_read_back_as_they_were(expression):
    made = plant(expression, gpus_per_server=2 if "tree" in expression else 4)
    again = plant_from_document(json.loads(json.dumps(plant_document(made))))
    assert plant_document(again) == plant_document(made)
    state = Occupancy(made)
    for number, gpus in enumerate((2, 4, 8)):
        found = vclos()(state, f"job{number}", gpus)
        assert isinstance(found, Allocation)
        state.place(found)
    if made.cores:
        state.drain(Drained(cores=[0], core_links=[(0, 1)]))
    text = json.dumps(state.as_document())
    read = Occupancy.from_document(again, json.loads(text))
    read.check()
    assert json.dumps(read.as_document()) == text


def test_cores_and_links_to_them_are_drained_by_name():
    made = plant("fat-tree:4", gpus_per_server=2)
    parts = drained_of(made, ["core:core0.1", "link:agg1.1-core1.0", "link:edge0.0-agg0.1"])
    assert parts == Drained(cores=[1], core_links=[(3, 2)], links=[(0, 1)])
    assert drained_of(made, part_names(made, parts)) == parts
    with pytest.raises(InputError, match="is not a link"):
        drained_of(made, ["link:agg0.0-core1.0x"])
    with pytest.raises(ClusterError, match="no link from spine 0 to core 3"):
        Drained(core_links=[(0, 3)]).check(made)
    with pytest.raises(InputError, match="is not a part"):
        drained_of(plant("leaf-spine:2x2x2", gpus_per_server=2), ["core:0"])


def test_a_drained_core_takes_no_new_job_and_names_those_that_run_there():
    state = Occupancy(plant("fat-tree:4", gpus_per_server=2))
    job = vclos()(state, "a", 8)
    assert isinstance(job, Allocation)
    state.place(job)
    assert job.cores == (0, 1, 2, 3)
    assert state.drain(Drained(cores=[2])) == ("a",)
    assert state.drain(Drained(core_links=[(5, 2)])) == ()
    assert state.drain(Drained(core_links=[(0, 0)])) == ("a",)
    state.check()
    late = vclos()(state, "b", 8)
    assert isinstance(late, Waiting)
    assert (late.reason, late.tier, late.blocking_cores) == (Reason.NETWORK_FRAGMENTATION, "core", (2,))
    assert "cores are taken" in late.explanation
    state.restore(Drained(cores=[2], core_links=[(5, 2), (0, 0)]))
    assert isinstance(vclos()(state, "b", 8), Allocation)
    state.check()


def test_a_job_stays_in_one_pod_where_it_fits_and_goes_over_equal_pods_where_not():
    state = Occupancy(plant("fat-tree:8", gpus_per_server=2))
    inside = vclos()(state, "a", 16)
    assert isinstance(inside, Allocation)
    assert (inside.leafs, inside.spines, inside.core_links) == ((0, 1, 2, 3), (0, 1, 2, 3), ())
    state.place(inside)
    over = vclos()(state, "b", 24)
    assert isinstance(over, Allocation)
    assert over.leafs == (4, 5, 6, 8, 9, 10)
    assert over.spines == (4, 5, 6, 7, 8, 9, 10, 11)
    assert len(over.core_links) == 24
    # Rank i of the k-th leaf of its pod: lane i, core k of its plane.
    assert over.core_of_gpu[:8] == (0, 4, 8, 12, 1, 5, 9, 13)
    state.place(over)
    state.check()
    assert isinstance(laas()(state, "c", 24), Waiting)


def test_spines_are_in_the_way_where_free_cores_would_not_help():
    state = Occupancy(three_tiers(pods=2, leafs=2, lanes=2, cores=2, servers=2, size=2))
    state.drain(Drained(links=[(0, 0), (2, 2)], servers=[0, 2, 4, 6]))
    wait = vclos()(state, "a", 8)
    assert isinstance(wait, Waiting)
    assert wait.tier == "spine"
    assert wait.blocking_cores == ()


def test_numbers_that_no_tree_holds_never_start():
    state = Occupancy(plant("fat-tree:4", gpus_per_server=2))
    wait = vclos(all_divisors)(state, "a", 10)
    assert isinstance(wait, Waiting)
    assert wait.never
    assert "leafs and pods" in wait.explanation
    assert list(over_pods(state.plant, 8, doubling)) == [(2, 2, 2), (4, 1, 2)]


def test_units_without_spines_are_islands():
    state = Occupancy(plant("rail-only:2x2", gpus_per_server=4))
    for allocate in (gpus_only, vclos()):
        fits = allocate(state, "a", 8)
        assert isinstance(fits, Allocation)
        assert fits.stage == "leaf"
        assert not fits.crosses
        wait = allocate(state, "b", 16)
        assert isinstance(wait, Waiting)
        assert wait.never


def test_over_units_every_rail_has_spines_of_its_own():
    state = Occupancy(plant("rails:8x4x2", gpus_per_server=4))
    job = vclos()(state, "a", 16)
    assert isinstance(job, Allocation)
    assert job.leafs == (0, 1, 2, 3, 4, 5, 6, 7)
    assert job.spines == (0, 1) * 4
    # Ranks go server by server: the first server takes spine 0 on every rail, the second spine 1.
    assert job.spine_of_gpu == (0, 0, 0, 0, 1, 1, 1, 1) * 2
    state.place(job)
    state.check()
    with pytest.raises(ClusterError, match="rails"):
        laas()(state, "b", 4)


def test_chosen_servers_get_links_over_pods_and_rails_where_they_are_equal():
    tree = Occupancy(plant("fat-tree:8", gpus_per_server=2))
    gpus = gpus_of_servers(tree, [9, 0, 8, 1], 8)
    assert isinstance(gpus, list)
    job = pinned(POLICIES["vclos"], tree, "a", gpus)
    assert isinstance(job, Allocation)
    assert (len(job.core_links), job.guarantee) == (8, "contention-free")
    tree.place(job)
    tree.check()
    uneven = pinned(POLICIES["vclos"], tree, "b", [4, 5, 6, 7, 20, 21])
    assert isinstance(uneven, Waiting)
    assert uneven.never
    rails = Occupancy(plant("rails:8x4x2", gpus_per_server=4))
    over = pinned(POLICIES["vclos"], rails, "a", [*range(4), *range(12, 16)])
    assert isinstance(over, Allocation)
    assert len(over.links) == 8
    rails.place(over)
    rails.check()


@pytest.mark.parametrize("expression", ["fat-tree:4", "rails:4x2x2"])
def test_optical_switches_stand_between_two_tiers_alone(expression):
    with pytest.raises(FabricError, match="use --isolate vclos"):
        OpticalPlant.of_plant(plant(expression, gpus_per_server=2))
