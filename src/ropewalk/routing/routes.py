"""Routes: for every pair of hosts that is used, one or more paths with shares that sum to one.

Paths are rows of a CSR array of link ids. One validator, `Routes.check`, holds for all routers.

A pair has one row that everything between its hosts takes unless told otherwise. A collective that was made for the
fabric has paths of its own between the same hosts: such rows are appended, and tasks name them (`rows_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import Findings, RouteError
from ropewalk.fabric import Fabric
from ropewalk.ragged import ranges
from ropewalk.routing.contract import find_breaches

IntArray = NDArray[np.int32] | NDArray[np.int64]

FEW = 4
"""Transfers are few where there are so many times more rows."""


class Sends(Protocol):
    """What rows are found for: columns of tasks, of which transfers have both ends."""

    @property
    def place(self) -> NDArray[np.int32]: ...
    @property
    def peer(self) -> NDArray[np.int32]: ...
    @property
    def route(self) -> NDArray[np.int32]: ...


@dataclass(frozen=True, eq=False)
class Routes:
    """Paths of host pairs over one fabric.

    Pair p goes from `pair_src[p]` to `pair_dst[p]`; its paths are `path_start[p]:path_start[p+1]`; path q carries
    `share[q]` of the bytes over links `link[link_start[q]:link_start[q+1]]`. Pairs are unique and sorted, save for the
    last `appended` rows: they are further paths of pairs, which only tasks that name them take.
    """

    fabric: Fabric
    pair_src: NDArray[np.int32]
    pair_dst: NDArray[np.int32]
    path_start: NDArray[np.int64]
    share: NDArray[np.float64]
    link_start: NDArray[np.int64]
    link: NDArray[np.int32]
    appended: int = field(default=0, kw_only=True)

    @property
    def pairs(self) -> int:
        return len(self.pair_src)

    @property
    def paths(self) -> int:
        return len(self.share)

    @property
    def hops(self) -> NDArray[np.int64]:
        """Links on each path."""
        return np.diff(self.link_start)

    @property
    def pair_of_path(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.pairs), np.diff(self.path_start))

    @property
    def path_of_hop(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.paths), self.hops)

    @cached_property
    def _known(self) -> NDArray[np.int64]:
        return pair_key(self.fabric, self.pair_src, self.pair_dst)[: self.pairs - self.appended]

    def find(self, src: ArrayLike, dst: ArrayLike) -> NDArray[np.int64]:
        """Row of each (src, dst) pair; a pair that has no route is an error."""
        a, b = np.atleast_1d(np.asarray(src, np.int64)), np.atleast_1d(np.asarray(dst, np.int64))
        wanted = pair_key(self.fabric, a, b)
        at = np.searchsorted(self._known, wanted)
        found = at < len(self._known)
        found[found] = self._known[at[found]] == wanted[found]
        # A key alone does not tell node -1 or a node beyond the last from a neighbouring pair.
        found &= (a >= 0) & (b >= 0) & (b < self.fabric.nodes)
        if not found.all():
            missing = int(np.flatnonzero(~found)[0])
            raise RouteError(
                f"no route from {_node_name(self.fabric, int(a[missing]))} to "
                f"{_node_name(self.fabric, int(b[missing]))}: route every pair that the transfers use"
            )
        return at.astype(np.int64)

    def rows_of(self, tasks: Sends, transfer: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of each of some transfers: the one that its task names, otherwise that of its pair of hosts."""
        named = tasks.route[transfer]
        src, dst = tasks.place[transfer], tasks.peer[transfer]
        own = np.flatnonzero(named >= 0)
        if not len(own):
            return self.find(src, dst)
        row = named.astype(np.int64)
        astray = row[own] >= self.pairs
        known = np.where(astray, 0, row[own])
        astray |= (self.pair_src[known] != src[own]) | (self.pair_dst[known] != dst[own])
        if astray.any():
            first = own[int(np.flatnonzero(astray)[0])]
            raise RouteError(
                f"task {int(transfer[first])} takes row {int(row[first])} of the routes, which joins other hosts: "
                "give the routes that the tasks were written for"
            )
        usual = np.flatnonzero(named < 0)
        row[usual] = self.find(src[usual], dst[usual])
        return row

    def with_rows(self, further: Routes) -> Routes:
        """The same routes with all rows of others behind them; row r of those becomes row `pairs` + r.

        >>> from ropewalk.fabric import Ring
        >>> ring = Ring(3).build()
        >>> one = single_paths(ring, *np.array([[0], [1]], np.int32), np.array([0, 1]), np.array([0], np.int32))
        >>> one.with_rows(one).pairs, one.with_rows(one).find(0, 1).tolist()
        (2, [0])
        """
        if not further.pairs:
            return self
        return replace(
            self,
            pair_src=np.concatenate([self.pair_src, further.pair_src]),
            pair_dst=np.concatenate([self.pair_dst, further.pair_dst]),
            path_start=np.concatenate([self.path_start, further.path_start[1:] + self.paths]),
            share=np.concatenate([self.share, further.share]),
            link_start=np.concatenate([self.link_start, further.link_start[1:] + len(self.link)]),
            link=np.concatenate([self.link, further.link]),
            appended=self.appended + further.pairs,
        )

    def usage(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        """CSR by pair (start, link, share): what each pair puts on each link. Links on several paths stand once."""
        if self.paths == self.pairs:
            return self.link_start, self.link, self.share[self.path_of_hop]
        # Imported here because loading Numba takes longer than some commands run.
        from ropewalk.routing._usage import merge_paths

        start, link, share = merge_paths(self.path_start, self.link_start, self.link, self.share, self.fabric.links)
        return start, link, share

    def latency(self) -> NDArray[np.float64]:
        """Seconds a first byte needs on the slowest path of each pair."""
        if self.pairs == 0:
            return np.zeros(0)
        path = np.add.reduceat(self.fabric.latency[self.link], self.link_start[:-1])
        return np.asarray(np.maximum.reduceat(path, self.path_start[:-1]), np.float64)

    def link_bytes(self, pair: IntArray, size_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bytes on every link when transfer i sends `size_bytes[i]` over the routes of row `pair[i]`."""
        if FEW * len(pair) < self.pairs:
            return self._link_bytes_of_few(np.asarray(pair, np.int64), size_bytes)
        per_pair = _sum_by(pair, size_bytes, self.pairs)
        # Adding up hop by hop needs no merging of the links that several paths of a pair share.
        per_path = self.share * per_pair[self.pair_of_path]
        return _sum_by(self.link, np.repeat(per_path, self.hops), self.fabric.links)

    def _link_bytes_of_few(self, pair: NDArray[np.int64], size_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same sums in the same order, over the rows alone that are used: rounds of an all-to-all use few each."""
        row, place = np.unique(pair, return_inverse=True)
        paths = self.path_start[row + 1] - self.path_start[row]
        path = ranges(self.path_start[row], paths)
        hops = self.link_start[path + 1] - self.link_start[path]
        per_path = self.share[path] * np.repeat(_sum_by(place, size_bytes, len(row)), paths)
        link = self.link[ranges(self.link_start[path], hops)]
        return _sum_by(link, np.repeat(per_path, hops), self.fabric.links)

    def check(self) -> None:
        """Prove the contract: shares sum to one; paths are loop-free chains of existing links from src to dst."""
        findings = Findings(RouteError, f"routes on {self.fabric.name}")
        for breach in find_breaches(self):
            findings.add(breach)
        findings.raise_if_any()


Router = Callable[[Fabric, NDArray[np.int32], NDArray[np.int32]], Routes]
"""A router: (fabric, source hosts, destination hosts) -> Routes for the unique pairs among them."""


def pair_key(fabric: Fabric, src: ArrayLike, dst: ArrayLike) -> NDArray[np.int64]:
    """One sortable number for each (src, dst)."""
    return np.asarray(src, np.int64) * fabric.nodes + np.asarray(dst, np.int64)


def unique_pairs(fabric: Fabric, src: ArrayLike, dst: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct pairs, sorted; pairs of a host with itself need no network and are refused."""
    ends = np.broadcast_arrays(*(np.atleast_1d(np.asarray(end, np.int64)) for end in (src, dst)))
    for end in ends:
        strangers = end[(end < 0) | (end >= fabric.hosts)]
        if len(strangers):
            raise RouteError(
                f"{_node_name(fabric, int(strangers[0]))} is not a host of {fabric.name}, whose hosts are "
                f"0 to {fabric.hosts - 1}: route between hosts"
            )
    key = pair_key(fabric, *ends)
    if not (np.diff(key) > 0).all():
        # Sorted, not hashed as np.unique does it: many times faster for millions of mostly distinct pairs.
        key = np.sort(key)
        key = key[np.concatenate([[True], np.diff(key) > 0])]
    a, b = (key // fabric.nodes).astype(np.int32), (key % fabric.nodes).astype(np.int32)
    if (a == b).any():
        raise RouteError(f"host {fabric.node_names[int(a[a == b][0])]} sends to itself: drop such transfers")
    return a, b


def make_routes(
    fabric: Fabric,
    pair_src: NDArray[np.int32],
    pair_dst: NDArray[np.int32],
    pair_of_path: NDArray[np.int64],
    share: NDArray[np.float64],
    path_of_hop: NDArray[np.int64],
    link: NDArray[np.int32],
) -> Routes:
    """Assemble Routes from flat columns; paths are grouped by pair and hops by path, each in travel order."""
    path_start = starts(np.bincount(pair_of_path, minlength=len(pair_src)))
    link_start = starts(np.bincount(path_of_hop, minlength=len(share)))
    return Routes(fabric, pair_src, pair_dst, path_start, share.astype(np.float64), link_start, link.astype(np.int32))


def single_paths(
    fabric: Fabric,
    pair_src: NDArray[np.int32],
    pair_dst: NDArray[np.int32],
    link_start: NDArray[np.int64],
    link: NDArray[np.int32],
) -> Routes:
    """Assemble Routes in which every pair has one path."""
    pairs = len(pair_src)
    return Routes(fabric, pair_src, pair_dst, np.arange(pairs + 1), np.ones(pairs), link_start, link)


def starts(length: ArrayLike) -> NDArray[np.int64]:
    """Where each row of a CSR array begins, and where the last one ends."""
    length = np.asarray(length, np.int64)
    start = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def _sum_by(group: IntArray, values: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(group, weights=values, minlength=groups), np.float64)


def _node_name(fabric: Fabric, node: int) -> str:
    return fabric.node_names[node] if 0 <= node < fabric.nodes else f"node {node}"
