"""Transfers become flows on paths: one flow each by hash, one for each path, or one that sprays its packets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric
from ropewalk.ragged import ranges
from ropewalk.routing import Routes
from ropewalk.sim.packet.possible import check_same_fabric
from ropewalk.sim.packet.settings import PathSpread


@dataclass(frozen=True, eq=False)
class Ways:
    """Paths there and back as ranges of one array of links: data hops of path q, then hops of its acknowledgements."""

    hops: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    back_first: NDArray[np.int64]
    back_last: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Flows:
    """One row a flow: the transfer it belongs to, its bytes, and the paths it uses, `paths` from `path_first` on."""

    transfer: NDArray[np.int64]
    size: NDArray[np.int64]
    path_first: NDArray[np.int64]
    paths: NDArray[np.int64]


def opposite_links(fabric: Fabric) -> NDArray[np.int32]:
    """For each link the one in the opposite direction, or -1; of parallel links the i-th belongs to the i-th."""
    src, dst = fabric.link_src.astype(np.int64), fabric.link_dst.astype(np.int64)
    forth, back = src * fabric.nodes + dst, dst * fabric.nodes + src
    order_forth, order_back = np.argsort(forth, kind="stable"), np.argsort(back, kind="stable")
    opposite = np.full(fabric.links, -1, np.int32)
    sorted_forth, sorted_back = forth[order_forth], back[order_back]
    # The i-th link with this (src, dst) meets the i-th link with the same key turned round.
    place_forth = np.arange(fabric.links) - np.searchsorted(sorted_forth, sorted_forth)
    start = np.searchsorted(sorted_back, sorted_forth)
    count = np.searchsorted(sorted_back, sorted_forth, side="right") - start
    fits = place_forth < count
    opposite[order_forth[fits]] = order_back[(start + place_forth)[fits]]
    return opposite


def ways_of(routes: Routes, ack_routes: Routes | None) -> Ways:
    """The links of every path and of the way its acknowledgements take: the same cables back, or their own routes."""
    hops, start = routes.hops, routes.link_start
    if ack_routes is None:
        opposite = opposite_links(routes.fabric)
        missing = np.flatnonzero(opposite[routes.link] < 0)
        if len(missing):
            raise RouteError(
                f"link {routes.fabric.link_name(int(routes.link[missing[0]]))} of {routes.fabric.name} has no opposite "
                "direction, which acknowledgements need: add it, or give routes for acknowledgements"
            )
        turned = start[:-1].repeat(hops) + start[1:].repeat(hops) - 1 - np.arange(len(routes.link))
        return Ways(
            np.concatenate([routes.link, opposite[routes.link[turned]]]).astype(np.int32),
            start[:-1], start[1:] - 1, start[:-1] + len(routes.link), start[1:] - 1 + len(routes.link),
        )  # fmt: skip
    check_same_fabric(routes, ack_routes)
    pair = ack_routes.find(routes.pair_dst, routes.pair_src)[routes.pair_of_path]
    nth = np.arange(routes.paths) - routes.path_start[:-1][routes.pair_of_path]
    path = ack_routes.path_start[pair] + nth % (ack_routes.path_start[pair + 1] - ack_routes.path_start[pair])
    return Ways(
        np.concatenate([routes.link, ack_routes.link]).astype(np.int32),
        start[:-1], start[1:] - 1,
        ack_routes.link_start[path] + len(routes.link), ack_routes.link_start[path + 1] - 1 + len(routes.link),
    )  # fmt: skip


def spread_out(
    routes: Routes, pair: NDArray[np.int64], size: NDArray[np.int64], spread: PathSpread, seed: int
) -> tuple[Flows, NDArray[np.int64]]:
    """The flows of transfers over rows `pair` of the routes, and the order of paths they count in."""
    order = np.arange(routes.paths)
    if spread is PathSpread.HASH:
        return _hashed(routes, pair, size, seed), order
    if spread is PathSpread.SPRAY:
        first_link = routes.link[routes.link_start[:-1]]
        order = np.lexsort((order, first_link, routes.pair_of_path))
        new_group = np.concatenate(
            [[True], (np.diff(routes.pair_of_path[order]) != 0) | (np.diff(first_link[order]) != 0)]
        )
        group_first = np.flatnonzero(new_group)
    else:
        group_first = order
    return _grouped(routes, pair, size, order, group_first), order


def _hashed(routes: Routes, pair: NDArray[np.int64], size: NDArray[np.int64], seed: int) -> Flows:
    """One path a transfer, drawn by its share."""
    draw = np.random.Generator(np.random.PCG64(seed)).random(len(pair))
    total = np.cumsum(routes.share)
    before = np.concatenate([[0.0], total])[routes.path_start[pair]]
    path = np.searchsorted(total, before + draw, side="right")
    path = np.clip(path, routes.path_start[pair], routes.path_start[pair + 1] - 1)
    return Flows(np.arange(len(pair)), size, path, np.ones(len(pair), np.int64))


def _grouped(
    routes: Routes,
    pair: NDArray[np.int64],
    size: NDArray[np.int64],
    order: NDArray[np.int64],
    group_first: NDArray[np.int64],
) -> Flows:
    """One flow for each group of paths of a transfer; shares become whole bytes that add up to the transfer."""
    group_last = np.append(group_first[1:], routes.paths)
    group_pair = routes.pair_of_path[order][group_first]
    share = np.add.reduceat(routes.share[order], group_first)
    groups_start = np.searchsorted(group_pair, np.arange(routes.pairs + 1))
    count = np.diff(groups_start)[pair]
    group = ranges(groups_start[pair], count)
    transfer = np.repeat(np.arange(len(pair)), count)
    within = np.cumsum(share)
    until = within[group] - (within - share)[groups_start[pair]].repeat(count)
    end = np.rint(until * size[transfer]).astype(np.int64)
    after_last = np.cumsum(count)
    end[after_last - 1] = size
    bytes_of = np.diff(end, prepend=0)
    first = after_last - count
    bytes_of[first] = end[first]
    kept = bytes_of > 0
    return Flows(transfer[kept], bytes_of[kept], group_first[group][kept], (group_last - group_first)[group][kept])
