"""Placements of schedulers against their public test cases and documented examples.

Kueue: `pkg/cache/scheduler/tas_cache_test.go` and KEP 2724 (commit ff69552); Volcano:
`pkg/scheduler/plugins/network-topology-aware/network_topology_aware_test.go` (commit ed72c7c); Slurm: the topology
guide and `src/plugins/topology/tree/eval_nodes_tree.c` (commit 284c3b9). Inputs and outputs are typed anew.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.tenancy.placements.kueue import best_fit, least_free
from ropewalk.tenancy.placements.levels import Levels
from ropewalk.tenancy.placements.slurm_tree import tree_best_fit
from ropewalk.tenancy.placements.volcano import bin_packing_score

BLOCK, RACK, HOST = range(3)


def world(**hosts: int) -> tuple[Levels, np.ndarray, list[str]]:
    """`b1_r1_x3=2`: a host with room for two pods in rack r1 of block b1. Domains are numbered by their names."""
    paths = sorted(tuple(name.split("_")) for name in hosts)
    blocks, racks = sorted({path[:1] for path in paths}), sorted({path[:2] for path in paths})
    of_server = np.array([[blocks.index(path[:1]) for path in paths], [racks.index(path[:2]) for path in paths]])
    return Levels(of_server), np.array([hosts["_".join(path)] for path in paths]), ["_".join(path) for path in paths]


DEFAULT = {"b1_r1_x3": 1, "b1_r2_x5": 1, "b1_r2_x1": 1, "b1_r2_x6": 1, "b2_r1_x2": 1, "b2_r2_x4": 2}
RACKS_FIRST = {"b1_r1_x3": 2, "b1_r2_x5": 2, "b1_r3_x1": 1, "b1_r3_x6": 1, "b1_r3_x2": 1, "b1_r3_x4": 1}
ONE_RACK = {"b1_r1_x3": 2, "b1_r1_x5": 1, "b1_r1_x1": 1}
SCATTERED = {"b1_r1_x3": 4, "b1_r1_x5": 1, "b1_r1_x1": 1, "b2_r1_x6": 2, "b2_r1_x2": 1}
THREE_BLOCKS = {"b1_r1_x1": 2, "b2_r1_x1": 1, "b3_r1_x1": 4}


@pytest.mark.parametrize(
    ("hosts", "pods", "level", "required", "expected"),
    [
        (RACKS_FIRST, 4, BLOCK, True, {"b1_r3_x1": 1, "b1_r3_x2": 1, "b1_r3_x4": 1, "b1_r3_x6": 1}),
        (ONE_RACK, 2, BLOCK, True, {"b1_r1_x3": 2}),
        (DEFAULT, 1, HOST, True, {"b1_r1_x3": 1}),
        (DEFAULT, 1, RACK, True, {"b1_r1_x3": 1}),
        (DEFAULT, 3, RACK, True, {"b1_r2_x1": 1, "b1_r2_x5": 1, "b1_r2_x6": 1}),
        (DEFAULT, 2, RACK, True, {"b2_r2_x4": 2}),
        (DEFAULT, 4, RACK, True, None),
        (DEFAULT, 1, BLOCK, True, {"b2_r1_x2": 1}),
        (DEFAULT, 4, BLOCK, True, {"b1_r1_x3": 1, "b1_r2_x1": 1, "b1_r2_x5": 1, "b1_r2_x6": 1}),
        (DEFAULT, 5, BLOCK, True, None),
        (DEFAULT, 4, RACK, False, {"b1_r1_x3": 1, "b1_r2_x1": 1, "b1_r2_x5": 1, "b1_r2_x6": 1}),
        (DEFAULT, 6, RACK, False, {"b1_r1_x3": 1, "b1_r2_x1": 1, "b1_r2_x5": 1, "b1_r2_x6": 1, "b2_r2_x4": 2}),
        (DEFAULT, 6, BLOCK, False, {"b1_r1_x3": 1, "b1_r2_x1": 1, "b1_r2_x5": 1, "b1_r2_x6": 1, "b2_r2_x4": 2}),
        (DEFAULT, 10, BLOCK, False, None),
        (THREE_BLOCKS, 5, BLOCK, False, {"b2_r1_x1": 1, "b3_r1_x1": 4}),
    ],
)
def test_kueue_best_fit(
    hosts: dict[str, int], pods: int, level: int, required: bool, expected: dict[str, int] | None
) -> None:
    levels, room, names = world(**hosts)
    found = best_fit(levels, room, pods, level, required=required)
    assert (None if found is None else {names[at]: int(found[at]) for at in np.flatnonzero(found)}) == expected


@pytest.mark.parametrize(
    ("hosts", "pods", "expected"),
    [
        (SCATTERED, 6, {"b1_r1_x1": 1, "b1_r1_x3": 1, "b1_r1_x5": 1, "b2_r1_x2": 1, "b2_r1_x6": 2}),
        (DEFAULT, 1, {"b1_r1_x3": 1}),
    ],
)
def test_kueue_least_free_capacity(hosts: dict[str, int], pods: int, expected: dict[str, int]) -> None:
    _, room, names = world(**hosts)
    found = least_free(room, pods)
    assert {names[at]: int(found[at]) for at in np.flatnonzero(found)} == expected


def test_the_example_of_the_kueue_proposal() -> None:
    """Four nodes with room for 3, 3, 2 and 1 pods, and a job of 7."""
    rack = Levels(np.zeros((1, 4), np.int64))
    assert best_fit(rack, np.array([3, 3, 2, 1]), 7, 0).tolist() == [3, 3, 0, 1]
    assert least_free(np.array([3, 3, 2, 1]), 7).tolist() == [3, 1, 2, 1]


@pytest.mark.parametrize(
    ("resources", "wanted", "weights", "scale", "expected"),
    [
        ({"s0": (24, 48), "s1": (12, 16), "s2": (12, 32), "s3": (4, 8), "s4": (8, 8), "s5": (4, 16), "s6": (8, 16)},
         {"cpu": 8, "memory": 8}, {"cpu": 1, "memory": 1}, 100,
         {"s0": 25.0, "s1": 58.3, "s2": 45.8, "s3": 0.0, "s4": 100.0, "s5": 0.0, "s6": 75.0}),
        ({"s0": (24, 48, 48), "s1": (12, 16, 16), "s2": (12, 32, 32), "s3": (4, 8, 8), "s4": (8, 8, 8),
          "s5": (4, 16, 16), "s6": (8, 16, 16)},
         {"cpu": 8, "memory": 8, "foo": 16}, {"cpu": 3, "memory": 4, "foo": 3}, 1000,
         {"s0": 266.7, "s1": 700.0, "s2": 450.0, "s3": 0.0, "s4": 0.0, "s5": 0.0, "s6": 800.0}),
    ],
)  # fmt: skip
def test_volcano_scores_of_hypernodes(
    resources: dict[str, tuple[int, ...]],
    wanted: dict[str, float],
    weights: dict[str, int],
    scale: int,
    expected: dict[str, float],
) -> None:
    for name, amounts in resources.items():
        has = dict(zip(("cpu", "memory", "foo"), map(float, amounts), strict=False))
        assert scale * bin_packing_score({}, has, wanted, weights) == pytest.approx(expected[name], abs=0.05)


def test_slurm_takes_the_tightest_leaf_that_holds_the_job() -> None:
    three = Levels(np.repeat([[0, 1, 2]], 4, axis=1).reshape(1, -1))
    idle = np.array([1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1])
    assert [tree_best_fit(three, idle, nodes).tolist() for nodes in (1, 2, 3, 4, 5, 7, 9)] == [
        [0], [0], [1], [2], [2, 0], [2, 1], [2, 1, 0],
    ]  # fmt: skip


def test_slurm_stays_below_one_switch_of_a_higher_level_where_that_holds_the_job() -> None:
    """Two pods of two leafs; the leaf with most idle nodes is in the pod that is too small for the job."""
    pods = Levels(np.array([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 2, 2, 3, 3]]))
    idle = np.array([1, 1, 1, 0, 1, 1, 1, 1])
    assert tree_best_fit(pods, idle, 4).tolist() == [2, 3]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
def test_slurm_takes_as_few_leafs_as_any_choice_could(sizes: list[int], data: st.DataObject) -> None:
    total = sum(sizes)
    if not total:
        return
    nodes = data.draw(st.integers(1, total))
    levels = Levels(np.repeat(np.arange(len(sizes)), np.maximum(sizes, 1))[None])
    idle = np.concatenate([np.ones(size, int) if size else np.zeros(1, int) for size in sizes])
    found = tree_best_fit(levels, idle, nodes).tolist()
    assert sum(sizes[leaf] for leaf in found) >= nodes
    fewest = next(
        count for count in range(1, len(sizes) + 1)
        if any(sum(chosen) >= nodes for chosen in combinations(sizes, count))
    )  # fmt: skip
    assert len(found) == fewest
    if fewest == 1:
        assert sizes[found[0]] == min(size for size in sizes if size >= nodes)
