"""Collectives that bring their paths, made for the groups of a step: once for groups that are alike.

Groups that run at the same time share the network, so none of them may count on all of it. Of two ways to divide it the
one that promises more is taken: every group keeps to its `own` links, those on the usual paths between its members, and
what is on the paths of several groups is divided among them; or all groups have the whole fabric, `shared` equally.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.act import Act
from ropewalk.collectives.group import Group
from ropewalk.collectives.over_servers import Servers
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.table import Collective
from ropewalk.errors import GraphError
from ropewalk.fabric import Fabric
from ropewalk.routing import Router
from ropewalk.task.alike import Alike, OwnLinks, alike_by_paths, alike_by_translation, own_links

ROUNDING = 1e-9
MOST_SYNTHESES = 16
"""Schedules that are made for one collective of a step; beyond, its groups are too different."""

MOST_LINKS_ALONE, MOST_LINKS_SHARED = 4096, 1024
"""Links up to which a schedule is made for a whole fabric: for a group alone, or for groups that share it. A schedule
for the own links of a group is smaller, and soon made on any fabric."""

MOST_IMAGES = 1 << 26
"""Groups times links up to which every group is told which links it has in the place of those of the first."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A schedule over links of the fabric, and the groups that run it, each over the images of its links."""

    alike: Alike
    schedule: Schedule
    alone: float
    """Bytes/s of a group that has the links of its schedule for itself."""
    links: str
    """`own` or `shared`."""

    @property
    def promise(self) -> float:
        """Bytes/s of a group while all groups run."""
        assert self.schedule.promise is not None
        return float(self.schedule.promise)


@dataclass(frozen=True, eq=False)
class WantedCollective:
    """A collective for groups that sit alike in servers."""

    act: Act
    record: Collective
    servers: Servers
    hosts: NDArray[np.int32]
    """A row for each group."""
    fabric: Fabric
    router: Router
    segments: int = 1


def placed(wanted: WantedCollective) -> list[Placed]:
    """Schedules for all groups; refused where that would take too many of them, or too much memory."""
    groups, ranks = wanted.hosts.shape
    if groups * wanted.fabric.links > MOST_IMAGES:
        raise GraphError(
            f"{wanted.act.words} of {ranks} ranks: {groups:,} groups on {wanted.fabric.links:,} links are more than "
            f"{wanted.record.name} supports: use ring for this purpose"
        )
    if len(wanted.hosts) == 1 and wanted.fabric.links <= MOST_LINKS_ALONE:
        found = _on_shared_links(wanted)  # a group that shares with nobody has the whole fabric
    else:
        own = own_links(wanted.fabric, wanted.hosts, wanted.router)
        found = _on_own_links(wanted, own)
        if _may_gain_by_sharing(wanted, own, found):
            shared = _on_shared_links(wanted)
            found = max((way for way in (found, shared) if way is not None), key=_slowest, default=None)
    if found is None:
        raise GraphError(
            f"{wanted.act.words} of {wanted.hosts.shape[1]} ranks: {len(wanted.hosts)} groups differ, and "
            f"{wanted.record.name} would have to be built more than {MOST_SYNTHESES} times: use ring for this purpose"
        )
    return found


def _slowest(way: list[Placed]) -> float:
    return min(one.promise for one in way)


def _may_gain_by_sharing(wanted: WantedCollective, own: OwnLinks, found: list[Placed] | None) -> bool:
    """Whether equal parts of all links could promise more than own links do; on a large fabric that is not asked."""
    alone = len(wanted.hosts) == 1
    if found is not None and (alone or own.uses.all() or wanted.fabric.links > MOST_LINKS_SHARED):
        return False
    if found is None:
        return True
    from ropewalk.collectives.optimum import OPTIMA, ROOTED_OPTIMA, network_of  # loads Numba

    first, key = wanted.hosts[0].tolist(), wanted.act.key
    network = network_of(wanted.fabric, first)
    best = OPTIMA[key](network) if key in OPTIMA else ROOTED_OPTIMA[key](network, first[0])
    return float(best.algbw) / len(wanted.hosts) > _slowest(found) * (1 + ROUNDING)


def _on_own_links(wanted: WantedCollective, own: OwnLinks) -> list[Placed] | None:
    classes = alike_by_paths(own)
    if len(classes) > MOST_SYNTHESES:
        return None
    parts = [_divided(own, int(alike.rows[0])) for alike in classes]
    return [_placed(wanted, alike, part, "own") for alike, part in zip(classes, parts, strict=True)]


def _on_shared_links(wanted: WantedCollective) -> list[Placed] | None:
    classes = alike_by_translation(wanted.fabric, wanted.hosts)
    if len(classes) > MOST_SYNTHESES:
        return None
    whole = _Part(wanted.fabric, np.arange(wanted.fabric.links), len(wanted.hosts))
    return [_placed(wanted, alike, whole, "shared") for alike in classes]


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a fabric: which of its links, all of them `times` as fast as one group may count on."""

    fabric: Fabric
    link: NDArray[np.int64]
    times: int


def _divided(own: OwnLinks, group: int) -> _Part:
    """The own links of a group; whole multiples keep speeds exact."""
    fabric, link = own.fabric, np.flatnonzero(own.uses[group])
    sharing = own.groups_on_link[link]
    times = lcm(*sharing.tolist())
    if len(link) == fabric.links and (sharing == sharing[0]).all():
        return _Part(fabric, link, times)
    columns = {name: getattr(fabric, name)[link] for name in ("link_src", "link_dst", "latency", "cables")}
    part = replace(fabric, **columns, bandwidth=fabric.bandwidth[link] * (times // sharing), builder=None)
    return _Part(part, link, times)


def _placed(wanted: WantedCollective, alike: Alike, part: _Part, links: str) -> Placed:
    """The schedule of the first of some groups that are alike, over links of the whole fabric."""
    members = tuple(wanted.hosts[alike.rows[0]].tolist())
    where = Group(wanted.servers, fabric=part.fabric, members=members, segments=wanted.segments)
    schedule = wanted.record.schedule(wanted.act, where)
    assert schedule.promise is not None
    load = _load(schedule)
    divided, whole = (load / speed for speed in (part.fabric.bandwidth, wanted.fabric.bandwidth[part.link]))
    routes = replace(schedule.routes, fabric=wanted.fabric, link=part.link[schedule.routes.link].astype(np.int32))
    alone = float(schedule.promise) * float(divided.max() / whole.max())
    return Placed(alike, replace(schedule, routes=routes, promise=schedule.promise / part.times), alone, links)


def _load(schedule: Schedule) -> NDArray[np.float64]:
    """Bytes on every link for each byte that the collective is of."""
    program, hosts, routes = schedule.program, schedule.hosts, schedule.routes
    repeats = np.bincount(program.pattern_of_round, minlength=len(program.patterns))
    total = np.zeros(routes.fabric.links)
    for pattern, repeat in zip(program.patterns, repeats.tolist(), strict=True):
        row = routes.find(hosts[pattern.src], hosts[pattern.dst])
        total += repeat * routes.link_bytes(row, pattern.chunks.astype(np.float64))
    return np.asarray(total / program.buffer_chunks, np.float64)
