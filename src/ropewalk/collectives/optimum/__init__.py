"""The best that any schedule could do: optima of collectives on any fabric, exact, with the cut that limits them.

>>> from ropewalk.fabric import Mesh
>>> network = network_of(Mesh((4, 4), bandwidth=1e9).build())
>>> all_gather(network).algbw, all_reduce(network).algbw
(Fraction(6400000000, 3), Fraction(1600000000, 1))
"""

from ropewalk.collectives.optimum.modelling import network_of
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.optima import (
    OPTIMA,
    ROOTED_OPTIMA,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    reduce,
    reduce_scatter,
    reduce_scatter_then_all_gather,
)
from ropewalk.collectives.optimum.record import Cut, Optimum

__all__ = [
    "OPTIMA",
    "ROOTED_OPTIMA",
    "Cut",
    "Network",
    "Optimum",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "network_of",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_then_all_gather",
]
