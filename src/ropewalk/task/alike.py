"""Groups that a network cannot tell apart: what is made for one of them serves all, over the images of its links.

Two groups are alike where members and links of one are carried onto those of the other: by a translation that the
fabric declares, or link by link along the paths that the router gives their pairs. Both are verified: speeds,
latencies, what connects to what, and how many groups share each link.
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
from ropewalk.routing import Router


@dataclass(frozen=True, eq=False)
class Alike:
    """Groups like the first: link l of group `rows[0]` is link `image[k, l]` of group `rows[k]`, -1 if unused."""

    rows: Ints
    image: Ints


@dataclass(frozen=True, eq=False)
class OwnLinks:
    """The links on the usual paths between the members of each group, in the order in which the paths take them."""

    fabric: Fabric
    uses: NDArray[np.bool_]
    """By group and link."""
    shape: list[tuple[Ints, NDArray[np.float64], Ints]]
    """By group: paths of each pair, share and hops of each path."""
    link: list[NDArray[np.int32]]

    @cached_property
    def groups_on_link(self) -> Ints:
        return np.asarray(self.uses.sum(axis=0), np.int64)


def own_links(fabric: Fabric, hosts: NDArray[np.int32], router: Router) -> OwnLinks:
    """Route all pairs within each group; a row of `hosts` is one group."""
    groups, ranks = hosts.shape
    a, b = np.nonzero(~np.eye(ranks, dtype=bool))
    routes = router(fabric, hosts[:, a].ravel(), hosts[:, b].ravel())
    rows = routes.find(hosts[:, a].ravel(), hosts[:, b].ravel()).reshape(groups, -1)
    uses, shape, link = np.zeros((groups, fabric.links), bool), [], []
    for group, row in enumerate(rows):
        paths = routes.path_start[row + 1] - routes.path_start[row]
        path = ranges(routes.path_start[row], paths)
        hops = routes.hops[path]
        taken = routes.link[ranges(routes.link_start[path], hops)]
        uses[group, taken] = True
        shape.append((paths, routes.share[path], hops))
        link.append(taken)
    return OwnLinks(fabric, uses, shape, link)


def alike_by_paths(own: OwnLinks) -> list[Alike]:
    """Groups whose own links are joined alike, are as fast, and are shared with as many others."""
    classes: list[tuple[list[int], list[Ints]]] = []
    for group in range(len(own.link)):
        for rows, images in classes:
            image = _carried(own, rows[0], group)
            if image is not None:
                rows.append(group)
                images.append(image)
                break
        else:
            mine = np.where(own.uses[group], np.arange(own.fabric.links), -1)
            classes.append(([group], [mine]))
    return [Alike(np.array(rows), np.stack(images)) for rows, images in classes]


def _carried(own: OwnLinks, first: int, other: int) -> Ints | None:
    """The image of every link of one group in another; None where the two are not alike."""
    fabric, shared = own.fabric, own.groups_on_link
    if any(not np.array_equal(*columns) for columns in zip(own.shape[first], own.shape[other], strict=True)):
        return None
    link, image = own.link[first], own.link[other]
    carried = _function(link, image, fabric.links)
    if carried is None:
        return None
    alike = (fabric.bandwidth, fabric.latency, fabric.cables, shared)
    if any((column[link] != column[image]).any() for column in alike):
        return None
    ends = [np.concatenate([fabric.link_src[side], fabric.link_dst[side]]) for side in (link, image)]
    return carried if _function(ends[0], ends[1], fabric.nodes) is not None else None


def _function(of: NDArray[np.int32], to: NDArray[np.int32], size: int) -> Ints | None:
    """The one-to-one map that takes every `of[i]` to `to[i]`, -1 elsewhere, or None."""
    found = np.full(size, -1, np.int64)
    found[of] = to
    back = np.full(size, -1, np.int64)
    back[to] = of
    return found if (found[of] == to).all() and (back[to] == of).all() else None


def alike_by_translation(fabric: Fabric, hosts: NDArray[np.int32]) -> list[Alike]:
    """Groups that a translation of the fabric carries onto each other, member by member; without any, each is alone."""
    moves = translations(fabric)
    classes: list[tuple[list[int], list[Ints]]] = []
    for group, members in enumerate(hosts):
        for rows, images in classes:
            by = moves.moved_back(members[0], hosts[rows[0], 0]) if moves is not None else None
            if moves is not None and by is not None and np.array_equal(moves.moved(hosts[rows[0]], by), members):
                rows.append(group)
                images.append(_moved_links(moves, by))
                break
        else:
            classes.append(([group], [np.arange(fabric.links)]))
    return [Alike(np.array(rows), np.stack(images)) for rows, images in classes]


def _moved_links(moves: Translations, by: Ints) -> Ints:
    return np.asarray(moves.link_at[moves.kind, moves.moved(moves.home, by)], np.int64)
