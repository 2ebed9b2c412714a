"""TopoAdopt: forests within a given distance of the optimum, by multiplicative weights, on any fabric.

Zhang, Wu and Li (INFOCOM 2021) synchronise gradients over trees rooted at different workers, which reduce and spread
different parts of them at the same time, and pack those trees near-optimally where bandwidths differ. Here columns
of the packing are trees over the members whose branches are ways through whatever forwards: a switch then sends
every byte as often as it receives it, and the cheapest column is shortest ways first, cheapest trees second. So the
theory of Garg and Koenemann holds as it stands on fabrics with switches, relays and limits of hosts.

With steps of size s, once all weights together have grown by the factor ((1 + s) m)^(1/s) for m arcs, what is packed
is at least 1 - 5/2 s of the least bound seen. Large steps come first, and the search ends where the proof is there.
The 5/2: the sum of weights of a packing of P under a least bound of B has grown by no more than exp(s P / B), or where
roots take turns exp(s (1 + s) P / B) and exp(s P / (1 - s) B); the weight of an arc that was filled f times has grown
by (1 + s)^f at least, and is below the sum. Taking logarithms, P over the fullest arc is at least
(1 - s)^2 (1 - s / 2) B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from ropewalk.collectives.forest import AllReduceForest, Forest
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.topoadopt.both_ways import BothWays
from ropewalk.collectives.topoadopt.certificate import least_bound
from ropewalk.collectives.topoadopt.pairs import Pairs
from ropewalk.collectives.topoadopt.problem import PackingProblem
from ropewalk.collectives.topoadopt.pruning import best_corner, few_trees
from ropewalk.collectives.topoadopt.record import F, TopoAdopt
from ropewalk.collectives.topoadopt.rounding import simplest_whole
from ropewalk.collectives.topoadopt.shares import Shares
from ropewalk.errors import PhysicsError, ProgramError

SMALLEST, LARGEST = 0.01, 0.5
"""Distances from the optimum that can be asked for; those who want less want the exact forest."""
_FIRST_STEP = 0.3
_STEP_OF_EPSILON = 0.36
"""Theory then loses 0.9 epsilon, and rounding rates may lose what is left."""


def topoadopt_forest(network: Network, epsilon: float = 0.05) -> TopoAdopt[AllReduceForest]:
    """An all-reduce that carries at least 1 - epsilon of what any can.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Torus
    >>> found = topoadopt_forest(network_of(Torus((3, 3), bandwidth=1e9).build()))
    >>> found.check()
    >>> found.algbw >= found.guarantee * found.bound
    True
    """
    return _packed(BothWays(network) if network.mirror is not None else Pairs(network), epsilon)


def topoadopt_all_gather(network: Network, epsilon: float = 0.05) -> TopoAdopt[Forest]:
    """Trees from every member in proportion to its shard."""
    return _packed(Shares(network, network.weight), epsilon)


def topoadopt_reduce_scatter(network: Network, epsilon: float = 0.05) -> TopoAdopt[Forest]:
    """Trees towards every member in proportion to its shard: those of an all-gather backwards."""
    return topoadopt_all_gather(network.reversed(), epsilon)


def topoadopt_broadcast(network: Network, root: int, epsilon: float = 0.05) -> TopoAdopt[Forest]:
    """Trees from one member, which is a host of the group."""
    if root not in network.members:
        raise ProgramError(f"host {root} is not in the group: give the root as a host of the group")
    return _packed(Shares(network, tuple(int(member == root) for member in network.members)), epsilon)


def topoadopt_reduce(network: Network, root: int, epsilon: float = 0.05) -> TopoAdopt[Forest]:
    """Trees towards one member."""
    return topoadopt_broadcast(network.reversed(), root, epsilon)


def _packed(problem: PackingProblem[F], epsilon: float) -> TopoAdopt[F]:
    if not SMALLEST <= epsilon <= LARGEST:
        raise ProgramError(
            f"a distance of {epsilon:g} from the optimum is out of range: give {SMALLEST:g} to {LARGEST:g}, or "
            "build the exact forest"
        )
    if problem.network.copying:
        raise ProgramError("trees are for switches that only forward: leave in-network multicast out")
    guarantee = 1 - Fraction(repr(epsilon))
    iterations = 0
    for step in _steps(epsilon):
        growth = math.log((1 + step) * problem.network.arcs) / step
        search = problem.search(step, 1 - epsilon / 10, growth)
        iterations += search.trees
        corner, rate = best_corner(problem, search.rate)
        for pruned in (few_trees(problem, corner, rate), rate):
            counts, unit = simplest_whole(problem, pruned, corner.total * corner.unit, epsilon / 20)
            achieved = problem.total(counts) * unit
            bound = least_bound(problem, (corner.price, search.price), achieved)
            if achieved >= guarantee * bound:
                return TopoAdopt(
                    forest=problem.forest(counts, unit),
                    bound=bound,
                    guarantee=guarantee,
                    chunks=problem.total(counts) // math.gcd(*counts.tolist()),
                    iterations=iterations,
                    trees_found=len(rate),
                )
    raise PhysicsError(
        f"trees on {problem.network.fabric.name}: no proof was found within the steps guaranteed by theory"
    )


def _steps(epsilon: float) -> Iterator[float]:
    """Sizes of steps, the last small enough for the guarantee."""
    last = _STEP_OF_EPSILON * epsilon
    step = _FIRST_STEP
    while step > last:
        yield step
        step /= 3
    yield last
