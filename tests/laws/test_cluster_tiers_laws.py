"""Laws of clusters with pods and rails: nothing twice, isolated jobs apart, paths that lead from leaf to leaf."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_states import odd_tiers, rails_below_cores, some_drained, three_tiers

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.contention import Proof, contention_free
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.paths import SwitchNetwork, balanced, ecmp, hops_of, links_of, polarised_ecmp, source
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.relays import relayed
from ropewalk.tenancy.routes import links_of_flows
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.vclos.compact import decide_leafs
from ropewalk.tenancy.vclos.laas import laas
from ropewalk.tenancy.vclos.policy import vclos
from ropewalk.tenancy.vclos.search import Found, search_leafs
from ropewalk.tenancy.vclos.shapes import all_divisors

WORLDS = {
    "fat-tree": plant("fat-tree:6", gpus_per_server=1),
    "oversubscribed": plant("fat-tree:8,4,2", gpus_per_server=2),
    "shared cores": three_tiers(pods=3, leafs=3, lanes=4, cores=3, servers=2, size=2, planes=False),
    "rails": plant("rails:12x5x3", gpus_per_server=4),
    "rail-only": plant("rail-only:3x4", gpus_per_server=4),
    "rails below cores": rails_below_cores(),
}
POLICIES = {"vclos": vclos(), "vclos-all-divisors": vclos(all_divisors), "laas": laas(), "none": gpus_only}


@pytest.mark.parametrize("policy", list(POLICIES))
@pytest.mark.parametrize("world", list(WORLDS))
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), events=st.integers(1, 22))
def test_nothing_is_given_away_twice_and_isolated_jobs_are_apart(policy, world, seed, events):
    where, rng = WORLDS[world], np.random.default_rng(seed)
    if policy == "laas" and where.rails > 1:
        return
    state, drained = Occupancy(where), Drained()
    for number in range(events):
        kind = rng.random()
        if kind < 0.25 and state.jobs:
            state.release(str(rng.choice(list(state.jobs))))
        elif kind < 0.32:
            fresh = some_drained(rng, where, 0.1).besides(state.drained)
            state.drain(fresh)
            drained = fresh
        elif kind < 0.4:
            state.restore(drained)
            drained = Drained()
        else:
            gpus = int(rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 32, 48]))
            answer = POLICIES[policy](state, f"job{number}", gpus)
            if isinstance(answer, Waiting):
                assert answer.explanation
                assert not answer.never or isinstance(POLICIES[policy](Occupancy(where), "x", gpus), Waiting)
            else:
                state.place(answer)
                assert len(answer.gpus) == gpus
                if answer.stage == "clos" and answer.guarantee == "contention-free":
                    assert isinstance(contention_free(answer, "all-to-all", plant=where), Proof)
                    assert isinstance(contention_free(answer, "ring", plant=where), Proof)
        state.check()
    for job in list(state.jobs):
        state.release(job)
    state.check()
    assert state.used == 0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_counts_hold_on_odd_plants(seed):
    rng = np.random.default_rng(seed)
    where = odd_tiers(rng)
    state, allocate = Occupancy(where), vclos(all_divisors)
    state.drain(some_drained(rng, where, 0.2))
    for number in range(8):
        answer = allocate(state, f"job{number}", int(rng.integers(1, 13)))
        if isinstance(answer, Allocation):
            state.place(answer)
            state.check()
            if answer.stage == "clos":
                assert isinstance(contention_free(answer, "all-to-all", plant=where), Proof)


@pytest.mark.parametrize("choose", [ecmp, polarised_ecmp, balanced, source])
@pytest.mark.parametrize("world", ["fat-tree", "oversubscribed", "shared cores", "rails", "rails below cores", "odd"])
def test_paths_lead_from_leaf_to_leaf_over_what_is_alive(world, choose):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        where = odd_tiers(rng) if world == "odd" else WORLDS[world]
        dead = some_drained(rng, where, 0.05)
        alive = where.cables * dead.links_up(where), where.core_cables * dead.core_links_up(where)
        network = SwitchNetwork(where, alive[0], np.zeros(links_of(where)).copy, seed, core_cables=alive[1])
        gpus = np.sort(rng.permutation(where.gpus)[: min(24, where.gpus)])
        job = job_on(where, gpus)
        ranks = rng.integers(0, len(gpus), (2, 60))
        src, dst = relayed(
            gpus,
            where.rails,
            *ranks[:, gpus[ranks[0]] // where.gpus_per_server != gpus[ranks[1]] // where.gpus_per_server],
        )
        cross = where.leaf_of_gpu[gpus[src]] != where.leaf_of_gpu[gpus[dst]]
        src, dst = src[cross], dst[cross]
        joined = [
            reaches(where, alive, where.leaf_of_gpu[gpus[a]], where.leaf_of_gpu[gpus[b]])
            for a, b in zip(src, dst, strict=True)
        ]
        src, dst = src[joined], dst[joined]
        path = choose(network, job, src, dst)
        assert path.shape == (len(src), hops_of(where))
        start, link = links_of_flows(where, gpus[src], gpus[dst], path.astype(np.int64))
        fabric = where.fabric()
        up = np.concatenate([alive[0].ravel(), alive[1].ravel()])
        strands = np.repeat(np.arange(len(up)), np.concatenate([where.cables.ravel(), where.core_cables.ravel()]))
        for flow in range(len(src)):
            links = link[start[flow] : start[flow + 1]]
            assert fabric.link_src[links[0]] == gpus[src[flow]]
            assert fabric.link_dst[links[-1]] == gpus[dst[flow]]
            assert (fabric.link_dst[links[:-1]] == fabric.link_src[links[1:]]).all()
            assert (up[strands[links[1:-1] // 2 - where.gpus]] > 0).all()
            near = where.tiers.pod_of_leaf[where.leaf_of_gpu[gpus[[src[flow], dst[flow]]]]]
            assert len(links) == (4 if near[0] == near[1] else 6)


def job_on(where: Plant, gpus: np.ndarray) -> Allocation:
    leafs = tuple(where.leaf_of_gpu[gpus].tolist())
    return Allocation("a", tuple(gpus.tolist()), "shared", tuple(dict.fromkeys(leafs)), (), (), (0,) * len(gpus), leafs)


def reaches(where: Plant, alive: tuple[np.ndarray, np.ndarray], a: int, b: int) -> bool:
    """Is there a way up from one leaf and down to the other?"""
    low, high = alive[0] > 0, alive[1] > 0
    if where.tiers.pod_of_leaf[a] == where.tiers.pod_of_leaf[b]:
        return bool((low[a] & low[b]).any())
    return bool((high[low[a]].any(axis=0) & high[low[b]].any(axis=0)).any())


@pytest.mark.parametrize("seed", range(8))
def test_the_balanced_path_is_the_emptiest_of_all(seed):
    rng = np.random.default_rng(seed)
    where = odd_tiers(rng)
    load = rng.integers(0, 4, links_of(where)).astype(float)
    network = SwitchNetwork(where, where.cables, load.copy, 0)
    gpus = np.arange(where.gpus)
    job = job_on(where, gpus)
    leaf = where.leaf_of_gpu
    pairs = [
        (a, b)
        for a, b in combinations(range(where.gpus), 2)
        if where.tiers.pod_of_leaf[leaf[a]] != where.tiers.pod_of_leaf[leaf[b]]
    ]
    for a, b in pairs[:: max(1, len(pairs) // 12)]:
        (path,) = balanced(network, job, np.array([a]), np.array([b])).tolist()
        assert max(load[path]) == min(max(load[list(way)]) for way in every_way(where, int(leaf[a]), int(leaf[b])))


def every_way(where: Plant, a: int, b: int) -> list[tuple[int, ...]]:
    """All paths between leafs of two pods, cable by cable."""
    ways = []
    for one in np.flatnonzero(where.cables[a]):
        for core in np.flatnonzero(where.core_cables[one]):
            for two in np.flatnonzero(where.core_cables[:, core] * where.cables[b]):
                hops = (
                    (where.first_cable, where.cables, a, one, 0),
                    (where.first_core_cable, where.core_cables, one, core, 0),
                    (where.first_core_cable, where.core_cables, two, core, 1),
                    (where.first_cable, where.cables, b, two, 1),
                )
                choices = [
                    [2 * (first[low, high] + c) + down for c in range(count[low, high])]
                    for first, count, low, high, down in hops
                ]
                ways += [(p, q, r, s) for p in choices[0] for q in choices[1] for r in choices[2] for s in choices[3]]
    return ways


@pytest.mark.parametrize("seed", range(40))
def test_on_rails_search_and_program_find_what_trying_all_units_finds(seed):
    rng = np.random.default_rng(seed)
    units, rails, spines = int(rng.integers(2, 6)), 2, int(rng.integers(2, 5))
    cables = np.where(rng.random((units * rails, spines)) < 0.2, rng.integers(0, 3, (units * rails, spines)), 1)
    where = Plant("rails", rails, np.repeat(np.arange(units) * rails, 3), cables, rails=rails)
    state = Occupancy(where)
    state.drain(some_drained(rng, where, 0.3))
    leafs, share = int(rng.integers(2, units + 1)), int(rng.integers(1, 3))
    free = (state.cables_free > 0).reshape(units, rails, spines)
    able = [
        chosen
        for chosen in combinations(range(units), leafs)
        if all(state.idle_servers[unit] >= share for unit in chosen)
        and (free[list(chosen)].all(axis=0).sum(axis=1) >= share).all()
    ]
    ports = state.ports_of_leaf.reshape(units, rails).sum(axis=1)
    for answer in (search_leafs(state, leafs, share), decide_leafs(state, leafs, share, branch_budget=1000)):
        assert isinstance(answer, Found) == bool(able)
        if isinstance(answer, Found):
            assert answer.leafs in able
            assert ports[list(answer.leafs)].sum() == min(ports[list(chosen)].sum() for chosen in able)
