"""Routes that look alike from every host: those of one sender stand for all.

Translations carry the fabric onto itself, so they carry the routes of host 0 onto routes of any other host. Where the
router gives each host just these (dimension order on a torus or BCube, D-mod-K where it spreads a switch evenly), the
N-1 routes of host 0 say everything that the N(N-1) routes of all pairs would: pair (s, d) crosses the links of pair
(0, d - s), moved by s. A hash of the pair, or a tie that goes to the lowest link id, tells hosts apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.fabric import Fabric
from ropewalk.fabric.translation import Translations, translations
from ropewalk.ragged import ranges
from ropewalk.routing.routes import Router, Routes

CHECKED_WHOLE = 1 << 20
"""Pairs up to which the router is asked for every one of them."""

CHECKED_PER_HOST = 4
"""Destinations that every single host is asked for beyond that."""

PROBED = 16
"""Destinations that are tried first, about."""

HOPS_AT_ONCE = 1 << 22
"""Hops of the routes that are compared together, about: bounds the memory of a check."""

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class OneSender:
    """The routes of host 0 to all others, and the translations that make those of every other host from them."""

    translations: Translations
    routes: Routes

    @property
    def fabric(self) -> Fabric:
        return self.routes.fabric

    @cached_property
    def kind_size(self) -> Ints:
        """How many links there are of each kind."""
        return np.bincount(self.translations.kind, minlength=self.translations.kinds)

    def usage_of_kinds(self) -> tuple[Ints, NDArray[np.int32], NDArray[np.float64]]:
        """CSR by destination: what one link of each kind carries when every host sends 1 by the same translation.

        Together the hosts cross the links of a kind N times as often as host 0 does, and each of them equally often:
        translations take any link of the kind to any other.
        """
        start, link, share = self.routes.usage()
        kinds = self.translations.kinds
        pair = np.repeat(np.arange(self.routes.pairs), np.diff(start))
        keys, inverse = np.unique(pair * kinds + self.translations.kind[link], return_inverse=True)
        kind = keys % kinds
        crossed = np.bincount(inverse, share, len(keys)).astype(np.float64)
        begin = np.searchsorted(keys, np.arange(self.routes.pairs + 1) * kinds).astype(np.int64)
        return begin, kind.astype(np.int32), crossed * self.fabric.hosts / self.kind_size[kind]

    def link_bytes(self, size_bytes: float) -> NDArray[np.float64]:
        """Bytes on every link when every host sends `size_bytes` to every other."""
        _, kind, crossed = self.usage_of_kinds()
        per_kind = np.bincount(kind, crossed, self.translations.kinds) * size_bytes
        return np.asarray(per_kind[self.translations.kind], np.float64)


def one_sender(fabric: Fabric, router: Router) -> OneSender | None:
    """The routes of host 0, where the translations of the fabric make the router's other routes from them; else None.

    The translations are proved. That the router follows them is checked for all pairs where these are few, so that it
    is proved too; beyond that for all destinations of the neighbours of host 0 along every digit, and for some
    destinations of every host.

    >>> from ropewalk.fabric import Torus
    >>> from ropewalk.routing import dimension, ecmp
    >>> torus = Torus((4, 4)).build()
    >>> one_sender(torus, dimension()).routes.pairs
    15
    >>> one_sender(torus, ecmp(seed=1)) is None
    True
    """
    moves = translations(fabric)
    if moves is None:
        return None
    others = np.arange(1, fabric.hosts)
    # A few destinations give most routers away that tell hosts apart, before all of them are routed.
    few = others[:: -(-len(others) // PROBED)]
    if not _all_follow(_sender(moves, router, few), router, _from_neighbours(moves, few)):
        return None
    sender = _sender(moves, router, others)
    return sender if _all_follow(sender, router, _pairs_to_check(moves, others)) else None


def _sender(moves: Translations, router: Router, others: Ints) -> OneSender:
    return OneSender(moves, router(moves.fabric, np.zeros(len(others), np.int32), others.astype(np.int32)))


Pairs = tuple[Ints, Ints]
"""Source hosts, and for each the destination that host 0 has in its place: `apart` if the pair is (s, s + apart)."""


def _from_neighbours(moves: Translations, others: Ints) -> Pairs:
    near = moves.generators
    return np.repeat(near, len(others)), np.tile(others, len(near))


def _pairs_to_check(moves: Translations, others: Ints) -> Pairs:
    hosts = moves.fabric.hosts
    if hosts * (hosts - 1) <= CHECKED_WHOLE:
        return np.repeat(others, hosts - 1), np.tile(others, hosts - 1)
    src, apart = _from_neighbours(moves, others)
    everyone = np.repeat(np.arange(hosts), CHECKED_PER_HOST)
    some = np.random.default_rng(0).integers(1, hosts, len(everyone))
    return np.concatenate([src, everyone]), np.concatenate([apart, some])


def _all_follow(sender: OneSender, router: Router, pairs: Pairs) -> bool:
    """The router sends all these pairs just as host 0 sends."""
    first = _Sorted.of(sender)
    block = max(1, HOPS_AT_ONCE * sender.routes.pairs // max(1, len(sender.routes.link)))
    return all(
        _follows(first, router, *(column[begin : begin + block] for column in pairs))
        for begin in range(0, len(pairs[0]), block)
    )


@dataclass(frozen=True, eq=False)
class _Sorted:
    """What host 0 puts on each link on its way to each destination, links ascending, and the latency of that way."""

    sender: OneSender
    start: Ints
    link: Ints
    share: NDArray[np.float64]
    latency: NDArray[np.float64]

    @staticmethod
    def of(sender: OneSender) -> _Sorted:
        start, link, share = sender.routes.usage()
        order = _order(start, link)
        return _Sorted(sender, start, link[order].astype(np.int64), share[order], sender.routes.latency())


def _order(start: Ints, link: NDArray[np.int32] | Ints) -> Ints:
    return np.lexsort((link, np.repeat(np.arange(len(start) - 1), np.diff(start))))


def _follows(first: _Sorted, router: Router, src: Ints, apart: Ints) -> bool:
    """The router loads the links of these pairs as those of host 0, moved by the source: all that time depends on."""
    moves = first.sender.translations
    routes = router(moves.fabric, src.astype(np.int32), moves.moved(apart, src).astype(np.int32))
    start, link, share = routes.usage()
    length = np.diff(start)
    row = first.sender.routes.find(np.zeros(routes.pairs), moves.moved_back(routes.pair_dst, routes.pair_src))
    if (length != np.diff(first.start)[row]).any():
        return False
    back = moves.link_moved_back(link, np.repeat(routes.pair_src, length))
    order = _order(start, back)
    into = ranges(first.start[row], length)
    return bool(
        np.array_equal(back[order], first.link[into])
        and np.allclose(share[order], first.share[into], rtol=ROUNDING, atol=0)
        and np.allclose(routes.latency(), first.latency[row], rtol=ROUNDING, atol=0)
    )
