"""Schedules that reach the optimum: forests of trees with exact rates, on any fabric.

>>> from ropewalk.collective.optimum import network_of
>>> from ropewalk.fabric import Dgx
>>> forest = all_gather_forest(network_of(Dgx(4).build()))
>>> forest.check()
>>> forest.algbw / 10**9, len(forest.trees), forest.depth
(Fraction(800, 3), 32, 2)
"""

from ropewalk.collective.forest.fixed import fixed_forest
from ropewalk.collective.forest.forest import Branch, Forest, Tree
from ropewalk.collective.forest.symmetric import SymmetricForest
from ropewalk.collective.forest.synthesis import (
    AllReduceForest,
    all_gather_forest,
    all_reduce_forest,
    broadcast_forest,
    reduce_forest,
    reduce_scatter_forest,
)

__all__ = [
    "AllReduceForest",
    "Branch",
    "Forest",
    "SymmetricForest",
    "Tree",
    "all_gather_forest",
    "all_reduce_forest",
    "broadcast_forest",
    "fixed_forest",
    "reduce_forest",
    "reduce_scatter_forest",
]
