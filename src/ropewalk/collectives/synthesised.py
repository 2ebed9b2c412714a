"""Collectives that are made for a network: trees, breadth-first broadcasts, searched rings, paths of an all-to-all.

Each comes with paths of its own. Rank i is member i of the network; the root of a rooted one is a host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ropewalk.collectives.act import Act
from ropewalk.collectives.all_to_all import all_to_all_schedule
from ropewalk.collectives.best_ring import best_ring
from ropewalk.collectives.breadth_first import bfb_schedule
from ropewalk.collectives.breadth_first.size import bytes_of
from ropewalk.collectives.forest import (
    AllReduceForest,
    Forest,
    all_gather_forest,
    all_reduce_forest,
    broadcast_forest,
    reduce_forest,
    reduce_scatter_forest,
)
from ropewalk.collectives.forest.program import forest_schedule
from ropewalk.collectives.group import Group
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.topoadopt import (
    TopoAdopt,
    topoadopt_all_gather,
    topoadopt_broadcast,
    topoadopt_forest,
    topoadopt_reduce,
    topoadopt_reduce_scatter,
)
from ropewalk.room import foresee

AnyForest = Forest | AllReduceForest
EPSILON = 0.05
"""How close to the optimum multiplicative weights aim, unless told otherwise."""

FORESTS: Mapping[Act, Callable[[Network, int], AnyForest]] = {
    Act.ALL_REDUCE: lambda network, root: all_reduce_forest(network),
    Act.ALL_GATHER: lambda network, root: all_gather_forest(network),
    Act.REDUCE_SCATTER: lambda network, root: reduce_scatter_forest(network),
    Act.BROADCAST: broadcast_forest,
    Act.REDUCE: reduce_forest,
}
"""Exact trees of each act, from a network and a host as the root."""

ADOPTED: Mapping[Act, Callable[[Network, int, float], TopoAdopt[Forest] | TopoAdopt[AllReduceForest]]] = {
    Act.ALL_REDUCE: lambda network, root, epsilon: topoadopt_forest(network, epsilon),
    Act.ALL_GATHER: lambda network, root, epsilon: topoadopt_all_gather(network, epsilon),
    Act.REDUCE_SCATTER: lambda network, root, epsilon: topoadopt_reduce_scatter(network, epsilon),
    Act.BROADCAST: topoadopt_broadcast,
    Act.REDUCE: topoadopt_reduce,
}
"""The same by multiplicative weights, as close to the optimum as asked."""


def forest(act: Act, group: Group) -> Schedule:
    return _in_segments(FORESTS[act](group.network, _root_host(group)), act, group)


def topoadopt(act: Act, group: Group) -> Schedule:
    found = ADOPTED[act](group.network, _root_host(group), EPSILON).forest
    return replace(_in_segments(found, act, group), name="topoadopt")


def breadth_first(act: Act, group: Group) -> Schedule:
    foresee("a breadth-first schedule", bytes_of(group.network), "use fewer ranks, or another method such as forest")
    return bfb_schedule(group.network, act.key, group.segments, root=_root_of(act, group))


def searched_ring(act: Act, group: Group) -> Schedule:
    return best_ring(group.network, act.key, root=_root_of(act, group))


def paths(act: Act, group: Group) -> Schedule:
    return all_to_all_schedule(group.network)


def _in_segments(found: AnyForest, act: Act, group: Group) -> Schedule:
    """Lanes of equal weight where segments follow each other: links then share themselves out as the trees promise."""
    return forest_schedule(found, act.key, group.segments, equal_lanes=group.segments > 1)


def _root_host(group: Group) -> int:
    return int(group.network.members[group.root])


def _root_of(act: Act, group: Group) -> int | None:
    return _root_host(group) if act in (Act.BROADCAST, Act.REDUCE) else None


MAKERS: Mapping[str, Callable[[Act, Group], Schedule]] = {
    "forest": forest,
    "topoadopt": topoadopt,
    "breadth-first": breadth_first,
    "best-ring": searched_ring,
    "paths": paths,
}
"""What makes each of them, for an act that it has."""
