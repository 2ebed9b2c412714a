"""Schedules that reach the optimum: forests of trees with exact rates, on any fabric.

>>> from ropewalk.collectives.optimum import network_of
>>> from ropewalk.fabric import Dgx
>>> forest = all_gather_forest(network_of(Dgx(4).build()))
>>> forest.check()
>>> forest.algbw / 10**9, len(forest.trees), forest.depth
(Fraction(800, 3), 32, 2)
"""

from ropewalk.collectives.forest.fixed import fixed_forest
from ropewalk.collectives.forest.forest import Branch, Forest, Tree
from ropewalk.collectives.forest.symmetric import SymmetricForest
from ropewalk.collectives.forest.synthesis import (
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
