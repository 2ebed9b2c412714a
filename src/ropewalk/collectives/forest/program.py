"""From a forest to a program: every tree is a lane in which segments of its part of the buffer follow each other.

The buffer is cut into equal chunks, as few as give every tree a whole number in proportion to its rate. The parts of
one root stand together, in the order of ranks, so that the part of a root in an all-gather or a reduce-scatter is its
rank's shard. In an all-reduce a lane goes up a tree that reduces and down one that spreads, of the same root.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.collectives.along_trees import TreeCollective
from ropewalk.collectives.forest.columns import LaneColumns, in_equal_lanes
from ropewalk.collectives.forest.forest import Forest
from ropewalk.collectives.forest.halves import halves_of
from ropewalk.collectives.forest.layout import layout_of
from ropewalk.collectives.forest.synthesis import AllReduceForest
from ropewalk.collectives.forest.ways import routes_of
from ropewalk.collectives.program import Condition, Program, only, owner
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.segments import pipelined


def forest_schedule(
    forest: Forest | AllReduceForest,
    collective: str,
    segments: int = 1,
    *,
    relays_as_ranks: bool = False,
    equal_lanes: bool = False,
) -> Schedule:
    """The program of a forest in so many pipeline segments, with ways in proportion to the rates of its trees.

    Rank i is member i of the network. Hosts outside the group are only part of the ways; with `relays_as_ranks` those
    that forward become ranks after the members, so that the program can run where only hosts forward.

    A send carries as many chunks as its tree has weight. Where links share themselves out evenly among what is sent, a
    heavy tree then gets too little while light ones run ahead, and the promise is missed, by almost a third on a DGX-1.
    It is kept when sends are paced to the rates of their trees, and with `equal_lanes`: these have one chunk a segment,
    a heavy tree has as many of them as its weight, and an even share of a link is never less than the rate of one.

    >>> from ropewalk.collectives.forest import all_gather_forest
    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Torus
    >>> forest = all_gather_forest(network_of(Torus((3, 3), bandwidth=1e9).build()))
    >>> schedule = forest_schedule(forest, "allgather", segments=2)
    >>> schedule.program.check()
    >>> len(schedule.program.rounds) - 2 + 1 == forest.depth
    True
    """
    halves = halves_of(forest, collective)
    network = halves.network
    layout = layout_of(halves, relays_as_ranks)
    columns = in_equal_lanes(layout.columns) if equal_lanes else layout.columns
    touched = np.unique(np.concatenate([columns.src, columns.dst]))
    hosts = np.concatenate([network.members, np.setdiff1d(touched, network.members)])
    program = _program(halves.purpose, columns, hosts, len(network.members), segments)
    routes = routes_of(network.fabric, layout.ways)
    return Schedule("forest", program, hosts.astype(np.int32), routes, promise=forest.algbw)


def _program(purpose: TreeCollective, columns: LaneColumns, hosts: Ints, members: int, segments: int) -> Program:
    rank_of = np.zeros(int(hosts.max()) + 1, np.int64)
    rank_of[hosts] = np.arange(len(hosts))
    first = (np.cumsum(columns.weight) - columns.weight) * segments
    rounds = pipelined(
        rank_of[columns.src],
        rank_of[columns.dst],
        columns.first_round,
        columns.adds,
        segments,
        lane=columns.lane,
        chunks=columns.weight[columns.lane],
        first_chunk=first[columns.lane],
    )
    ranks = len(hosts)
    everybody = only(ranks, np.arange(members))
    roots = _root_of_chunk(ranks, first, rank_of[columns.root])
    return Program(
        name=f"forest {purpose.title}" + (f" in {segments} segments" if segments > 1 else ""),
        ranks=ranks,
        chunks=int(columns.weight.sum()) * segments,
        rounds=tuple(rounds),
        pre=everybody if purpose.reduces else roots,
        post=everybody if purpose.spreads else roots,
    )


def _root_of_chunk(ranks: int, first: Ints, root: Ints) -> Condition:
    return owner(ranks, lambda chunk: root[np.searchsorted(first, chunk, side="right") - 1])
