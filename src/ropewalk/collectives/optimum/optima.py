"""The best possible bandwidth of every collective on a network, with the reason why there is no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.collectives.optimum.certificate import cut_weights, least_bound, proved
from ropewalk.collectives.optimum.concurrent import largest_concurrent_flow, proved_rate
from ropewalk.collectives.optimum.gather import largest_ratio
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import DENOMINATORS
from ropewalk.collectives.optimum.record import Cut, Optimum, cut_around
from ropewalk.collectives.optimum.rooted import narrowest_cut_from
from ropewalk.collectives.optimum.sharing import Sharing, best_sharing
from ropewalk.collectives.optimum.strength import strength
from ropewalk.errors import ProgramError

BY_CUTS = "narrowest cut by maximum flows"
BOUND_BY_CUTS = "narrowest cut; reached where multicast trees pack, otherwise only a bound"
BY_SHARING = "linear program over capacities, checked in fractions"
BY_SHARING_ROUNDED = "linear program over capacities, in floating point"
BY_HALVES = "reduce-scatter and all-gather, proved optimal by a linear program over capacities"
BY_STRENGTH = "strength of the graph by maximum flows"
BY_CONCURRENT_FLOW = "largest concurrent flow, checked in fractions"
BY_CONCURRENT_FLOW_ROUNDED = "largest concurrent flow, in floating point"


def all_gather(network: Network) -> Optimum:
    """Every member ends with the shards of all.

    >>> from ropewalk.collectives.optimum.modelling import network_of
    >>> from ropewalk.fabric import Dgx
    >>> float(all_gather(network_of(Dgx(2).build())).algbw) / 1e9
    346.6666666666667
    """
    return _gathered(network, "all-gather")


def reduce_scatter(network: Network) -> Optimum:
    """Every member ends with its shard of the sum: an all-gather backwards."""
    return _gathered(network.reversed(), "reduce-scatter")


def broadcast(network: Network, root: int) -> Optimum:
    """Every member ends with what the root has."""
    return _rooted(network, root, "broadcast")


def reduce(network: Network, root: int) -> Optimum:
    """The root ends with the sum of what all members have: a broadcast backwards."""
    return _rooted(network.reversed(), root, "reduce")


def all_reduce(network: Network) -> Optimum:
    """Every member ends with the sum of what all members have; each byte may take its root where that helps most."""
    if network.is_member.all() and network.mirror is not None and network.symmetry is None:
        return _by_strength(network)
    if network.copying and not network.is_member.all():
        bound = _shared(best_sharing(network, share=_roots(network)), "all-reduce")
        return replace(bound, method=BOUND_BY_CUTS, exact=False)
    halves = reduce_scatter_then_all_gather(network)
    if halves.exact:
        # Often the two halves are already optimal; then a bound that meets them settles it, and no cut more is needed.
        known = halves.algbw / network.unit
        sharing = best_sharing(network, share=_roots(network), enough=float(known))
        if least_bound(sharing) == known:
            return replace(halves, method=BY_HALVES, cuts=_weighted_cuts(sharing))
    return _shared(best_sharing(network, share=_roots(network)), "all-reduce")


def reduce_scatter_then_all_gather(network: Network) -> Optimum:
    """An all-reduce in two halves, one after the other, as most libraries run it."""
    parts = (reduce_scatter(network), all_gather(network))
    seconds = parts[0].seconds_per_byte + parts[1].seconds_per_byte
    slower = max(parts, key=lambda part: part.seconds_per_byte)
    return replace(slower, collective="all-reduce", algbw=1 / seconds, exact=all(part.exact for part in parts))


def all_to_all(network: Network) -> Optimum:
    """Every member sends as much to every other one, each pair something else."""
    if not network.equal_shards:
        raise ProgramError("an all-to-all of unequal shards has no single bandwidth: leave the shards out")
    found = largest_concurrent_flow(network)
    rate = proved_rate(network, found)
    members = len(network.members)
    cut = _cut_between_pairs(network, found.price, rate if rate is not None else found.rate)
    if rate is None:
        algbw: Fraction | float = members * found.rate * float(network.unit)
    else:
        algbw = network.bandwidth(members * rate)
    method = BY_CONCURRENT_FLOW if rate is not None else BY_CONCURRENT_FLOW_ROUNDED
    return Optimum("all-to-all", algbw, cut, method, exact=rate is not None)


OPTIMA: Mapping[str, Callable[[Network], Optimum]] = {
    "allgather": all_gather,
    "reducescatter": reduce_scatter,
    "allreduce": all_reduce,
    "alltoall": all_to_all,
}
"""Collectives without a root by name."""

ROOTED_OPTIMA: Mapping[str, Callable[[Network, int], Optimum]] = {"broadcast": broadcast, "reduce": reduce}
"""Collectives with a root, which is a host, by name."""


def _gathered(network: Network, collective: str) -> Optimum:
    ratio = largest_ratio(network)
    algbw = network.bandwidth(network.total_weight / ratio.value)
    cut = cut_around(network, ratio.inside)
    if network.balanced:
        return Optimum(collective, algbw, cut, BY_CUTS, exact=True)
    if network.copying:
        return Optimum(collective, algbw, cut, BOUND_BY_CUTS, exact=False)
    share = tuple(Fraction(weight, network.total_weight) for weight in network.weight)
    found = _shared(best_sharing(network, share=share, reduces=False), collective)
    return replace(found, bottleneck=cut) if found.algbw == algbw else found


def _rooted(network: Network, root: int, collective: str) -> Optimum:
    if root not in network.members:
        raise ProgramError(f"{collective}: host {root} is not in the group: give the root as a host of the group")
    narrowest = narrowest_cut_from(network, root)
    algbw = network.bandwidth(narrowest.value)
    cut = cut_around(network, narrowest.inside)
    if network.balanced:
        return Optimum(collective, algbw, cut, BY_CUTS, exact=True)
    if network.copying:
        return Optimum(collective, algbw, cut, BOUND_BY_CUTS, exact=False)
    # What breaks the symmetry is the root.
    alone = replace(network, symmetry=None)
    found = _shared(best_sharing(alone, share=one_root(network, root), reduces=False), collective)
    return replace(found, bottleneck=cut) if found.algbw == algbw else found


def _roots(network: Network) -> tuple[Fraction, ...] | None:
    """Roots of an all-reduce: all alike, the first member alone, or free where neither is without loss."""
    members = len(network.members)
    if network.symmetry is not None:
        return (Fraction(1, members),) * members
    if network.mirror is not None and not network.copying:
        return one_root(network, int(network.members[0]))
    return None


def one_root(network: Network, root: int) -> tuple[Fraction, ...]:
    """The share of bytes that has each member as its root when all have the same."""
    return tuple(Fraction(int(member == root)) for member in network.members)


def _shared(sharing: Sharing, collective: str) -> Optimum:
    network = sharing.network
    value = proved(sharing)
    cuts = _weighted_cuts(sharing)
    if value is None:
        algbw = sharing.rate * float(network.unit)
        return Optimum(collective, algbw, None, BY_SHARING_ROUNDED, exact=False, cuts=cuts)
    algbw_exact = network.bandwidth(value)
    alone = next((cut for cut, _ in cuts if sharing.spreads and sharing.reduces and cut.capacity == algbw_exact), None)
    return Optimum(collective, algbw_exact, alone, BY_SHARING, exact=True, cuts=cuts)


def _weighted_cuts(sharing: Sharing) -> tuple[tuple[Cut, Fraction], ...]:
    network = sharing.network
    return tuple(
        (cut_around(network if spreading else network.reversed(), inside), weight)
        for (spreading, inside), weight in zip(sharing.cuts, cut_weights(sharing, DENOMINATORS[0]), strict=True)
        if weight > 0
    )


def _by_strength(network: Network) -> Optimum:
    found = strength(network)
    parts = int(found.part.max()) + 1
    around = [cut_around(network, found.part == part) for part in range(parts)]
    algbw = network.bandwidth(found.value)
    cuts = tuple((cut, Fraction(1, 2 * (parts - 1))) for cut in around)
    return Optimum("all-reduce", algbw, around[0] if parts == 2 else None, BY_STRENGTH, exact=True, cuts=cuts)


def _cut_between_pairs(network: Network, price: Floats, rate: Fraction | float) -> Cut | None:
    """The one cut that limits all pairs across it, if the links with a price are one."""
    free = price <= 1e-9 * price.max()
    for start in network.members.tolist():
        inside = np.zeros(network.vertices, np.bool_)
        inside[start] = True
        while True:
            reached = inside.copy()
            reached[network.head[free & inside[network.tail]]] = True
            if (reached == inside).all():
                break
            inside = reached
        within = int(inside[network.members].sum())
        pairs = within * (len(network.members) - within)
        if pairs and abs(network.capacity_of(network.leaving(inside)) / pairs / float(rate) - 1) < 1e-9:
            return cut_around(network, inside)
    return None
