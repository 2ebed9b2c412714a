from __future__ import annotations

import numpy as np
import pytest
from contention_theory import uncontended
from source_routes_of_jobs import source_routes_of_jobs

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.contention import RankSwitches
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import allocator_named
from ropewalk.tenancy.routes import links_of_flows


def placed(state: Occupancy, policy: str, job: str, gpus: int) -> Allocation:
    found = allocator_named(policy)(state, job, gpus)
    assert isinstance(found, Allocation), found
    state.place(found)
    return found


def test_every_pair_of_a_job_goes_over_the_spine_of_its_source():
    state = Occupancy(plant("leaf-spine:3x4x4", gpus_per_server=2))
    job = placed(state, "vclos", "a", 12)
    fabric = state.plant.fabric()
    gpus = np.array(job.gpus)
    src, dst = (end.ravel() for end in np.meshgrid(gpus, gpus))
    other = src != dst
    routes = source_routes_of_jobs(state.plant, [job])(fabric, src[other], dst[other])
    routes.check()
    assert routes.pairs == 12 * 11
    spine = dict(zip(job.gpus, job.spine_of_gpu, strict=True))
    names = fabric.node_names
    for pair in range(routes.pairs):
        links = routes.link[routes.link_start[pair] : routes.link_start[pair + 1]]
        via = [names[fabric.link_dst[link]] for link in links]
        a, b = int(routes.pair_src[pair]), int(routes.pair_dst[pair])
        if a // 4 != b // 4:
            assert via == [f"leaf{a // 4}", f"spine{spine[a]}", f"leaf{b // 4}", names[b]]
        elif a // 2 != b // 2:
            assert via == [f"leaf{a // 4}", names[b]]
        else:
            assert via == [f"inside server{a // 2}", names[b]]


def test_loads_of_links_on_the_fabric_are_those_of_the_theory():
    state = Occupancy(plant("leaf-spine:3x4x4", gpus_per_server=2))
    job = placed(state, "vclos", "a", 12)
    fabric, router = state.plant.fabric(), source_routes_of_jobs(state.plant, [job])
    between = (fabric.link_src >= fabric.hosts) & (fabric.link_dst >= fabric.hosts)
    rng = np.random.default_rng(3)
    for _ in range(40):
        dst = rng.permutation(12)
        rank = np.flatnonzero(dst != np.arange(12))
        src, to = np.array(job.gpus)[rank], np.array(job.gpus)[dst[rank]]
        routes = router(fabric, src, to)
        load = routes.link_bytes(routes.find(src, to), np.ones(len(src)))
        assert uncontended(RankSwitches.of(job), rank, dst[rank]) == (load[between].max() <= 1)


def test_two_jobs_on_the_same_pair_of_switches_keep_to_their_own_cables():
    state = Occupancy(Plant("wide", 2, np.repeat([0, 1], 2), np.full((2, 2), 2)))
    state.drain(Drained(servers=[0, 2]))
    first = placed(state, "vclos", "a", 4)
    state.restore(Drained(servers=[0, 2]))
    second = placed(state, "vclos", "b", 4)
    src = np.array([*first.gpus[:2], *second.gpus[:2]])
    dst = np.array([*first.gpus[2:], *second.gpus[2:]])
    fabric = state.plant.fabric()
    routes = source_routes_of_jobs(state.plant, [first, second])(fabric, src, dst)
    routes.check()
    load = routes.link_bytes(routes.find(src, dst), np.ones(4))
    assert load.max() == 1


def test_flows_that_cross_leafs_need_a_cable_each():
    where = plant("leaf-spine:3x4x4", gpus_per_server=2)
    with pytest.raises(ValueError, match="1 flows cross leafs, and 0 have cables"):
        links_of_flows(where, np.array([0]), np.array([11]), np.zeros((0, 2), np.int64))


def test_jobs_without_isolation_are_routed_by_their_place_on_the_leaf():
    state = Occupancy(plant("leaf-spine:3x4x4", gpus_per_server=2))
    job = placed(state, "none", "a", 12)
    fabric = state.plant.fabric()
    routes = source_routes_of_jobs(state.plant, [job])(fabric, np.array([1, 2]), np.array([4, 9]))
    routes.check()
    assert [fabric.link_name(link) for link in routes.link[[1, 5]]] == ["leaf0->spine1", "leaf0->spine2"]
