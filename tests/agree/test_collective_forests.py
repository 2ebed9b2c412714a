"""Forests on the fabrics with independently known optima: trees that carry exactly the known fraction."""

from __future__ import annotations

from fractions import Fraction

import pytest
from optimum_worlds import known_fabric, known_fabrics

from ropewalk.collectives.forest import all_gather_forest, all_reduce_forest
from ropewalk.collectives.optimum import network_of

MOST_MEMBERS = 128

KNOWN = [known for known in known_fabrics() if len(known["compute"]) <= MOST_MEMBERS]

DEPTHS = {
    "dgx_a100_2box": 2, "dgx_a100_4box": 2, "dgx_a100_16box": 2, "dgx_h100_2box": 2, "mixed_a100_h100_2box": 2,
    "torus3x3": 2, "torus4x4": 4, "torus4x4x4": 6, "mesh4x4": 6, "hypercube4": 4, "ring8": 4, "bcube(2,1)": 2,
    "tacos_mesh10x10": 18, "tacos_mesh7x12": 17, "clos_2x8_host50_up100": 2, "dragonfly(a=4,p=2,h=2)": 1,
    "gb200_nvl72_1rack": 1, "mi300x_8": 1, "dgx1p": 2, "kautz(2,3)": 5, "mi250x1x16": 10,
}  # fmt: skip
"""Hops that are enough: the diameter on grids, one through a wide core, two over rails; else what packing finds."""


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN])
def test_the_trees_of_an_all_gather_carry_the_known_fraction(known):
    forest = all_gather_forest(network_of(known_fabric(known)))
    forest.check()
    assert forest.algbw == Fraction(known["expected"]["allgather"])
    assert set(forest.root_rates().values()) == {1 / Fraction(known["expected"]["allgather_inverse_rate"])}
    assert forest.depth <= DEPTHS.get(known["name"], forest.depth)


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN if "allreduce" in k["expected"]])
def test_the_trees_of_an_all_reduce_carry_the_known_fraction(known):
    forest = all_reduce_forest(network_of(known_fabric(known)))
    forest.check()
    assert forest.algbw == Fraction(known["expected"]["allreduce"])
