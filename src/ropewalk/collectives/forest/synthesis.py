"""Forests that reach the optimum: all-gather, reduce-scatter, broadcast, reduce and all-reduce on any network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from ropewalk.collectives.forest.centred import centred
from ropewalk.collectives.forest.demand import wiring_of
from ropewalk.collectives.forest.forest import Forest, check_loads, forest_of
from ropewalk.collectives.forest.growing import bundles_of
from ropewalk.collectives.forest.mixing import mixed_forest
from ropewalk.collectives.forest.symmetric import backwards
from ropewalk.collectives.optimum.certificate import Capacities, proved_capacities
from ropewalk.collectives.optimum.gather import largest_ratio
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.optima import all_reduce, one_root, reduce_scatter_then_all_gather
from ropewalk.collectives.optimum.rooted import narrowest_cut_from
from ropewalk.collectives.optimum.sharing import Sharing, best_sharing
from ropewalk.errors import ProgramError, ProofError

_WRITTEN_OUT_UP_TO = 128
"""Members up to which a symmetric forest is handed over with all its trees; beyond, trees are made when asked for."""


@dataclass(frozen=True, eq=False)
class AllReduceForest:
    """Trees that reduce to their roots and trees that spread from there, at the same time on the same links."""

    reducing: Forest
    spreading: Forest

    @property
    def network(self) -> Network:
        return self.spreading.network

    @property
    def algbw(self) -> Fraction:
        return self.spreading.algbw

    @property
    def depth(self) -> int:
        """Branches from the farthest leaf to a root and out again."""
        return self.reducing.depth + self.spreading.depth

    @property
    def tree_count(self) -> int:
        """Trees that reduce and trees that spread."""
        return self.reducing.tree_count + self.spreading.tree_count

    def check(self) -> None:
        """Prove both forests, that they share the links, and that every root spreads what it has reduced."""
        self.reducing.check()
        self.spreading.check()
        back = {(v, u): rate for (u, v), rate in self.reducing.arc_loads().items()}
        check_loads(self.spreading.network, [self.spreading.arc_loads(), back])
        if self.reducing.root_rates() != self.spreading.root_rates():
            raise ProofError("roots do not spread at the rate at which they reduce")


def all_gather_forest(network: Network) -> Forest:
    """Trees from every member in proportion to its shard.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Torus
    >>> forest = all_gather_forest(network_of(Torus((3, 3), bandwidth=1e9).build()))
    >>> forest.check()
    >>> forest.algbw
    Fraction(4500000000, 1)
    """
    if network.balanced:
        x = 1 / largest_ratio(network).value
        if network.symmetry is not None and (alike := mixed_forest(network, x)) is not None:
            return alike.written_out() if len(network.members) <= _WRITTEN_OUT_UP_TO else alike
        return _grown(network, [Fraction(c) for c in network.capacity], [weight * x for weight in network.weight])
    share = tuple(Fraction(weight, network.total_weight) for weight in network.weight)
    return _trimmed(network, share)


def reduce_scatter_forest(network: Network) -> Forest:
    """Trees towards every member in proportion to its shard: those of an all-gather backwards."""
    return (
        backwards(all_gather_forest(network)) if network.mirror is not None else all_gather_forest(network.reversed())
    )


def broadcast_forest(network: Network, root: int) -> Forest:
    """Trees from one member, which is a host of the group."""
    if root not in network.members:
        raise ProgramError(f"host {root} is not in the group: give the root as a host of the group")
    if network.balanced:
        rate = narrowest_cut_from(network, root).value
        rates = [rate if member == root else Fraction(0) for member in network.members]
        return _grown(network, [Fraction(c) for c in network.capacity], rates)
    return _trimmed(network, one_root(network, root))


def reduce_forest(network: Network, root: int) -> Forest:
    """Trees towards one member."""
    return broadcast_forest(network.reversed(), root)


def all_reduce_forest(network: Network) -> AllReduceForest:
    """Trees that reduce and trees that spread; where the two halves of an all-reduce are best, it is those at once."""
    if network.copying:
        raise ProgramError("trees are for switches that only forward: leave in-network multicast out")
    # The halves have roots everywhere and are shallower, so they are preferred wherever they are optimal.
    if reduce_scatter_then_all_gather(network).algbw == all_reduce(network).algbw:
        spreading = all_gather_forest(network)
        reducing = backwards(spreading) if network.mirror is not None else all_gather_forest(network.reversed())
        both = 1 / (1 / reducing.algbw + 1 / spreading.algbw)
        return AllReduceForest(reducing.scaled(both / reducing.algbw), spreading.scaled(both / spreading.algbw))
    mirrored = network.mirror is not None
    share = one_root(network, int(network.members[0])) if mirrored else None
    found = _proved(network, best_sharing(_any_host(network), share=share))
    spreading = _grown(network, list(found.spreading), list(found.roots))
    if mirrored:
        spreading = centred(spreading)
        return AllReduceForest(backwards(spreading), spreading)
    return AllReduceForest(_grown(network.reversed(), list(found.reducing), list(found.roots)), spreading)


def _trimmed(network: Network, share: tuple[Fraction, ...]) -> Forest:
    """A forest where some switch can receive more than it can send or less: within balanced capacities."""
    found = _proved(network, best_sharing(_any_host(network), share=share, reduces=False))
    return _grown(network, list(found.spreading), list(found.roots))


def _any_host(network: Network) -> Network:
    """The network without its symmetry: capacities are wanted arc by arc, with a root of our choice."""
    return replace(network, symmetry=None)


def _proved(network: Network, sharing: Sharing) -> Capacities:
    found = proved_capacities(sharing)
    if found is None:
        raise ProgramError(
            f"capacities on {network.fabric.name} are not simple fractions near the optimum, so trees cannot be "
            "counted: round the bandwidths to fewer digits, or use --method topoadopt"
        )
    return found


def _grown(network: Network, capacity: list[Fraction], rates: list[Fraction]) -> Forest:
    wiring = wiring_of(network, capacity, rates)
    return forest_of(network, *bundles_of(network, wiring))
