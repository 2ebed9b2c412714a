"""Forests near the optimum by multiplicative weights, each with the proof of how near it is.

>>> from ropewalk.collectives.optimum import network_of
>>> from ropewalk.fabric import Mesh
>>> found = topoadopt_forest(network_of(Mesh((3, 3), bandwidth=1e9).build()))
>>> found.check()
>>> found.proved_ratio >= found.guarantee
True
"""

from ropewalk.collectives.topoadopt.adopting import (
    topoadopt_all_gather,
    topoadopt_broadcast,
    topoadopt_forest,
    topoadopt_reduce,
    topoadopt_reduce_scatter,
)
from ropewalk.collectives.topoadopt.record import TopoAdopt

__all__ = [
    "TopoAdopt",
    "topoadopt_all_gather",
    "topoadopt_broadcast",
    "topoadopt_forest",
    "topoadopt_reduce",
    "topoadopt_reduce_scatter",
]
