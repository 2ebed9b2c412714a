"""Forests on the fabrics with independently known optima: trees that carry exactly the known fraction."""

from __future__ import annotations

from fractions import Fraction

import pytest
from optimum_worlds import known_fabric, known_fabrics

from ropewalk.collective.forest import all_gather_forest, all_reduce_forest
from ropewalk.collective.optimum import network_of

MOST_MEMBERS = 100
SLOW = {"mi250x4x16"}
"""Takes seconds to pack; its optimum is tested without its trees."""

KNOWN = [known for known in known_fabrics() if len(known["compute"]) <= MOST_MEMBERS and known["name"] not in SLOW]


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN])
def test_the_trees_of_an_all_gather_carry_the_known_fraction(known):
    forest = all_gather_forest(network_of(known_fabric(known)))
    forest.check()
    assert forest.algbw == Fraction(known["expected"]["allgather"])
    assert set(forest.root_rates().values()) == {1 / Fraction(known["expected"]["allgather_inverse_rate"])}


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN if "allreduce" in k["expected"]])
def test_the_trees_of_an_all_reduce_carry_the_known_fraction(known):
    forest = all_reduce_forest(network_of(known_fabric(known)))
    forest.check()
    assert forest.algbw == Fraction(known["expected"]["allreduce"])
