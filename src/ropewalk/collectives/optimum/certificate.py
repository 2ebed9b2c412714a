"""Turn the floating-point answer of a linear program into a proved fraction.

From above: any weights on cuts and any prices at switches give a bound, because x(S) <= g(out of S) may be added up
with weights, and what switches receive and send may be priced, whatever the weights and prices are. They come from
the linear program's dual, rounded to nearby fractions. From below: the capacities of the solution, rounded to nearby
fractions, are checked as they are: within the links, balanced at switches, and by maximum flows in whole numbers. When
both sides meet, the fraction is the optimum, and no tolerance was involved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropewalk.collectives.optimum.rational import DENOMINATORS, common_unit, nearby
from ropewalk.collectives.optimum.sharing import Sharing


@dataclass(frozen=True)
class Capacities:
    """What every arc gives to spreading and to reducing, and how much has its root where; all in units of capacity."""

    rate: Fraction
    roots: tuple[Fraction, ...]
    spreading: tuple[Fraction, ...]
    reducing: tuple[Fraction, ...]


def proved(sharing: Sharing) -> Fraction | None:
    """The optimum in units of capacity; None where no fraction near the solution can be proved."""
    found = proved_capacities(sharing)
    return None if found is None else found.rate


def proved_capacities(sharing: Sharing) -> Capacities | None:
    """Exact capacities that reach the optimum; None where no fractions near the solution can be proved."""
    bound = least_bound(sharing)
    # Parts of the largest link are simple where links are alike; where they are of very different speeds, multiples of
    # the common unit of all of them are.
    found = (reached(sharing, size, step) for step in (max(sharing.network.capacity), 1) for size in DENOMINATORS)
    return next((capacities for capacities in found if capacities is not None and capacities.rate == bound), None)


def least_bound(sharing: Sharing) -> Fraction | None:
    """The best of the bounds that rounding the dual to various denominators gives, or None."""
    bounds = [bound for size in DENOMINATORS if (bound := upper_bound(sharing, size)) is not None]
    return min(bounds, default=None)


def upper_bound(sharing: Sharing, denominator: int) -> Fraction | None:
    """No schedule has more than this; None where the rounded weights say nothing."""
    spread = nearby(sharing.spreading_price, denominator)
    reduce = nearby(sharing.reducing_price, denominator)
    return _bound(sharing, cut_weights(sharing, denominator), spread, reduce)


def cut_weights(sharing: Sharing, denominator: int) -> list[Fraction]:
    """The weights of the cuts, as fractions."""
    return nearby(np.maximum(sharing.cut_price, 0), denominator)


def _bound(
    sharing: Sharing, weights: list[Fraction], spread_price: list[Fraction], reduce_price: list[Fraction]
) -> Fraction | None:
    """X times the least weight of cuts around a root <= sum over arcs of c times the larger price of its two uses."""
    network = sharing.network
    zero = Fraction(0)
    spread = [zero] * network.arcs
    reduce = [zero] * network.arcs
    around = [zero] * len(network.members)
    for (spreading, inside), weight in zip(sharing.cuts, weights, strict=True):
        if weight == 0:
            continue
        starts, ends = inside[network.tail], inside[network.head]
        prices = spread if spreading else reduce
        for crossing in np.flatnonzero(starts & ~ends if spreading else ~starts & ends):
            prices[crossing] += weight
        for root in np.flatnonzero(inside[network.members]):
            around[root] += weight
    for prices, at in ((spread, spread_price), (reduce, reduce_price)):
        for arc, (tail, head) in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True)):
            prices[arc] += at[tail] - at[head]
    if sharing.mirrored:
        assert network.mirror is not None
        reduce = [spread[arc] for arc in network.mirror]
    if network.symmetry is not None:
        spread, reduce, around = _means(sharing, spread), _means(sharing, reduce), [sum(around, zero) / len(around)]
    used = [prices for prices, wanted in ((spread, sharing.spreads), (reduce, sharing.reduces)) if wanted]
    dear = [max(zero, *prices) if len(prices) > 1 else max(zero, prices[0]) for prices in zip(*used, strict=True)]
    total = sum((cost * capacity for cost, capacity in zip(dear, network.capacity, strict=True)), zero)
    if sharing.mirrored:
        total /= 2  # an arc and its mirror image share one capacity between the two uses of the same variable
    least = min(around) if sharing.share is None or network.symmetry is not None else _mean(sharing.share, around)
    return total / least if least > 0 else None


def _mean(share: tuple[Fraction, ...], around: list[Fraction]) -> Fraction:
    return sum((part * weight for part, weight in zip(share, around, strict=True)), Fraction(0))


def _means(sharing: Sharing, prices: list[Fraction]) -> list[Fraction]:
    """Prices averaged over arcs that are alike: the bound of all shifted images of the cuts together."""
    classes = sharing.network.arc_class
    total: dict[int, Fraction] = {}
    for arc, price in zip(classes.tolist(), prices, strict=True):
        total[arc] = total.get(arc, Fraction(0)) + price
    size = np.bincount(classes)
    return [total[arc] / int(size[arc]) for arc in classes.tolist()]


def reached(sharing: Sharing, denominator: int, step: int) -> Capacities | None:
    """What capacities near the solution's, in fractions of a step, achieve, checked exactly; None if a rule breaks."""
    network = sharing.network
    spreading = [value * step for value in nearby(sharing.spreading / step, denominator)]
    reducing = [value * step for value in nearby(sharing.reducing / step, denominator)]
    if any(g + h > c for g, h, c in zip(spreading, reducing, network.capacity, strict=True)):
        return None
    if sharing.share is None:
        roots = [value * step for value in nearby(sharing.root / step, denominator)]
    else:
        rate = Fraction(sharing.rate / step).limit_denominator(denominator) * step
        roots = [part * rate for part in sharing.share]
    rate = sum(roots, Fraction(0))
    for one_way, wanted, values in (
        (network, sharing.spreads, spreading),
        (network.reversed(), sharing.reduces, reducing),
    ):
        if not wanted:
            continue
        surplus = [Fraction(0)] * network.vertices
        for tail, head, value in zip(network.tail.tolist(), network.head.tolist(), values, strict=True):
            surplus[tail] -= value
            surplus[head] += value
        if any(surplus[vertex] != 0 for vertex in network.forwarders):
            return None
        unit = common_unit([*values, *roots])
        if unit == 0:
            return None
        capacity = [int(value / unit) for value in (*values, *roots)]
        need = math.floor(rate / unit)
        if one_way.flow_network.first_shortfall(capacity, network.vertices, network.sinks, need) is not None:
            return None
    return Capacities(rate, tuple(roots), tuple(spreading), tuple(reducing))
